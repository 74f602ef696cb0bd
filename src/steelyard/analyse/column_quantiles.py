"""Exact quantiles, a histogram and an envelope of values that do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from steelyard.errors import AnalysisError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]
    Counts: TypeAlias = NDArray[np.int64]
    Column: TypeAlias = Callable[[], Iterator[Values]]

_BATCH: Final = 1 << 17
"""Values that are sorted at once (1 MiB): they stay in the cache."""
_STEP: Final = 256
"""Every so many values of a sorted batch one is remembered: an interval between two remembered ones around a
rank has at most `2 * _STEP` values of each batch, 1/256 of all."""


@dataclass(frozen=True, slots=True)
class ColumnQuantiles:
    """Count, extremes and quantiles of a column.

    Parameters
    ----------
    count : int
        Number of values.
    smallest, largest : float
        Extremes, in the unit of the column.
    quantiles : dict of float to float
        Exact quantiles by probability, of type 7 (Hyndman and Fan 1996), as `numpy.quantile` gives them.
    """

    count: int
    smallest: float
    largest: float
    quantiles: dict[float, float]


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """What can be drawn of a column.

    Parameters
    ----------
    edges : ndarray
        Of the bins of a histogram, shape (bins + 1,), in the unit of the column.
    counts : ndarray
        Values in each bin, shape (bins,); the last bin contains its right edge.
    begin : ndarray
        Place of the first value of each piece, from 0, shape (pieces,).
    low, middle, high : ndarray
        Smallest value, median and largest value of each piece, shape (pieces,), in the unit of the column.
    """

    edges: Values
    counts: Counts
    begin: Counts
    low: Values
    middle: Values
    high: Values


def column_quantiles(column: Column, probabilities: Sequence[float] = (0.5, 0.95, 0.99)) -> ColumnQuantiles:
    """Compute exact quantiles without keeping the values.

    The column is read twice, and sorted batch by batch. The first pass remembers every 256th value of each
    batch, and so knows an interval that certainly contains the value at a wanted rank; the second counts the
    values below each interval and keeps those inside: 1/256 of the column for each probability at most.

    Parameters
    ----------
    column : callable
        Gives the values from the first to the last each time it is called, in batches of shape (n,), all of
        them finite.
    probabilities : sequence of float
        Probabilities of the quantiles, each in [0, 1].

    Returns
    -------
    ColumnQuantiles
        Count, extremes and quantiles.

    Raises
    ------
    AnalysisError
        If a probability is out of range, or the column has no values.
    DataError
        If the values differ from one pass to the next.

    Examples
    --------
    >>> column_quantiles(lambda: iter([np.array([3.0, 1.0]), np.array([2.0])]), [0.25])
    ColumnQuantiles(count=3, smallest=1.0, largest=3.0, quantiles={0.25: 1.5})
    """
    if not all(0.0 <= p <= 1.0 for p in probabilities):
        message = f"cannot compute quantiles {list(probabilities)}: out of range"
        raise AnalysisError(message, hint="probabilities are in [0, 1]")
    remembered, weights = _remembered(column)
    count = int(weights[0].sum())
    if not count:
        message = "cannot compute quantiles: there are no values"
        raise AnalysisError(message, hint="choose a cell and a metric with at least one value")
    # As numpy places them, so that the last digit agrees.
    places = [(count - 1) * p for p in probabilities]
    ranks = np.array(
        sorted({rank for place in places for rank in (int(place), min(int(place) + 1, count - 1))})
    )
    # A remembered value is above as many as those before it stand for; at most so many more are below it.
    at_least, at_most = (np.cumsum(each) for each in weights)
    highs = remembered[np.searchsorted(at_least, ranks + 1)]
    lows = remembered[np.searchsorted(at_most - weights[1], ranks, side="right") - 1]
    value_at = dict(zip(ranks.tolist(), _at_ranks(column, count, ranks, (lows, highs)), strict=True))
    quantiles = {
        p: _between(value_at[int(place)], value_at[min(int(place) + 1, count - 1)], place - int(place))
        for p, place in zip(probabilities, places, strict=True)
    }
    smallest, largest = float(remembered[0]), float(remembered[-1])
    return ColumnQuantiles(count, smallest, largest, quantiles)


def column_shape(column: Column, edges: Values, count: int, pieces: int) -> ColumnShape:
    """Count the values between edges, and reduce the column to pieces that leave no extreme out.

    Parameters
    ----------
    column : callable
        As in `column_quantiles`.
    edges : ndarray
        Ascending, shape (bins + 1,), in the unit of the column. Values beyond them are in no bin.
    count : int
        Number of its values.
    pieces : int
        From 1 to `count`; their lengths differ by one value at most.

    Returns
    -------
    ColumnShape
        Of one pass.

    Raises
    ------
    DataError
        If the column has another number of values.
    """
    bounds = np.arange(pieces + 1, dtype=np.int64) * count // pieces
    sizes = np.diff(bounds).tolist()
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    rows: list[tuple[float, float, float]] = []
    waiting = np.empty(0)
    for values in column():
        counts += np.histogram(values, edges)[0]
        waiting = np.concatenate([waiting, values])
        while len(rows) < pieces and waiting.size >= (size := sizes[len(rows)]):
            piece, waiting = waiting[:size], waiting[size:]
            rows.append((piece.min(), np.median(piece), piece.max()))
    if len(rows) < pieces or waiting.size:
        raise _changed()
    low, middle, high = np.array(rows).T
    return ColumnShape(edges, counts, bounds[:-1], low, middle, high)


def _sorted_batches(column: Column) -> Iterator[Values]:
    """Give the values in sorted batches of equal size, but for the last."""
    waiting: list[Values] = []
    size = 0
    for values in column():
        waiting.append(values)
        size += values.size
        if size >= _BATCH:
            joined = np.concatenate(waiting)
            for begin in range(0, size - size % _BATCH, _BATCH):
                yield np.sort(joined[begin : begin + _BATCH])
            waiting, size = [joined[size - size % _BATCH :]], size % _BATCH
    if size:
        yield np.sort(np.concatenate(waiting))


def _remembered(column: Column) -> tuple[Values, Counts]:
    """Give every 256th value of each batch, sorted, the least and the largest among them.

    The first row of weights says how many values of its batch each stands for that are not above it, the
    second how many that are not below it.
    """
    found, weights = [np.empty(0)], [np.empty((2, 0), dtype=np.int64)]
    for values in _sorted_batches(column):
        places = np.append(np.arange(0, values.size - 1, _STEP), values.size - 1)
        found.append(values[places] + 0.0)
        steps = np.diff(places)
        weights.append(np.array([np.append(1, steps), np.append(steps, 1)]))
    joined = np.concatenate(found)
    order = np.argsort(joined)
    return joined[order], np.concatenate(weights, axis=1)[:, order]


def _at_ranks(column: Column, count: int, ranks: Counts, between: tuple[Values, Values]) -> list[float]:
    """Give the values at the ranks, each of which is inside its interval, ends included."""
    pairs = [(float(low), float(high)) for low, high in zip(*between, strict=True)]
    tallies = {pair: np.zeros(3, dtype=np.int64) for pair in pairs}
    kept: dict[tuple[float, float], list[Values]] = {pair: [] for pair in tallies}
    seen = 0
    for values in _sorted_batches(column):
        seen += values.size
        for low, high in tallies:
            begin, end = values.searchsorted(low, "right"), values.searchsorted(high, "left")
            tallies[low, high] += values.searchsorted(low, "left"), begin, values.searchsorted(high, "right")
            kept[low, high].append(values[begin:end].copy())
    if seen != count:
        raise _changed()
    found = []
    ordered = {pair: np.sort(np.concatenate(parts)) for pair, parts in kept.items()}
    for rank, (low, high) in zip(ranks.tolist(), pairs, strict=True):
        below, not_above, most = tallies[low, high].tolist()
        inside = ordered[low, high]
        if not below <= rank < most:
            raise _changed()
        place = rank - not_above
        found.append(low if place < 0 else float(inside[place]) if place < inside.size else high)
    return found


def _changed() -> DataError:
    message = "cannot summarise the values: they changed while they were read"
    return DataError(message, hint="repeat it when nothing writes the file", code="data.corrupt")


def _between(low: float, high: float, share: float) -> float:
    """Interpolate from the nearer end, as numpy does."""
    step = high - low
    if step == np.inf:
        return low * (1.0 - share) + high * share
    return high - step * (1.0 - share) if share >= 0.5 else low + step * share  # noqa: PLR2004 - half way
