"""Large tables of plain text read by column: what one row after the other would give, or nothing.

A table is read so where nothing about it needs a second look; any other is read row by row, which names what
is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.record.importers.delimited import number_of
from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    MEASURE,
    WARM_UP,
    ColumnarBatch,
    ForeignRun,
    RunColumns,
    Section,
    to_nanoseconds,
)
from steelyard.record.schema import measurements_schema
from steelyard.record.table_file import CODED, ahead, coded_schema, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import DTypeLike, NDArray

_NUMBER: Final = r"^(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_SIGNED: Final = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_WHOLE: Final = r"^\d{1,9}$"
_EXIT_CODE: Final = r"^(-?\d{1,9})?$"
_LONGEST_NUMBER: Final = 40
_MOST_DECIMALS: Final = 14
"""Of numbers that are read at once: with more, one with an exponent may only look whole."""
_ROUNDING: Final = 2.0**-51
"""Twice what reading a number and one product are rounded by, relatively."""
_UNNAMED: Final = "value"
_ROWS: Final = 1 << 16
_LONG: Final = 64
"""Rows of a stretch from which on it is taken by itself, not row by row."""
_RELEASED: Final = 8
"""Blocks after which the memory that Arrow keeps for further ones is given back: it would be a third."""
NOT_STATED: Final = np.iinfo(np.int64).min
"""In place of an exit code that a table does not tell."""
_OF_ROWS: Final = ("value", "iteration", "phase", "metric", "exit_code")
"""Roles that do not tell runs apart."""
Number = TypeVar("Number", bound=np.generic)
Column: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True, eq=False)
class SectionColumns(Sequence[Section]):
    """The sections of a run as columns of equal length.

    Parameters
    ----------
    unit : str
        Of all values.
    metric, phase : str or pyarrow.Array
        One text, where it is the same for all.
    printed : pyarrow.ChunkedArray
        Of texts.
    value, iteration : ndarray
        Shape (n,).
    """

    unit: str
    metric: str | pa.Array
    phase: str | pa.Array
    printed: Column
    value: NDArray[np.float64]
    iteration: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.value.size)

    @overload
    def __getitem__(self, place: int) -> Section: ...

    @overload
    def __getitem__(self, place: slice) -> list[Section]: ...

    def __getitem__(self, place: int | slice) -> Section | list[Section]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return Section(
            _text_at(self.metric, place),
            self.unit,
            float(self.value[place]),
            int(self.iteration[place]),
            _text_at(self.phase, place),
            self.printed[place].as_py(),
        )


def _taken(column: Column, rows: NDArray[np.int64]) -> pa.Array:
    """Take rows of a column in parts, part by part: Arrow joins all parts first, each time."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    ends = np.cumsum([len(part) for part in column.chunks])
    number = ends.searchsorted(rows, "right")
    order = np.argsort(number, kind="stable")
    found = []
    for begin, end in pairwise(stretch_bounds(number[order]).tolist()):
        part = column.chunk(int(number[order[begin]]))
        inside = rows[order[begin:end]] - (ends[number[order[begin]]] - len(part))
        found.append(part.take(pa.array(inside)))
    whole = pa.concat_arrays(found)
    if (number[1:] >= number[:-1]).all():
        return whole
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return whole.take(pa.array(back))


def _sliced(column: Column, stretches: Sequence[tuple[int, int]]) -> Column:
    """Take stretches of rows, each from its first row, hardly with a copy."""
    parts = [column.slice(begin, count) for begin, count in stretches]
    if isinstance(column, pa.Array):
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], column.type)


def _text_at(texts: str | pa.Array, place: int) -> str:
    return texts if isinstance(texts, str) else str(texts[place].as_py())


