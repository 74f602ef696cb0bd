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
    Keys: TypeAlias = NDArray[np.uint64]
    Counts: TypeAlias = NDArray[np.int64]
    Column: TypeAlias = Callable[[], Iterator[Values]]

_KEPT: Final = 1 << 22
"""Values that are kept in memory (32 MiB), so that no further pass is needed."""
_DIGIT: Final = 16
"""Bits of a key that one pass over the column settles; four passes settle all 64."""
_TOP: Final = np.uint64(1 << 63)


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
class Envelope:
    """What a column is between its first value and its last, piece by piece.

    Parameters
    ----------
    begin : ndarray
        Place of the first value of each piece, from 0, shape (pieces,).
    low, middle, high : ndarray
        Smallest value, median and largest value of each piece, shape (pieces,), in the unit of the column.
    """

    begin: Counts
    low: Values
    middle: Values
    high: Values


def column_quantiles(column: Column, probabilities: Sequence[float] = (0.5, 0.95, 0.99)) -> ColumnQuantiles:
    """Compute exact quantiles in bounded memory.

    The column is read up to four times. A pass counts the next 16 bits of the values (a radix selection),
    among those values alone that share the earlier bits with a wanted one.

    Parameters
    ----------
    column : callable
        Gives the values from the first to the last each time it is called, in batches of shape (n,), all of
        them finite. Batches of 2^17 values (1 MiB) stay in the cache while they are counted.
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
    top = np.zeros(1 << _DIGIT, dtype=np.int64)
    smallest, largest = np.inf, -np.inf
    for values in column():
        if values.size:
            top += _digits(_keys(values) >> np.uint64(48))
            smallest, largest = min(smallest, float(values.min())), max(largest, float(values.max()))
    count = int(top.sum())
    if not count:
        message = "cannot compute quantiles: there are no values"
        raise AnalysisError(message, hint="choose a cell and a metric with at least one value")
    # As numpy places them, so that the last digit agrees.
    places = [(count - 1) * p for p in probabilities]
    ranks = sorted({rank for place in places for rank in (int(place), min(int(place) + 1, count - 1))})
    value_at = dict(zip(ranks, _ordered(column, top, np.array(ranks)).tolist(), strict=True))
    quantiles = {
        p: _between(value_at[int(place)], value_at[min(int(place) + 1, count - 1)], place - int(place))
        for p, place in zip(probabilities, places, strict=True)
    }
    return ColumnQuantiles(count, smallest, largest, quantiles)


def column_histogram(column: Column, edges: Values) -> Counts:
    """Count the values between edges.

    Parameters
    ----------
    column : callable
        As in `column_quantiles`.
    edges : ndarray
        Ascending, shape (bins + 1,), in the unit of the column.

    Returns
    -------
    ndarray
        Values in each bin, shape (bins,); the last bin contains its right edge. Values beyond the edges are
        in none.
    """
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for values in column():
        counts += np.histogram(values, edges)[0]
    return counts


def column_envelope(column: Column, count: int, pieces: int) -> Envelope:
    """Reduce a column to pieces of equal length, without leaving out a smallest or a largest value.

    Parameters
    ----------
    column : callable
        As in `column_quantiles`.
    count : int
        Number of its values, at least `pieces`.
    pieces : int
        From 1; they differ by one value where `count` is not a multiple.

    Returns
    -------
    Envelope
        Of `pieces` pieces.

    Raises
    ------
    DataError
        If the column has another number of values.
    """
    bounds = np.arange(pieces + 1, dtype=np.int64) * count // pieces
    rows: list[tuple[float, float, float]] = []
    waiting: list[Values] = []
    size = 0
    for values in column():
        waiting.append(values)
        size += values.size
        while len(rows) < pieces and size >= (wanted := int(bounds[len(rows) + 1] - bounds[len(rows)])):
            joined = np.concatenate(waiting)
            piece, size = joined[:wanted], size - wanted
            waiting = [joined[wanted:]]
            rows.append((piece.min(), np.median(piece), piece.max()))
    if len(rows) < pieces or size:
        raise _changed()
    low, middle, high = np.array(rows).T
    return Envelope(bounds[:-1], low, middle, high)


def _ordered(column: Column, top: Counts, ranks: Counts) -> Values:
    """Give the values at the ranks, settling their keys digit by digit."""
    tallies = {0: top}
    prefixes, left = _settle(tallies, np.zeros(len(ranks), dtype=np.uint64), ranks)
    for shift in (32, 16, 0):
        expected = _members(tallies, prefixes)
        tallies = {prefix: np.zeros(1 << _DIGIT, dtype=np.int64) for prefix in expected}
        kept: dict[int, list[Keys]] | None = None
        if sum(expected.values()) <= _KEPT:
            kept = {prefix: [] for prefix in expected}
        for values in column():
            _take(_keys(values), shift, tallies, kept)
        if any(tally.sum() != expected[prefix] for prefix, tally in tallies.items()):
            raise _changed()
        if kept is not None:
            ordered = {prefix: np.sort(np.concatenate(parts)) for prefix, parts in kept.items()}
            pairs = zip(prefixes.tolist(), left.tolist(), strict=True)
            prefixes = np.array([ordered[prefix][rank] for prefix, rank in pairs], dtype=np.uint64)
            break
        prefixes, left = _settle(tallies, prefixes, left)
    bits = np.where(prefixes >= _TOP, prefixes ^ _TOP, ~prefixes)
    return bits.view(np.float64)


def _changed() -> DataError:
    message = "cannot summarise the values: they changed while they were read"
    return DataError(message, hint="repeat it when nothing writes the file", code="data.corrupt")


def _take(keys: Keys, shift: int, tallies: dict[int, Counts], kept: dict[int, list[Keys]] | None) -> None:
    """Count the next digit of the keys that have a wanted prefix, and keep them if they are few."""
    heads = keys >> np.uint64(shift + _DIGIT)
    for prefix, tally in tallies.items():
        chosen = keys[heads == np.uint64(prefix)]
        if len(chosen):
            np.add(tally, _digits((chosen >> np.uint64(shift)) & np.uint64(0xFFFF)), out=tally)
            if kept is not None:
                kept[prefix].append(chosen)


def _settle(tallies: dict[int, Counts], prefixes: Keys, left: Counts) -> tuple[Keys, Counts]:
    """Append to each prefix the digit under which its rank lies, and give the rank below that digit."""
    longer, rest = [], []
    for prefix, rank in zip(prefixes.tolist(), left.tolist(), strict=True):
        ends = np.cumsum(tallies[prefix])
        digit = int(np.searchsorted(ends, rank, side="right"))
        longer.append((prefix << _DIGIT) | digit)
        rest.append(rank - (int(ends[digit - 1]) if digit else 0))
    return np.array(longer, dtype=np.uint64), np.array(rest, dtype=np.int64)


def _members(tallies: dict[int, Counts], prefixes: Keys) -> dict[int, int]:
    """Give how many values have each prefix, of what the pass before counted."""
    return {
        prefix: int(tallies[prefix >> _DIGIT][prefix & ((1 << _DIGIT) - 1)]) for prefix in prefixes.tolist()
    }


def _keys(values: Values) -> Keys:
    """Give whole numbers in the order of the values; both zeros are one."""
    bits = (values + 0.0).view(np.uint64)
    return bits ^ ((bits.view(np.int64) >> 63).view(np.uint64) | _TOP)


def _digits(digits: Keys) -> Counts:
    """Count 16-bit digits."""
    return np.bincount(digits.astype(np.int64), minlength=1 << _DIGIT)


def _between(low: float, high: float, share: float) -> float:
    """Interpolate from the nearer end, as numpy does."""
    step = high - low
    if step == np.inf:
        return low * (1.0 - share) + high * share
    return high - step * (1.0 - share) if share >= 0.5 else low + step * share  # noqa: PLR2004 - half way
