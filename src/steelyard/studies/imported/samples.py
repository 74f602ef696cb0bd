"""The recorded tables of an import as its analysis sees them: one sample per cell and metric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa

from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.record.cell_rows import RunRows
from steelyard.record.importers.columnar import stretch_bounds
from steelyard.record.importers.foreign import MEASURE
from steelyard.record.tables import count_measurements, measurement_batches, run_batches
from steelyard.units import is_rate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan

COMPLETED: Final = "completed"
DESCRIBING: Final = 90
COMPARING: Final = 60
"""Most memory that a row of a cell takes while the cell is read and described, or compared [bytes]."""
_COLUMNS: Final = ("run_id", "iteration", "phase", "metric", "value", "unit")


@dataclass(frozen=True, slots=True)
class Sample:
    """Values of one metric of one cell.

    Parameters
    ----------
    cell : int
        Number of the cell.
    levels : dict
        Its factor levels.
    metric, unit : str
        What was measured.
    values : ndarray
        All measured values, those of a run together, shape (n,).
    sizes : ndarray
        Number of values of each run, shape (runs,).
    blocks : ndarray
        Block of each run, shape (runs,).
    warm_ups : int
        Values that the tool marked as warm-up; they are not among the runs.
    failed : int
        Launches that failed; they are not among the runs, unless those were asked for too.
    is_ordered : bool
        Whether the values of a run have an order in time; several of one iteration have none.
    """

    cell: int
    levels: dict[str, str]
    metric: str
    unit: str
    values: NDArray[np.float64]
    sizes: NDArray[np.int64]
    blocks: NDArray[np.int64]
    warm_ups: int
    failed: int = 0
    is_ordered: bool = True

    @property
    def count(self) -> int:
        """Number of values, also where those themselves are elsewhere."""
        return int(self.sizes.sum())

    def without_values(self) -> Sample:
        """Give how many values there are and of which blocks, as one run."""
        return replace(self, values=np.empty(0), sizes=np.array([self.count]), blocks=np.unique(self.blocks))

    @property
    def runs(self) -> tuple[NDArray[np.float64], ...]:
        """Measured values of each run, in order; made when asked for, as an array takes 0.1 kB."""
        bounds = np.cumsum(self.sizes).tolist()
        return tuple(self.values[begin:end] for begin, end in pairwise([0, *bounds]))

    @property
    def subject(self) -> dict[str, str]:
        """What a finding about it is about."""
        return {**self.levels, "metric": self.metric}

    @property
    def is_rate(self) -> bool:
        """Whether more is better: operations, items or bytes per time."""
        return is_rate(self.unit)

    def units(self, level: str) -> tuple[NDArray[np.float64], ...]:
        """Give the values of each unit of a level, ``block`` or ``run``, in their order."""
        if level == "run":
            return self.runs
        return tuple(self.of_block(label) for label in dict.fromkeys(self.blocks.tolist()))

    def means(self, level: str) -> NDArray[np.float64]:
        """Give the mean of each unit of a level, ``block`` or ``run``."""
        return np.array([mean(unit) for unit in self.units(level)])

    def labels(self, level: str) -> NDArray[np.int64]:
        """Give the unit of a level, ``block`` or ``run``, of each value."""
        return np.repeat(self.blocks if level == "block" else np.arange(self.sizes.size), self.sizes)

    def is_mixed_with(self, other: Sample) -> bool:
        """Whether both were measured in the same blocks, enough of them: then what drifts falls on both."""
        return np.intersect1d(self.blocks, other.blocks).size >= FEWEST_UNITS

    def of_block(self, block: int) -> NDArray[np.float64]:
        """Give the values of the runs of a block."""
        is_own: NDArray[np.bool_] = np.repeat(self.blocks == block, self.sizes)
        return self.values[is_own]


def needed_bytes(result: Path, cells: Collection[int], row_bytes: int = DESCRIBING) -> int:
    """Estimate what computing something of cells takes, from the footers of the tables."""
    parts = run_batches(result, ("run_id", "cell"), cells)
    own = [run for part in parts for run in part["run_id"].to_pylist()]
    return row_bytes * RunRows(result, own).rows


def level_of(*samples: Sample) -> str:
    """Give the highest level at which every sample has enough units: ``block``, else ``run``."""
    return "block" if all(np.unique(sample.blocks).size >= FEWEST_UNITS for sample in samples) else "run"


@dataclass(slots=True)
class _Rows:
    """All rows of an import, 22 bytes each, in the order of cells, metrics, launches and iterations.

    Parameters
    ----------
    group : ndarray
        Number of the cell and metric of each row, ascending.
    run : ndarray
        Place of its run in the table of runs that is sorted as the rows are.
    value : ndarray
        The values.
    is_measured : ndarray
        False for warm-ups.
    is_tied : ndarray
        True for a row of the same iteration as the row before, of which nobody knows the order.
    """

    group: NDArray[np.signedinteger]
    run: NDArray[np.int32]
    value: NDArray[np.float64]
    is_measured: NDArray[np.bool_]
    is_tied: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples by cell, then by metric in order of appearance.

    Parameters
    ----------
    found : list of Sample
        The samples.
    first_rows : dict
        Number of the first row of each metric, of those that were read.
    has_failed_runs : bool
        Whether a run of the cells did not complete.
    """

    found: list[Sample]
    first_rows: dict[str, int]
    has_failed_runs: bool


