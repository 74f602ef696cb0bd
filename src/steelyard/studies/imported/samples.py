"""The recorded tables of an import as its analysis sees them: one sample per cell and metric."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.record.importers.columnar import stretch_bounds
from steelyard.record.importers.foreign import MEASURE
from steelyard.record.tables import count_measurements, measurement_batches, read_runs
from steelyard.units import is_rate

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan

COMPLETED: Final = "completed"


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
    runs : tuple of ndarray
        Measured values of each run, in order.
    blocks : tuple of int
        Block of each run.
    warm_ups : int
        Values that the tool marked as warm-up; they are not among the runs.
    failed : int
        Launches that failed; they are not among the runs, unless those were asked for too.
    """

    cell: int
    levels: dict[str, str]
    metric: str
    unit: str
    runs: tuple[NDArray[np.float64], ...]
    blocks: tuple[int, ...]
    warm_ups: int
    failed: int = 0

    @property
    def values(self) -> NDArray[np.float64]:
        """All measured values, shape (n,)."""
        return np.concatenate(self.runs) if self.runs else np.empty(0)

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
        return tuple(np.concatenate(self._of_block(label)) for label in dict.fromkeys(self.blocks))

    def means(self, level: str) -> NDArray[np.float64]:
        """Give the mean of each unit of a level, ``block`` or ``run``."""
        return np.array([mean(unit) for unit in self.units(level)])

    def labels(self, level: str) -> NDArray[np.int64]:
        """Give the unit of a level, ``block`` or ``run``, of each value."""
        numbers = self.blocks if level == "block" else range(len(self.runs))
        return np.repeat(np.array(numbers, dtype=np.int64), [run.size for run in self.runs])

    def is_mixed_with(self, other: Sample) -> bool:
        """Whether both were measured in the same blocks, enough of them: then what drifts falls on both."""
        return len(set(self.blocks) & set(other.blocks)) >= FEWEST_UNITS

    def _of_block(self, block: int) -> list[NDArray[np.float64]]:
        return [run for run, label in zip(self.runs, self.blocks, strict=True) if label == block]


def level_of(*samples: Sample) -> str:
    """Give the highest level at which every sample has enough units: ``block``, else ``run``."""
    return "block" if all(len(set(sample.blocks)) >= FEWEST_UNITS for sample in samples) else "run"


@dataclass(slots=True)
class _Rows:
    """All rows of an import, 21 bytes each, in the order of cells, metrics, launches and iterations.

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
    """

    group: NDArray[np.int64]
    run: NDArray[np.int32]
    value: NDArray[np.float64]
    is_measured: NDArray[np.bool_]


def read_samples(result: Path, plan: Plan, *, with_failed: bool = False) -> list[Sample]:
    """Read the samples of a result folder, by cell, then by metric in order of appearance.

    The times of launches that failed say how fast a program failed: nothing but the statistics that a tool
    computed of all its launches follows from them.

    Raises
    ------
    DataError
        If the tables are absent or damaged.
    """
    columns = ["run_id", "cell", "block", "batch", "iteration", "worker", "status"]
    runs = pl.DataFrame(read_runs(result).select(columns)).sort(*columns[1:-1], maintain_order=True)
    rows, names = _read_rows(result, runs)
    launch = runs.select(pl.struct("cell", "block", "batch", "iteration").rle_id()).to_series().to_numpy()
    is_completed = (runs["status"] == COMPLETED).to_numpy()
    block = runs["block"].to_numpy()
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
                runs=tuple(np.split(value, edges[1:-1])),
                blocks=tuple(block[run[edges[:-1]]].tolist()),
                warm_ups=warm_ups,
                failed=int(failed),
            )
        )
    return found


def _read_rows(result: Path, runs: pl.DataFrame) -> tuple[_Rows, list[tuple[str, str]]]:
    """Read the measurements with the names of their metrics and units; `runs` are sorted."""
    count = count_measurements(result)
    run = np.empty(count, dtype=np.int32)
    name = np.empty(count, dtype=np.int32)
    iteration = np.empty(count, dtype=np.int32)
    value = np.empty(count)
    is_measured = np.empty(count, dtype=np.bool_)
    find = _Finder(runs["run_id"])
    metrics: dict[str, int] = {}
    names: dict[tuple[str, str], int] = {}
    end = 0
    for batch in measurement_batches(result, ("run_id", "iteration", "phase", "metric", "value", "unit")):
        ids = batch["run_id"].dictionary_encode()
        place = find(ids.dictionary)[ids.indices.to_numpy()]
        is_known = place >= 0
        part = slice(end, end := end + int(np.count_nonzero(is_known)))
        run[part] = place[is_known]
        both = [batch[key].dictionary_encode() for key in ("metric", "unit")]
        texts = [each.dictionary.to_pylist() for each in both]
        codes = both[0].indices.to_numpy() * len(texts[1]) + both[1].indices.to_numpy()
        for code in dict.fromkeys(codes[is_known].tolist()):
            metric, unit = texts[0][code // len(texts[1])], texts[1][code % len(texts[1])]
            metrics.setdefault(metric, len(metrics))
            names.setdefault((metric, unit), len(names))
        numbers = np.array([[names.get((one, other), -1) for other in texts[1]] for one in texts[0]])
        name[part] = numbers.ravel()[codes[is_known]]
        iteration[part] = batch["iteration"].to_numpy()[is_known]
        value[part] = batch["value"].to_numpy()[is_known]
        is_measured[part] = pc.equal(batch["phase"], MEASURE).to_numpy(zero_copy_only=False)[is_known]
    ordered = sorted(names, key=lambda each: (metrics[each[0]], each[1]))
    rank = np.argsort([names[each] for each in ordered]).astype(np.int64)
    run, name, iteration = run[:end], name[:end], iteration[:end]
    group = runs["cell"].to_numpy().astype(np.int64)[run] * max(len(ordered), 1)
    group += rank[name] if ordered else 0
    rows = _Rows(group, run, value[:end], is_measured[:end])
    return _sorted(rows, iteration), ordered


class _Finder:
    """Places of runs in the sorted table; in most tables they follow each other."""

    def __init__(self, known: pl.Series) -> None:
        self._known = known
        self._next = 0

    def __call__(self, ids: pa.Array) -> NDArray[np.int64]:
        """Give the place of each id, or -1; each occurs once."""
        found = pl.Series(ids)
        # A batch begins with the run with which the one before ended, or with the next one.
        for begin in (self._next - 1, self._next):
            if begin >= 0 and self._known.slice(begin, len(found)).equals(found, check_names=False):
                self._next = begin + len(found)
                return np.arange(begin, self._next)
        table = pl.LazyFrame({"id": self._known}).with_row_index("place")
        wanted = pl.LazyFrame({"id": found})
        joined = wanted.join(table, on="id", how="left", maintain_order="left").collect()["place"]
        return joined.cast(pl.Int64).fill_null(-1).to_numpy()


def _sorted(rows: _Rows, iteration: NDArray[np.int32]) -> _Rows:
    """Give the rows by group, run and iteration; as they are where that is their order."""
    same = rows.group[1:] == rows.group[:-1]
    is_before = rows.group[1:] > rows.group[:-1]
    is_before |= same & (rows.run[1:] > rows.run[:-1])
    same &= rows.run[1:] == rows.run[:-1]
    is_before |= same & (iteration[1:] >= iteration[:-1])
    if is_before.all():
        return rows
    order = np.lexsort((iteration, rows.run, rows.group))
    return _Rows(rows.group[order], rows.run[order], rows.value[order], rows.is_measured[order])