class ColumnarRuns(RunColumns):
    """The runs of a table that was read by column, in order of appearance.

    Parameters
    ----------
    rows : Rows
        All rows.
    levels_of : callable
        Gives the levels of a run from its texts by role.
    """

    def __init__(self, rows: Rows, levels_of: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
        self._rows = rows
        self._levels_of = levels_of
        keys = [role for role in rows.columns if role not in _OF_ROWS]
        number, starts = _stretches([rows.columns[role] for role in keys], len(rows.value))
        self._order: NDArray[np.int64] | None = None
        if (number[1:] <= number[:-1]).any():
            # The rows of a run need not stand together.
            sizes = np.diff(starts, append=len(rows.value))
            self._order = np.argsort(np.repeat(number, sizes), kind="stable")
            ordered = np.argsort(number, kind="stable")
            bounds = stretch_bounds(number[ordered])
            first = starts[ordered[bounds[:-1]]]
            ends = np.cumsum(np.add.reduceat(sizes[ordered], bounds[:-1]))
            self._bounds = np.concatenate(([0], ends))
        else:
            first, self._bounds = starts, np.append(starts, len(rows.value))
        self._keys = {role: rows.columns[role].take(pa.array(first)) for role in keys}
        self.exit_codes = self._exit_codes()
        self._iteration = self._counted() if "iteration" not in rows.columns and self._has_metrics else None

    def __len__(self) -> int:
        return int(self._bounds.size - 1)

    def _run(self, place: int) -> ForeignRun:
        texts = {role: column[place].as_py() for role, column in self._keys.items()}
        code = int(self.exit_codes[place])
        return ForeignRun(
            self._levels_of(texts),
            self._sections(place),
            block=texts.get("block", ""),
            exit_code=None if code == NOT_STATED else code,
        )

    @property
    def size(self) -> int:
        """Number of values of all runs."""
        return len(self._rows.value)

    def cells(self) -> list[dict[str, str]]:
        """Give levels of runs, in which each factor is named."""
        # The runs of one table have the same factors.
        return [self[0].levels] if len(self) else []

    def count(self, places: NDArray[np.int64]) -> int:
        """Give the number of values of some runs."""
        return int((self._bounds[places + 1] - self._bounds[places]).sum())

    def batches(self) -> Iterator[ColumnarBatch]:
        """Give the runs by cell and block, in order of appearance."""
        roles = [role for role in self._keys if role != "run"]
        number = _numbers([self._keys[role] for role in roles], len(self))
        order = np.argsort(number, kind="stable")
        bounds = stretch_bounds(number[order])
        for begin, end in pairwise(bounds.tolist()):
            places = order[begin:end]
            texts = {role: self._keys[role][int(places[0])].as_py() for role in roles}
            yield ColumnarBatch(self._levels_of(texts), texts.get("block", ""), places)

    def measurements(self, places: NDArray[np.int64], run_ids: pa.Array) -> Iterator[pa.Table]:
        """Give rows of the table of measurements, for some runs."""
        begins = self._bounds[places]
        sizes = self._bounds[places + 1] - begins
        ends = np.cumsum(sizes)
        for first in range(0, int(ends[-1]), _ROWS):
            last = min(first + _ROWS, int(ends[-1]))
            some = slice(
                int(ends.searchsorted(first, "right")), int(ends.searchsorted(last - 1, "right")) + 1
            )
            skipped = np.maximum(first - (ends[some] - sizes[some]), 0)
            counts = np.minimum(ends[some], last) - (ends[some] - sizes[some]) - skipped
            of_run = np.repeat(np.arange(counts.size), counts)
            inside = np.arange(last - first) + np.repeat(skipped - (np.cumsum(counts) - counts), counts)
            rows = np.repeat(begins[some], counts) + inside
            own = run_ids.slice(some.start, counts.size)
            ids = pa.DictionaryArray.from_arrays(pa.array(of_run.astype(np.int32)), own)
            yield self._table(ids, rows, inside)

    @property
    def _has_metrics(self) -> bool:
        return "metric" in self._rows.columns

    def _table(self, ids: pa.Array, rows: NDArray[np.int64], inside: NDArray[np.int64]) -> pa.Table:
        """Give rows by their places in the order of the runs, and inside their run."""
        found = self._rows
        cuts = np.flatnonzero(rows[1:] != rows[:-1] + 1) + 1
        if self._order is None and cuts.size * _LONG <= rows.size:
            stretches = [
                (int(rows[begin]), end - begin) for begin, end in pairwise([0, *cuts.tolist(), rows.size])
            ]

            def part(column: Column) -> Column:
                return _sliced(column, stretches)
        else:
            own = rows if self._order is None else self._order[rows]

            def part(column: Column) -> Column:
                return _taken(column, own)

        if "iteration" in found.columns:
            iteration = _whole_numbers(part(found.columns["iteration"]))
        else:
            iteration = (inside + 1).astype(np.int32) if self._iteration is None else self._iteration[rows]
        texts = {
            role: repeated(default, rows.size) if role not in found.columns else part(found.columns[role])
            for role, default in (("phase", MEASURE), ("metric", _UNNAMED))
        }
        columns = {
            **{role: text.cast(CODED) for role, text in texts.items()},
            "run_id": ids,
            "iteration": pa.array(iteration),
            "value": part(found.value),
            "unit": repeated(found.unit, rows.size),
            "printed": part(found.printed),
        }
        schema = coded_schema(measurements_schema({}), ("run_id", "phase", "metric", "unit"))
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def _sections(self, place: int) -> SectionColumns:
        begin, end = int(self._bounds[place]), int(self._bounds[place + 1])
        rows = np.arange(begin, end)
        table = self._table(repeated("", end - begin), rows, rows - begin).combine_chunks()
        return SectionColumns(
            self._rows.unit,
            table["metric"],
            table["phase"],
            table["printed"],
            table["value"].to_numpy(),
            table["iteration"].to_numpy(),
        )

    def _counted(self) -> NDArray[np.int32]:
        """Count the values of each metric of a run from 1, in the order of the runs."""
        codes = self._rows.columns["metric"].cast(pa.string()).dictionary_encode().indices.to_numpy()
        if self._order is not None:
            codes = codes[self._order]
        run = np.repeat(np.arange(len(self)), np.diff(self._bounds))
        key = run * (int(codes.max()) + 1) + codes
        order = np.argsort(key, kind="stable")
        bounds = stretch_bounds(key[order])
        counted = np.empty(codes.size, dtype=np.int32)
        begins = np.repeat(bounds[:-1], np.diff(bounds))
        counted[order] = np.arange(1, codes.size + 1) - begins
        return counted

    def _exit_codes(self) -> NDArray[np.int64]:
        """Give the first code of each run that is not 0, else 0; where none is told, that."""
        found = np.full(len(self), NOT_STATED)
        if "exit_code" not in self._rows.columns:
            return found
        column = self._rows.columns["exit_code"]
        texts = column.dictionary.cast(pa.string()).to_pylist()
        code = np.array([int(text) if text else NOT_STATED for text in texts])[column.indices.to_numpy()]
        if self._order is not None:
            code = code[self._order]
        run = np.repeat(np.arange(len(self)), np.diff(self._bounds))
        for chosen in (code == 0, (code != 0) & (code != NOT_STATED)):
            places = np.flatnonzero(chosen)[::-1]
            # Of several the last assignment stays, and so the first code.
            found[run[places]] = code[places]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a table, by column.

    Parameters
    ----------
    unit : str
        Of all values.
    value : pyarrow.ChunkedArray
        Of n numbers.
    printed : pyarrow.ChunkedArray
        Digits of the values.
    columns : dict
        Of texts by role, each a dictionary array of n.
    """

    unit: str
    value: pa.ChunkedArray
    printed: pa.ChunkedArray
    columns: dict[str, pa.DictionaryArray]


def columnar_rows(blocks: Iterable[Mapping[str, pa.Array]], unit: str) -> Rows | None:
    """Read a table by column.

    Parameters
    ----------
    blocks : iterable of Mapping
        Columns of texts by role, ``value`` among them, a part of the table at a time.
    unit : str
        Of the values: a time, which becomes ns, or any other.

    Returns
    -------
    Rows or None
        ``None`` where a row by row reader has to look.
    """
    values: list[pa.Array] = []
    printed: list[pa.Array] = []
    columns: dict[str, _Codes] = {}
    pool = pa.default_memory_pool()
    for block in ahead(blocks):
        found = read_values(block["value"], unit)
        if found is None:
            return None
        values.append(pa.array(found))
        # A copy is of the size of its texts; the reader leaves room for twice as many.
        printed.append(pa.concat_arrays([block["value"], block["value"].slice(0, 0)]))
        for role, column in block.items():
            if role != "value":
                columns.setdefault(role, _Codes()).add(column)
        if len(values) % _RELEASED == 0:
            pool.release_unused()
    whole = {role: codes.column() for role, codes in columns.items()}
    if not values or not _are_plain(whole):
        return None
    names = whole.get("metric")
    if names is not None:
        whole["metric"] = _or_value(names)
    unit = "ns" if unit in DECIMAL_EXPONENTS else unit
    return Rows(unit, pa.chunked_array(values), pa.chunked_array(printed), whole)


class _Codes:
    """A column of texts while it is read: a dictionary and small numbers for each block."""

    def __init__(self) -> None:
        self._texts: list[pa.Array] = []
        self._codes: list[NDArray[np.signedinteger]] = []

    def add(self, column: pa.Array) -> None:
        """Take a block."""
        encoded = column.dictionary_encode()
        self._texts.append(encoded.dictionary)
        self._codes.append(encoded.indices.to_numpy().astype(smallest_kind(len(encoded.dictionary))))

    def column(self) -> pa.DictionaryArray:
        """Give the whole column, and forget it."""
        texts = pa.concat_arrays(self._texts).dictionary_encode()
        places = texts.indices.to_numpy().astype(smallest_kind(len(texts.dictionary)))
        bounds = np.cumsum([0, *map(len, self._texts)])
        for number, codes in enumerate(self._codes):
            self._codes[number] = places[bounds[number] : bounds[number + 1]][codes]
        return pa.DictionaryArray.from_arrays(pa.array(joined(self._codes, places.dtype)), texts.dictionary)


def smallest_kind(size: int) -> type[np.signedinteger]:
    """Give the smallest kind of numbers below `size` that a dictionary can have."""
    kinds = (np.int8, np.int16, np.int32)
    return next((kind for kind in kinds if size <= np.iinfo(kind).max), np.int64)


def joined(parts: list[NDArray[Number]], kind: DTypeLike) -> NDArray[Number]:
    """Give the parts as one array; they are forgotten one by one, so that no two copies are kept."""
    whole = np.empty(sum(part.size for part in parts), dtype=kind)
    end = whole.size
    while parts:
        part = parts.pop()
        whole[end - part.size : end] = part
        end -= part.size
    return whole


def read_values(printed: pa.Array, unit: str) -> NDArray[np.float64] | None:
    """Give values as a row by row reader does, times in ns, or nothing where one needs a second look."""
    if not len(printed):
        return np.empty(0)
    is_time = unit in DECIMAL_EXPONENTS
    if pc.max(pc.binary_length(printed)).as_py() > _LONGEST_NUMBER:
        return None
    found = _short_numbers(printed, DECIMAL_EXPONENTS.get(unit, 0))
    if found is not None:
        return None if is_time and (found < 0).any() else found
    exponent = f"e{DECIMAL_EXPONENTS.get(unit, 0)}"
    try:
        values = pc.binary_join_element_wise(printed, exponent, "").cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return _values_with_exponents(printed, unit)
    # No value is minus zero.
    values = values + 0.0
    if not np.isfinite(values).all() or (is_time and (values < 0).any()):
        return None
    return cast("NDArray[np.float64]", values)


def _short_numbers(printed: pa.Array, exponent: int) -> NDArray[np.float64] | None:
    """Give short numbers times a power of ten, rounded once, or nothing where one is not short or no number.

    A number has fewer decimals than its text has signs. That many powers of ten make it whole: the nearest
    whole number is exact, and of two exact numbers a product or quotient is rounded once.

    References
    ----------
    .. [1] Clinger (1990), "How to read floating point numbers accurately", section 3 (fast path).
    """
    decimals = pc.max(pc.binary_length(printed)).as_py() - 1
    if decimals > _MOST_DECIMALS:
        return None
    try:
        read = printed.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    # Not what is far beyond a double's digits, nor what is no number.
    if not (np.abs(read) < 10.0**-decimals / _ROUNDING).all():
        return None
    scaled = read * 10.0**decimals
    whole = np.rint(scaled)
    # A number with an exponent may have more decimals, and then it is not whole.
    if not (np.abs(scaled - whole) <= np.abs(whole) * _ROUNDING).all():
        return None
    power = exponent - decimals
    # No value is minus zero.
    return cast("NDArray[np.float64]", (whole * 10.0**power if power > 0 else whole / 10.0**-power) + 0.0)


def _values_with_exponents(printed: pa.Array, unit: str) -> NDArray[np.float64] | None:
    """Give the values where some have an exponent of their own, or are no numbers."""
    is_time = unit in DECIMAL_EXPONENTS
    if not pc.all(pc.match_substring_regex(printed, _NUMBER if is_time else _SIGNED)).as_py():
        return None
    exponent = f"e{DECIMAL_EXPONENTS.get(unit, 0)}"
    has_own = pc.match_substring_regex(printed, "[eE]").to_numpy(zero_copy_only=False)
    plain = pc.if_else(pa.array(has_own), "0", printed) if has_own.any() else printed
    values = pc.binary_join_element_wise(plain, exponent, "").cast(pa.float64()).to_numpy()
    if has_own.any():
        values = values.copy()
        for place in np.flatnonzero(has_own):
            number = number_of(printed[int(place)].as_py())
            if number is None:
                return None
            values[place] = to_nanoseconds(number, unit) if is_time else float(number)
    # No value is minus zero.
    return cast("NDArray[np.float64]", values + 0.0)


def _are_plain(columns: Mapping[str, Column]) -> bool:
    """Whether the columns beside the values have nothing that is to be refused."""
    wanted = {"phase": rf"^({MEASURE}|{WARM_UP})$", "iteration": _WHOLE, "exit_code": _EXIT_CODE}
    return all(
        pc.all(pc.match_substring_regex(columns[role].dictionary, pattern)).as_py()
        for role, pattern in wanted.items()
        if role in columns
    )


def _stretches(
    columns: Sequence[pa.DictionaryArray], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Give the number of the run of each stretch of rows that agree in all columns, and where it begins."""
    is_new = np.zeros(size - 1, dtype=np.bool_)
    for column in columns:
        codes = column.indices.to_numpy()
        is_new |= codes[1:] != codes[:-1]
    starts = np.concatenate(([0], np.flatnonzero(is_new) + 1))
    if starts.size == size:
        return _numbers(columns, size), starts
    first = pa.array(starts)
    return _numbers([column.take(first) for column in columns], starts.size), starts


def stretch_bounds(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Give where stretches of equal values begin, and where the last one ends.

    Examples
    --------
    >>> stretch_bounds(np.array([7, 7, 3, 7])).tolist()
    [0, 2, 3, 4]
    """
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], changes, [values.size])) if values.size else np.zeros(1, dtype=np.int64)


def _numbers(columns: Sequence[pa.DictionaryArray], size: int) -> NDArray[np.int32]:
    """Give each combination of texts a number, in order of appearance."""
    found = np.zeros(size, dtype=np.int32)
    for column in columns:
        codes = found.astype(np.int64)
        codes *= max(len(column.dictionary), 1)
        codes += column.indices.to_numpy()
        found = pa.array(codes).dictionary_encode().indices.to_numpy()
    return found


def _or_value(metric: pa.DictionaryArray) -> pa.DictionaryArray:
    """Give the names of metrics, where an empty one is called ``value``."""
    names = pc.if_else(pc.equal(metric.dictionary, ""), _UNNAMED, metric.dictionary)
    return pa.DictionaryArray.from_arrays(metric.indices, names)


def _whole_numbers(column: pa.DictionaryArray) -> NDArray[np.int32]:
    numbers = column.dictionary.cast(pa.int32()).to_numpy()
    return cast("NDArray[np.int32]", numbers[column.indices.to_numpy()])