def read_samples(result: Path, plan: Plan, *, with_failed: bool = False) -> list[Sample]:
    """Read all samples of a result folder, see `samples_of_cells`."""
    return samples_of_cells(result, plan, None, with_failed=with_failed).found


def samples_of_cells(
    result: Path, plan: Plan, cells: Collection[int] | None, *, with_failed: bool = False
) -> Samples:
    """Read the samples of some cells of a result folder, or of all.

    The times of launches that failed say how fast a program failed: nothing but the statistics that a tool
    computed of all its launches follows from them.

    Raises
    ------
    DataError
        If the tables are absent or damaged.
    """
    ids, runs = _sorted_runs(result, cells)
    if cells is None:
        count, batches = (
            count_measurements(result),
            _numbered(measurement_batches(result, _COLUMNS, with_codes=True)),
        )
    else:
        own = RunRows(result, ids.to_pylist())
        count, batches = own.rows, own.batches(_COLUMNS)
    rows, names, first_rows = _read_rows(count, batches, ids, runs)
    del ids  # most of their size
    launch = _stretches([runs[name].to_numpy() for name in ("cell", "block", "batch", "iteration")])
    is_completed = runs["is_completed"].to_numpy()
    block = runs["block"].to_numpy().astype(np.int64)
    found = []
    bounds = stretch_bounds(rows.group)
    for begin, end in pairwise(bounds):
        cell, name = divmod(int(rows.group[begin]), len(names))
        measured = rows.is_measured[begin:end]
        run, value = rows.run[begin:end], rows.value[begin:end]
        warm_ups = int(measured.size - np.count_nonzero(measured))
        if warm_ups:
            run, value = run[measured], value[measured]
        completed = is_completed[run]
        failed = np.unique(launch[run[~completed]]).size
        if failed and not with_failed:
            run, value = run[completed], value[completed]
        if not value.size:
            continue
        edges = stretch_bounds(launch[run])
        metric, unit = names[name]
        found.append(
            Sample(
                cell=cell,
                levels=plan.cells[cell].levels,
                metric=metric,
                unit=unit,
                values=value,
                sizes=np.diff(edges),
                blocks=block[run[edges[:-1]]],
                warm_ups=warm_ups,
                failed=int(failed),
                is_ordered=not bool(rows.is_tied[begin:end].any()),
            )
        )
    return Samples(found, first_rows, not bool(is_completed.all()))


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    begin = 0
    for batch in batches:
        yield begin, batch
        begin += len(batch)


def _sorted_runs(result: Path, cells: Collection[int] | None) -> tuple[pa.ChunkedArray, pl.DataFrame]:
    """Give the runs by cell, block, batch, launch and worker; as they are where that is their order.

    The ids are apart, as they are recorded: of 10^7 runs they take a third of what they take in a frame.
    """
    keys = ("cell", "block", "batch", "iteration", "worker")
    chunks: list[pa.Array] = []
    columns: dict[str, list[NDArray[np.generic]]] = {name: [] for name in (*keys, "is_completed")}
    for part in run_batches(result, ("run_id", *keys, "status"), cells):
        chunks.append(part["run_id"])
        for name in keys:
            # Copied, so that nothing of the part is kept but the ids.
            columns[name].append(part[name].to_numpy().copy())
        columns["is_completed"].append((pl.Series(part["status"]) == COMPLETED).to_numpy())
    ids = pa.chunked_array(chunks, pa.string())
    runs = pl.DataFrame({name: np.concatenate(each or [np.empty(0)]) for name, each in columns.items()})
    # Not always sorted: that takes the table twice.
    if _is_ordered([runs[name].to_numpy() for name in keys]):
        return ids, runs
    order = runs.select(pl.arg_sort_by(keys, maintain_order=True)).to_series()
    return ids.take(order.to_arrow()), runs[order]


def _stretches(columns: Sequence[NDArray[np.integer]]) -> NDArray[np.int32]:
    """Give the number of the stretch of rows that agree in all columns, from 0."""
    is_new = np.zeros(columns[0].size, dtype=np.bool_)
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.cumsum(is_new, dtype=np.int32)


def _is_ordered(columns: Sequence[NDArray[np.integer]]) -> bool:
    """Whether rows ascend, by the first column before the next."""
    same = np.ones(max(columns[0].size - 1, 0), dtype=np.bool_)
    is_before = ~same
    for column in columns:
        is_before |= same & (column[1:] > column[:-1])
        same &= column[1:] == column[:-1]
    return bool((is_before | same).all())


