"""Exact quantiles and a histogram of a Parquet column that does not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import AnalysisError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Keys = NDArray[np.uint64]

_BATCH: Final = 1 << 17
"""Values that are read at once (1 MiB): they stay in the cache while they are counted."""
_KEPT: Final = 1 << 22
"""Values that are kept in memory (32 MiB), so that no further pass is needed."""
_DIGIT: Final = 16
"""Bits of a key that one pass over the file settles; four passes settle all 64."""
_TOP: Final = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class ColumnQuantiles:
    """What is known of the values of a column.

    Parameters
    ----------
    count : int
        Number of values.
    smallest, largest : float
        Extremes, in the unit of the column.
    quantiles : dict of float to float
        Exact quantiles by probability, of type 7 (Hyndman and Fan 1996), as `numpy.quantile` gives them.
    edges : numpy.ndarray
        Edges of the bins of the histogram, shape (bins + 1,), in the unit of the column; equally wide from
        the smallest value to the largest. There is one bin where the values are too close for more.
    counts : numpy.ndarray
        Values in each bin, shape (bins,); the last bin contains its right edge.
    """

    count: int
    smallest: float
    largest: float
    quantiles: dict[float, float]
    edges: Values
    counts: NDArray[np.int64]


def column_quantiles(
    path: Path, column: str, *, probabilities: Sequence[float] = (0.5, 0.95, 0.99), bins: int = 100
) -> ColumnQuantiles:
    """Compute exact quantiles and a histogram of a numeric column in bounded memory.

    The file is read up to four times, each time in batches. A pass counts the next 16 bits of the values
    (a radix selection), among those values alone that share the earlier bits with a wanted one.

    Parameters
    ----------
    path : Path
        A Parquet file.
    column : str
        A column of numbers without nulls; whole numbers are read as 64-bit floating-point numbers.
    probabilities : sequence of float
        Probabilities of the quantiles, each in [0, 1].
    bins : int
        Bins of the histogram, at least 1.

    Returns
    -------
    ColumnQuantiles
        Count, extremes, quantiles and histogram.

    Raises
    ------
    AnalysisError
        If a probability or `bins` is out of range, or the column has no values.
    DataError
        If the file cannot be read as Parquet, has no such column, or the column contains something else than
        finite numbers.
    """
    if bins < 1 or not all(0.0 <= p <= 1.0 for p in probabilities):
        message = f"cannot compute quantiles {list(probabilities)} and {bins} bins: out of range"
        raise AnalysisError(message, hint="probabilities are in [0, 1]; there is at least one bin")
    top = np.zeros(1 << _DIGIT, dtype=np.int64)
    smallest, largest = np.inf, -np.inf
    for values in _batches(path, column):
        top += _digits(_keys(values) >> np.uint64(48))
        smallest, largest = min(smallest, float(values.min())), max(largest, float(values.max()))
    count = int(top.sum())
    if not count:
        message = f"cannot compute quantiles of column `{column}` of `{path}`: it has no values"
        raise AnalysisError(message, hint="choose a file with at least one row")
    # As numpy places them, so that the last digit agrees.
    places = [(count - 1) * p for p in probabilities]
    ranks = np.array(
        sorted({rank for place in places for rank in (int(place), min(int(place) + 1, count - 1))})
    )
    edges = _edges(smallest, largest, bins)
    ordered, counts = _second_to_last_pass(path, column, top, ranks, edges)
    value_at = dict(zip(ranks.tolist(), ordered.tolist(), strict=True))
    quantiles = {
        p: _between(value_at[int(place)], value_at[min(int(place) + 1, count - 1)], place - int(place))
        for p, place in zip(probabilities, places, strict=True)
    }
    return ColumnQuantiles(count, smallest, largest, quantiles, edges, counts)


def _second_to_last_pass(
    path: Path, column: str, top: NDArray[np.int64], ranks: NDArray[np.int64], edges: Values
) -> tuple[Values, NDArray[np.int64]]:
    """Settle the keys at the ranks digit by digit; the first of these passes fills the histogram too."""
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    tallies = {0: top}
    prefixes, left = _settle(tallies, np.zeros(len(ranks), dtype=np.uint64), ranks)
    for shift in (32, 16, 0):
        expected = _members(tallies, prefixes)
        tallies = {prefix: np.zeros(1 << _DIGIT, dtype=np.int64) for prefix in expected}
        kept: dict[int, list[Keys]] | None = None
        if sum(expected.values()) <= _KEPT:
            kept = {prefix: [] for prefix in expected}
        for values in _batches(path, column):
            _take(_keys(values), shift, tallies, kept)
            if shift == 32:  # noqa: PLR2004 - the first of the three
                # One bin has all: numpy refuses a range that is too narrow or too wide.
                one = np.array([len(values)])
                counts += (
                    np.histogram(values, len(counts), (edges[0], edges[-1]))[0] if len(counts) > 1 else one
                )
        if any(tally.sum() != expected[prefix] for prefix, tally in tallies.items()):
            message = f"cannot compute quantiles of `{path}`: it changed while it was read"
            raise DataError(message, hint="repeat it when nothing writes the file")
        if kept is not None:
            ordered = {prefix: np.sort(np.concatenate(parts)) for prefix, parts in kept.items()}
            pairs = zip(prefixes.tolist(), left.tolist(), strict=True)
            prefixes = np.array([ordered[prefix][rank] for prefix, rank in pairs], dtype=np.uint64)
            break
        prefixes, left = _settle(tallies, prefixes, left)
    bits = np.where(prefixes >= _TOP, prefixes ^ _TOP, ~prefixes)
    return bits.view(np.float64), counts


def _take(
    keys: Keys, shift: int, tallies: dict[int, NDArray[np.int64]], kept: dict[int, list[Keys]] | None
) -> None:
    """Count the next digit of the keys that have a wanted prefix, and keep them if they are few."""
    heads = keys >> np.uint64(shift + _DIGIT)
    for prefix, tally in tallies.items():
        chosen = keys[heads == np.uint64(prefix)]
        if len(chosen):
            np.add(tally, _digits((chosen >> np.uint64(shift)) & np.uint64(0xFFFF)), out=tally)
            if kept is not None:
                kept[prefix].append(chosen)


def _settle(
    tallies: dict[int, NDArray[np.int64]], prefixes: Keys, left: NDArray[np.int64]
) -> tuple[Keys, NDArray[np.int64]]:
    """Append to each prefix the digit under which its rank lies, and give the rank below that digit."""
    longer, rest = [], []
    for prefix, rank in zip(prefixes.tolist(), left.tolist(), strict=True):
        ends = np.cumsum(tallies[prefix])
        digit = int(np.searchsorted(ends, rank, side="right"))
        longer.append((prefix << _DIGIT) | digit)
        rest.append(rank - (int(ends[digit - 1]) if digit else 0))
    return np.array(longer, dtype=np.uint64), np.array(rest, dtype=np.int64)


def _members(tallies: dict[int, NDArray[np.int64]], prefixes: Keys) -> dict[int, int]:
    """Give how many values have each prefix, of what the pass before counted."""
    return {
        prefix: int(tallies[prefix >> _DIGIT][prefix & ((1 << _DIGIT) - 1)]) for prefix in prefixes.tolist()
    }


def _keys(values: Values) -> Keys:
    """Give whole numbers in the order of the values; both zeros are one."""
    bits = (values + 0.0).view(np.uint64)
    return bits ^ ((bits.view(np.int64) >> 63).view(np.uint64) | _TOP)


def _digits(digits: Keys) -> NDArray[np.int64]:
    """Count 16-bit digits."""
    return np.bincount(digits.astype(np.int64), minlength=1 << _DIGIT)


def _between(low: float, high: float, share: float) -> float:
    """Interpolate from the nearer end, as numpy does."""
    step = high - low
    if step == np.inf:
        return low * (1.0 - share) + high * share
    return high - step * (1.0 - share) if share >= 0.5 else low + step * share  # noqa: PLR2004 - half way


def _edges(smallest: float, largest: float, bins: int) -> Values:
    """Give the edges of equally wide bins, or of one where they would not differ or not be finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(smallest, largest, bins + 1)
    if np.isfinite(edges).all() and (np.diff(edges) > 0).all():
        return edges
    return np.array([smallest, largest])


def _batches(path: Path, column: str) -> Iterator[Values]:
    """Read a column a part at a time, and refuse what is not a finite number."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            if column not in file.schema_arrow.names:
                message = f"`{path}` has no column `{column}`"
                raise DataError(message, hint=f"columns: {', '.join(file.schema_arrow.names)}")
            kind = file.schema_arrow.field(column).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                message = f"column `{column}` of `{path}` contains {kind}, not numbers"
                raise DataError(message, hint="choose a column of whole or floating-point numbers")
            yield from _finite(path, column, file.iter_batches(_BATCH, columns=[column], use_threads=False))
    except (pa.ArrowException, OSError) as error:
        message = f"cannot read `{path}` as Parquet: {str(error).splitlines()[0]}"
        raise DataError(message, hint="write the file again", code="data.corrupt") from error


def _finite(path: Path, column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Values]:
    """Give the values of each batch that has some."""
    first = 1
    for batch in batches:
        values = batch.column(0).cast(pa.float64()).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            message = f"column `{column}` of `{path}` has no finite number in row {first + int(wrong[0])}"
            raise DataError(message, hint="remove rows with null, NaN or infinity")
        first += len(values)
        if len(values):
            yield values
