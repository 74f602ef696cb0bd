"""Exact quantiles, a histogram and an envelope of values that do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from steelyard._native import LeadingBits, count_between, middle, value_of_key
from steelyard.errors import AnalysisError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]
    Counts: TypeAlias = NDArray[np.int64]
    Column: TypeAlias = Callable[[], Iterator[Values]]

_FIRST_BITS: Final = 18
"""Sign, exponent and 6 bits of the fraction: 2 MiB of counts."""
_NEXT_BITS: Final = 13
"""Of each pass that follows: 64 KiB of counts for each rank that is wanted."""
_BITS: Final = 64
_MOST_KEPT: Final = 1 << 20
"""Values that are kept once they are known to hold the wanted ranks: 8 MiB."""


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

    The first pass counts the values by the leading bits of their order. Each pass that follows counts those
    that share their leading bits with a wanted rank by the next bits, until they are few enough to be kept
    and sorted, or are all one value: two or three passes, and five at most.

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
    counted = _counted(column, LeadingBits(0, [0], _FIRST_BITS))
    count = int(counted.sum())
    if not count:
        message = "cannot compute quantiles: there are no values"
        raise AnalysisError(message, hint="choose a cell and a metric with at least one value")
    # As numpy places them, so that the last digit agrees.
    places = [(count - 1) * p for p in probabilities]
    ranks = {rank for place in places for rank in (int(place), min(int(place) + 1, count - 1))}
    value_at = _at_ranks(column, sorted(ranks | {0, count - 1}), counted)
    quantiles = {
        p: _between(value_at[int(place)], value_at[min(int(place) + 1, count - 1)], place - int(place))
        for p, place in zip(probabilities, places, strict=True)
    }
    return ColumnQuantiles(count, value_at[0], value_at[count - 1], quantiles)


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
        counts += count_between(values, edges)
        waiting = np.concatenate([waiting, values])
        while len(rows) < pieces and waiting.size >= (size := sizes[len(rows)]):
            piece, waiting = waiting[:size], waiting[size:]
            rows.append((piece.min(), middle(piece), piece.max()))
    if len(rows) < pieces or waiting.size:
        raise _changed()
    return ColumnShape(edges, counts, bounds[:-1], *np.array(rows).T)


def _counted(column: Column, bits: LeadingBits) -> Counts:
    for values in column():
        bits.add(values)
    return bits.counts


def _at_ranks(column: Column, ranks: Sequence[int], counts: Counts) -> dict[int, float]:
    """Give the values at the ranks, from the counts of all values by their first bits."""
    known, bits, digit = [0], 0, _FIRST_BITS
    rows, below = [0] * len(ranks), [0] * len(ranks)
    while True:
        sizes: dict[int, int] = {}
        leading = []
        for at, rank in enumerate(ranks):
            until = np.cumsum(counts[rows[at]])
            following = int(np.searchsorted(until, rank - below[at], side="right"))
            own = int(counts[rows[at], following])
            below[at] += int(until[following]) - own
            leading.append(known[rows[at]] << digit | following)
            sizes[leading[-1]] = own
        bits, known = bits + digit, sorted(sizes)
        rows = [known.index(each) for each in leading]
        if bits == _BITS:
            return {rank: value_of_key(key) for rank, key in zip(ranks, leading, strict=True)}
        digit = min(_NEXT_BITS, _BITS - bits)
        chosen = LeadingBits(bits, known, digit)
        expected = [sizes[each] for each in known]
        if sum(expected) <= _MOST_KEPT:
            kept = np.sort(np.concatenate([chosen.among(values) + 0.0 for values in column()]))
            if kept.size != sum(expected):
                raise _changed()
            begins = np.cumsum([0, *expected])
            places = zip(ranks, rows, below, strict=True)
            return {rank: float(kept[begins[row] + rank - least]) for rank, row, least in places}
        counts = _counted(column, chosen)
        if counts.sum(axis=1).tolist() != expected:
            raise _changed()


def _changed() -> DataError:
    message = "cannot summarise the values: they changed while they were read"
    return DataError(message, hint="repeat it when nothing writes the file", code="data.corrupt")


def _between(low: float, high: float, share: float) -> float:
    """Interpolate from the nearer end, as numpy does."""
    step = high - low
    if step == np.inf:
        return low * (1.0 - share) + high * share
    return high - step * (1.0 - share) if share >= 0.5 else low + step * share  # noqa: PLR2004 - half way
