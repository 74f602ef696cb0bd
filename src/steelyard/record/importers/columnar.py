"""Large tables of plain text read by column: what one row after the other would give, or nothing.

A table is read so where nothing about it needs a second look; any other is read row by row, which names what
is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.record.importers.delimited import number_of
from steelyard.record.importers.foreign import DECIMAL_EXPONENTS, MEASURE, WARM_UP, Section, to_nanoseconds
from steelyard.record.schema import measurements_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_STRANGE: Final = re.compile(rb'["\x00\x0b\x0c\x1c-\x1f\x80-\xff]|\r(?!\n)')
"""Quotes, letters beyond ASCII, and what some readers take for the end of a line, or for nothing."""
_BLANK: Final = re.compile(rb"[ \t]")
_NUMBER: Final = r"^(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_SIGNED: Final = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_WHOLE: Final = r"^\d{1,9}$"
_EXIT_CODE: Final = r"^(-?\d{1,9})?$"
_LONGEST_NUMBER: Final = 40
_UNNAMED: Final = "value"
_BLOCK_BYTES: Final = 1 << 22
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

    def table(self, run_id: str) -> pa.Table:
        """Give them as rows of the table of measurements."""
        schema = measurements_schema({})
        columns = {
            "run_id": pa.repeat(run_id, len(self)),
            "iteration": pa.array(self.iteration),
            "phase": self._column(self.phase),
            "metric": self._column(self.metric),
            "value": pa.array(self.value),
            "unit": pa.repeat(self.unit, len(self)),
            "printed": self.printed,
        }
        return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)

    def _column(self, texts: str | pa.Array) -> pa.Array:
        return pa.repeat(texts, len(self)) if isinstance(texts, str) else texts


def _text_at(texts: str | pa.Array, place: int) -> str:
    return texts if isinstance(texts, str) else str(texts[place].as_py())


@dataclass(frozen=True, slots=True, eq=False)
class ColumnarRun:
    """The rows of one run.

    Parameters
    ----------
    texts : dict
        What all of them have in the columns that tell runs apart.
    exit_code : int or None
        The first that is not 0, where the table has one.
    sections : SectionColumns
        What was measured.
    """

    texts: dict[str, str]
    exit_code: int | None
    sections: SectionColumns


def columnar_runs(
    content: memoryview, delimiter: str, names: Sequence[str], places: Mapping[str, int], unit: str
) -> list[ColumnarRun] | None:
    """Read a table by column.

    Parameters
    ----------
    content : memoryview
        Its lines, without that of the headings.
    delimiter : str
        One character.
    names : sequence of str
        Headings; a row has as many fields.
    places : Mapping
        Position of each role, ``value`` among them.
    unit : str
        Of the values: a time, which becomes ns, or any other.

    Returns
    -------
    list of ColumnarRun or None
        In order of appearance; ``None`` where a row by row reader has to look.
    """
    if _STRANGE.search(content):
        return None
    columns = _read(content, delimiter, len(names), places)
    if columns is None or not len(columns["value"]) or not _are_plain(columns):
        return None
    values = _values(columns["value"], unit)
    return None if values is None else list(_runs(columns, values, unit))


def _read(
    content: memoryview, delimiter: str, width: int, places: Mapping[str, int]
) -> dict[str, Column] | None:
    from pyarrow import csv  # noqa: PLC0415 - start-up time

    kinds = {
        str(place): pa.string() if role == "value" else pa.dictionary(pa.int32(), pa.string())
        for role, place in places.items()
    }
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(content)),
            csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=[str(place) for place in range(width)],
            ),
            csv.ParseOptions(delimiter=delimiter, quote_char=False),
            csv.ConvertOptions(
                column_types=kinds, include_columns=[*kinds], strings_can_be_null=False, null_values=[]
            ),
        )
    except pa.ArrowException:
        return None
    has_blanks = _BLANK.search(content) is not None
    return {role: _trimmed(table[str(place)], has_blanks=has_blanks) for role, place in places.items()}


def _trimmed(found: pa.ChunkedArray, *, has_blanks: bool) -> Column:
    """Give the texts without blanks around them: values in their parts, other columns in one."""
    if not pa.types.is_dictionary(found.type):
        return pc.ascii_trim_whitespace(found) if has_blanks else found
    column = found.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    texts = pc.ascii_trim_whitespace(column.dictionary).dictionary_encode()
    # Two texts that differ in blanks alone are one.
    indices = texts.indices.take(column.indices)
    return pa.DictionaryArray.from_arrays(indices, texts.dictionary)


def _values(printed: pa.ChunkedArray, unit: str) -> NDArray[np.float64] | None:
    """Give the values, each rounded once from its digits; ``None`` if one is no plain number."""
    found = np.empty(len(printed))
    end = 0
    for part in printed.chunks:
        values = _values_of(part, unit)
        if values is None:
            return None
        found[end : (end := end + len(part))] = values
    return found


def _values_of(printed: pa.Array, unit: str) -> NDArray[np.float64] | None:
    if not len(printed):
        return np.empty(0)
    is_time = unit in DECIMAL_EXPONENTS
    if pc.max(pc.binary_length(printed)).as_py() > _LONGEST_NUMBER:
        return None
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


def _runs(columns: Mapping[str, Column], values: NDArray[np.float64], unit: str) -> Iterator[ColumnarRun]:
    """Give the runs, whose rows need not stand together."""
    keys = [role for role in columns if role not in {"value", "iteration", "phase", "metric", "exit_code"}]
    number = _numbers([columns[role] for role in keys], values.size)
    order = None
    if (number[1:] < number[:-1]).any():
        order = np.argsort(number, kind="stable")
        number, values = number[order], values[order]
    sorted_columns = {
        role: column if order is None else column.take(pa.array(order)) for role, column in columns.items()
    }
    bounds = stretch_bounds(number)
    metric = sorted_columns.get("metric")
    metrics = None if metric is None else _or_value(metric)
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        size = end - begin
        part = {role: column.slice(begin, size) for role, column in sorted_columns.items()}
        of_metric = _UNNAMED if metrics is None else metrics.slice(begin, size)
        yield ColumnarRun(
            {role: part[role][0].as_py() for role in keys},
            _exit_code(part["exit_code"]) if "exit_code" in part else None,
            SectionColumns(
                unit="ns" if unit in DECIMAL_EXPONENTS else unit,
                metric=of_metric,
                phase=part.get("phase", MEASURE),
                printed=part["value"],
                value=values[begin:end],
                iteration=_iterations(part.get("iteration"), of_metric, size),
            ),
        )


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


def _iterations(given: pa.Array | None, metric: str | pa.DictionaryArray, size: int) -> NDArray[np.int32]:
    """Give the iterations as the table has them, else count the values of each metric from 1."""
    if given is not None:
        numbers = given.dictionary.cast(pa.int32()).to_numpy()
        return cast("NDArray[np.int32]", numbers[given.indices.to_numpy()])
    counted = np.arange(1, size + 1, dtype=np.int32)
    if isinstance(metric, str):
        return counted
    codes = metric.cast(pa.string()).dictionary_encode().indices.to_numpy()
    for code in range(int(codes.max()) + 1):
        (places,) = np.nonzero(codes == code)
        counted[places] = np.arange(1, places.size + 1, dtype=np.int32)
    return counted


def _exit_code(column: pa.DictionaryArray) -> int | None:
    codes = [int(text) for text in dict.fromkeys(column.cast(pa.string()).to_pylist()) if text]
    return next((code for code in codes if code), 0) if codes else None