def _read_rows(
    count: int, batches: Iterator[tuple[int, pa.RecordBatch]], ids: pa.ChunkedArray, runs: pl.DataFrame
) -> tuple[_Rows, list[tuple[str, str]], dict[str, int]]:
    """Read at most so many measurements, with the names of their metrics and units; the runs are sorted.

    The last is the number of the first row of each metric.
    """
    run = np.empty(count, dtype=np.int32)
    name = np.empty(count, dtype=np.int32)
    iteration = np.empty(count, dtype=np.int32)
    value = np.empty(count)
    is_measured = np.empty(count, dtype=np.bool_)
    find = _Finder(ids)
    metrics: dict[str, int] = {}
    names: dict[tuple[str, str], int] = {}
    end = 0
    for begin, batch in batches:
        own = batch["run_id"].dictionary_encode()
        places = find(own.dictionary)
        place = places[own.indices.to_numpy()]
        # Mostly all are: then nothing is picked out.
        known = slice(None) if (places >= 0).all() else place >= 0
        part = slice(end, end := end + place[known].size)
        run[part] = place[known]
        metric_codes, unit_codes, phase = (
            batch[key].dictionary_encode() for key in ("metric", "unit", "phase")
        )
        texts = [each.dictionary.to_pylist() for each in (metric_codes, unit_codes)]
        codes = metric_codes.indices.to_numpy() * len(texts[1]) + unit_codes.indices.to_numpy()
        for code in pa.array(codes[known]).unique().to_pylist():
            metric, unit = texts[0][code // len(texts[1])], texts[1][code % len(texts[1])]
            if metric not in metrics:
                metrics[metric] = begin + int(np.flatnonzero((place >= 0) & (codes == code))[0])
            names.setdefault((metric, unit), len(names))
        numbers = np.array([[names.get((one, other), -1) for other in texts[1]] for one in texts[0]])
        name[part] = numbers.ravel()[codes[known]]
        iteration[part] = batch["iteration"].to_numpy()[known]
        value[part] = batch["value"].to_numpy()[known]
        is_measure = np.array([text == MEASURE for text in phase.dictionary.to_pylist()], dtype=np.bool_)
        is_measured[part] = is_measure[phase.indices.to_numpy()][known]
    ordered = sorted(names, key=lambda each: (metrics[each[0]], each[1]))
    rank = np.argsort([names[each] for each in ordered]).astype(np.int64)
    run, name, iteration = run[:end], name[:end], iteration[:end]
    first = runs["cell"].to_numpy().astype(np.int64) * len(ordered)
    is_small = int(first.max(initial=0)) + len(ordered) <= np.iinfo(np.int32).max
    kind: type[np.signedinteger] = np.int32 if is_small else np.int64
    group = first.astype(kind)[run]
    if len(ordered) > 1:
        np.add(group, rank.astype(kind)[name], out=group)
    return _sorted(group, run, value[:end], is_measured[:end], iteration), ordered, metrics


class _Finder:
    """Places of runs in the sorted table; in most tables they follow each other."""

    def __init__(self, known: pa.ChunkedArray) -> None:
        self._known = known
        self._next = 0

    def __call__(self, ids: pa.Array) -> NDArray[np.int64]:
        """Give the place of each id, or -1; each occurs once."""
        found = pa.chunked_array([ids])
        # A batch begins with the run with which the one before ended, or with the next one.
        for begin in (self._next - 1, self._next):
            if begin >= 0 and self._known.slice(begin, len(found)).equals(found):
                self._next = begin + len(found)
                return np.arange(begin, self._next)
        table = pl.LazyFrame({"id": pl.Series(self._known)}).with_row_index("place")
        wanted = pl.LazyFrame({"id": pl.Series(found)})
        joined = wanted.join(table, on="id", how="left", maintain_order="left").collect()["place"]
        return joined.cast(pl.Int64).fill_null(-1).to_numpy()


def _sorted(
    group: NDArray[np.signedinteger],
    run: NDArray[np.int32],
    value: NDArray[np.float64],
    is_measured: NDArray[np.bool_],
    iteration: NDArray[np.int32],
) -> _Rows:
    """Give the rows by group, run and iteration; as they are where that is their order."""
    if not _is_ordered([group, run, iteration]):
        order = np.lexsort((iteration, run, group))
        group, run, value, is_measured = group[order], run[order], value[order], is_measured[order]
        iteration = iteration[order]
    is_tied = np.zeros(group.size, dtype=np.bool_)
    is_tied[1:] = (group[1:] == group[:-1]) & (run[1:] == run[:-1]) & (iteration[1:] == iteration[:-1])
    return _Rows(group, run, value, is_measured, is_tied)
