"""The runs of a file of many points that was read by column; a point has one value or several.

What a row by row reader keeps as objects stands here in columns of digits and small numbers, and becomes
sections where it is written: 10^7 points are some hundred megabytes.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from steelyard.record.importers.columnar import NOT_STATED, joined, read_values, smallest_kind, stretch_bounds
from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    MEASURE,
    ColumnarBatch,
    ForeignRun,
    RunColumns,
    Section,
    to_nanoseconds,
)
from steelyard.record.schema import measurements_schema
from steelyard.record.table_file import CODED, coded_schema, repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_ROWS: Final = 1 << 16
_RUN_BITS: Final = 32
"""Of the key that tells the series of a run apart."""
_VALUES: Final = pa.schema(
    [
        ("metric", CODED),
        ("unit", CODED),
        ("value", pa.float64()),
        ("printed", pa.string()),
        ("iteration", pa.int32()),
    ]
)


class Points:
    """Points while they are read, a block at a time."""

    def __init__(self) -> None:
        self.parts: list[pa.RecordBatch] = []
        self._runs: list[NDArray[np.signedinteger]] = []
        self._counts: dict[int, int] = {}

    def numbered(self, run: NDArray[np.int64], series: NDArray[np.int64] | int) -> NDArray[np.int32]:
        """Count the points of each series of a run from 1, on from the blocks before.

        Parameters
        ----------
        run : ndarray
            Number of the run of each point, shape (n,).
        series : ndarray or int
            Number of its series, below 2^31.
        """
        keys = pa.array((run << _RUN_BITS) + series).dictionary_encode()
        known = keys.dictionary.to_pylist()
        codes = keys.indices.to_numpy().astype(smallest_kind(len(known)))
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=len(known))
        before = np.array([self._counts.get(key, 0) for key in known], dtype=np.int64)
        counted = np.empty(codes.size, dtype=np.int32)
        first = np.cumsum(sizes) - sizes
        counted[order] = np.arange(1, codes.size + 1) + np.repeat(before - first, sizes)
        self._counts.update(zip(known, (before + sizes).tolist(), strict=True))
        return counted

    def add(self, run: NDArray[np.int64], columns: Mapping[str, pa.Array]) -> None:
        """Take points, with the number of the run of each."""
        if run.size:
            self._runs.append(run.astype(smallest_kind(int(run.max()) + 1)))
            self.parts.append(pa.record_batch(dict(columns)))

    def run_of_each(self) -> NDArray[np.signedinteger]:
        """Give the number of the run of each point, and forget it."""
        kind = np.result_type(np.int8, *self._runs)
        return joined(self._runs, kind)


def combined(columns: Sequence[pa.Array], number_of: Callable[..., int]) -> NDArray[np.int64]:
    """Give a number for the texts of each row, asked for once for equal rows, in order of appearance.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Of texts, shape (n,) each.
    number_of : callable
        Takes a text of each column.
    """
    coded = [column.dictionary_encode() for column in columns]
    sizes = [max(len(each.dictionary), 1) for each in coded]
    rows = np.ravel_multi_index([each.indices.to_numpy() for each in coded], sizes)
    found = pa.array(rows).dictionary_encode()
    numbers = [
        number_of(*(each.dictionary[int(place)].as_py() for each, place in zip(coded, places, strict=True)))
        for places in zip(*np.unravel_index(found.dictionary.to_numpy(), sizes), strict=True)
    ]
    number: NDArray[np.int64] = np.array(numbers, dtype=np.int64)[found.indices.to_numpy()]
    return number


class PointRuns(RunColumns):
    """Runs of points, in order of appearance.

    Parameters
    ----------
    levels : sequence of dict
        Cell of each run.
    endings : sequence of sequence of Section
        What each run has behind its points.
    points : Points
        All points; the column ``iteration`` is among theirs.
    values_of : callable
        Gives the values of some points as `value_columns` does, `width` for each point.
    width : int
        Values of a point.
    """

    def __init__(
        self,
        levels: Sequence[dict[str, str]],
        endings: Sequence[Sequence[Section]],
        points: Points,
        values_of: Callable[[pa.RecordBatch], dict[str, pa.Array]],
        width: int = 1,
    ) -> None:
        self._levels = levels
        self._endings = endings
        self._values_of = values_of
        self._width = width
        self._parts = points.parts
        self._ends = np.cumsum([len(part) for part in points.parts], dtype=np.int64)
        run = points.run_of_each()
        counts = np.bincount(run, minlength=len(levels))
        self._bounds = np.concatenate(([0], np.cumsum(counts)))
        self._sizes = counts * width + np.array([len(each) for each in endings], dtype=np.int64)
        # Runs one behind the other, or one alone, have their points in order.
        self._order: NDArray[np.uint32] | None = None
        if (run[1:] < run[:-1]).any():
            self._order = np.argsort(run, kind="stable").astype(np.uint32)
        self.exit_codes = np.full(len(levels), NOT_STATED)

    def __len__(self) -> int:
        return len(self._levels)

    def _run(self, place: int) -> ForeignRun:
        tables = list(self.measurements(np.array([place]), pa.array([""])))
        columns = ("metric", "unit", "value", "iteration", "phase", "printed")
        sections = [
            Section(*row)
            for table in tables
            for row in zip(*(table[name].to_pylist() for name in columns), strict=True)
        ]
        return ForeignRun(self._levels[place], sections)

    @property
    def size(self) -> int:
        """Number of values of all runs."""
        return int(self._sizes.sum())

    def cells(self) -> Sequence[dict[str, str]]:
        """Give levels of runs, in which each factor is named."""
        return self._levels

    def count(self, places: NDArray[np.int64]) -> int:
        """Give the number of values of some runs."""
        return int(self._sizes[places].sum())

    def batches(self) -> Iterator[ColumnarBatch]:
        """Give the runs by cell and block, in order of appearance."""
        for place, levels in enumerate(self._levels):
            if self._sizes[place]:
                yield ColumnarBatch(levels, "", np.array([place]))

    def measurements(self, places: NDArray[np.int64], run_ids: pa.Array) -> Iterator[pa.Table]:
        """Give rows of the table of measurements, for some runs."""
        begins = self._bounds[places]
        counts = self._bounds[places + 1] - begins
        ends = np.cumsum(counts)
        most = _ROWS // self._width
        first = 0
        while first < places.size:
            # As many whole runs as fit, or one in parts.
            passed = int(ends[first] - counts[first])
            last = max(int(ends.searchsorted(passed + most, "right")), first + 1)
            some = slice(first, last)
            inside = np.arange(ends[last - 1] - passed)
            rows = inside + np.repeat(begins[some] - (ends[some] - counts[some] - passed), counts[some])
            owner = np.repeat(np.arange(last - first), counts[some])
            ids = run_ids.slice(first, last - first)
            for begin in range(0, max(rows.size, 1), most):
                part = slice(begin, begin + most)
                is_last = begin + most >= rows.size
                endings = [self._endings[place] for place in places[some]] if is_last else []
                yield self._table(rows[part], owner[part], endings, ids)
            first = last

    def _table(
        self,
        rows: NDArray[np.int64],
        owner: NDArray[np.int64],
        endings: Sequence[Sequence[Section]],
        ids: pa.Array,
    ) -> pa.Table:
        """Give points by their places in the order of the runs, then the endings of these runs."""
        own = rows if self._order is None else self._order[rows].astype(np.int64)
        by_part = np.argsort(own, kind="stable")
        own, owner = own[by_part], owner[by_part]
        number = self._ends.searchsorted(own, "right")
        found = [_of_sections([section for each in endings for section in each])]
        for begin, end in reversed(list(pairwise(stretch_bounds(number).tolist()))):
            part = self._parts[number[begin]]
            inside = own[begin:end] - (self._ends[number[begin]] - len(part))
            points = part.take(pa.array(inside))
            iteration = np.repeat(points["iteration"].to_numpy(), self._width)
            columns = {**self._values_of(points), "iteration": pa.array(iteration)}
            found.insert(0, pa.table(columns, schema=_VALUES))
        owner = np.repeat(owner, self._width)
        owner = np.concatenate((owner, np.repeat(np.arange(len(endings)), [len(each) for each in endings])))
        values = pa.concat_tables(found).unify_dictionaries().combine_chunks()
        if (owner[1:] < owner[:-1]).any():
            order = np.argsort(owner, kind="stable")
            values, owner = values.take(pa.array(order)), owner[order]
        columns = {
            **{name: values[name] for name in values.column_names},
            "run_id": pa.DictionaryArray.from_arrays(pa.array(owner.astype(np.int32)), ids),
            "phase": repeated(MEASURE, owner.size),
        }
        schema = coded_schema(measurements_schema({}), ("run_id", "phase", "metric", "unit"))
        return pa.table([columns[name] for name in schema.names], schema=schema)


def _of_sections(sections: Sequence[Section]) -> pa.Table:
    columns = {
        name: pa.array([getattr(each, name) for each in sections], pa.string() if kind == CODED else kind)
        for name, kind in zip(_VALUES.names, _VALUES.types, strict=True)
    }
    return pa.table({name: column.cast(_VALUES.field(name).type) for name, column in columns.items()})


def value_columns(
    printed: pa.Array, metric: NDArray[np.integer], units: Mapping[str, str]
) -> dict[str, pa.Array]:
    """Give metric, unit, value and digits of some values.

    Parameters
    ----------
    printed : pyarrow.Array
        Their digits, shape (n,), each a finite number as Python writes it.
    metric : ndarray
        Number of the metric of each, shape (n,).
    units : Mapping
        Unit of each metric, in the order of their numbers.
    """
    given = list(units.values())
    value = np.empty(len(printed))
    for unit in set(given):
        is_own = np.array([each == unit for each in given])[metric]
        if is_own.any():
            value[is_own] = _exact(printed.filter(pa.array(is_own)), unit)
    kept = ["ns" if each in DECIMAL_EXPONENTS else each or "count" for each in given]
    known = list(dict.fromkeys(kept))
    of_metric = np.array([known.index(each) for each in kept], dtype=np.int32)
    return {
        "metric": pa.DictionaryArray.from_arrays(pa.array(metric.astype(np.int32)), pa.array(list(units))),
        "unit": pa.DictionaryArray.from_arrays(pa.array(of_metric[metric]), pa.array(known)),
        "value": pa.array(value),
        "printed": printed,
    }


def _exact(printed: pa.Array, unit: str) -> NDArray[np.float64]:
    found = read_values(printed, unit)
    if found is not None:
        return found
    numbers = [Decimal(text) for text in printed.to_pylist()]
    if unit in DECIMAL_EXPONENTS:
        return np.array([to_nanoseconds(number, unit) for number in numbers])
    return np.array([float(number) for number in numbers])
