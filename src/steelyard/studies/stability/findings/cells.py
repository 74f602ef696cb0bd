"""The recorded tables as the analysis sees them: one `CellData` per cell, in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.intervals.clustering import HOST, Units, choose_level, group_units
from steelyard.errors import DataError
from steelyard.record.placed.hosts import machine_of
from steelyard.record.tables import read_measurements, read_runs
from steelyard.units import SECONDS_PER_UNIT

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan

OWN: Final = ("cpu", "wall")
OUTSIDE: Final = ("outside-cpu", "outside-wall")
CLOCKS: Final = (*OWN, *OUTSIDE)
START: Final = "start-wall"
COUNTER_PREFIX: Final = "counter:"
NO_AFFINITY: Final = "none"
COUNTERS_ON: Final = "on"
UNSTATED: Final = "unstated"
SINGLE: Final = ("single", 1)
HOMOGENOUS: Final = "parallel-homogenous"

_RUN_COLUMNS: Final = (
    "run_id",
    "cell",
    "block",
    "batch",
    "worker",
    "iteration",
    "host_id",
    "status",
    "start_ns",
    "end_ns",
    "start_utc_ns",
    "wall_ns",
    "steal_ns",
    "flags",
)
_LEVELS: Final = ("isolation", "setup_type", "setup_size", "affinity", "workload", "input", "counters")


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """Levels of a cell."""

    isolation: str
    setup_type: str
    setup_size: int
    affinity: str
    workload: str
    input: str

    @property
    def setup(self) -> str:
        """Label of the setup, with the affinity as a suffix of the kind of load, as the source writes it."""
        suffix = "" if self.affinity == NO_AFFINITY else f"-{self.affinity}"
        return f"{self.setup_type}{suffix},{self.setup_size}"

    @property
    def label(self) -> str:
        """Label of workload and input."""
        return self.workload if self.input in {"", UNSTATED} else f"{self.workload} {self.input}"

    def subject(self) -> dict[str, str]:
        """Give the labels that findings carry."""
        return {
            "workload": self.workload,
            "input": "" if self.input == UNSTATED else self.input,
            "setup": self.setup,
            "isolation": self.isolation,
        }


@dataclass(frozen=True, slots=True)
class CellData:
    """Everything one cell measured, one row per iteration, in the order block, worker, iteration.

    Parameters
    ----------
    number : int
        Of the cell in the plan; the stream of its resamples.
    key : CellKey
        Its levels.
    host, block, batch, worker, iteration : ndarray of int64
        Labels, shape (n,). `host` is the machine: nodes that are one machine are no independent hosts.
        `iteration` counts from 1 within a worker of a batch.
    clocks : dict
        Times [s] by metric, shape (n,), not a number where missing.
    start, end : ndarray of float64
        UTC stamps [s] relative to the earliest of the batch, shape (n,), not a number where missing.
    counters : dict
        Counts by name, shape (n,).
    """

    number: int
    key: CellKey
    host: NDArray[np.int64]
    block: NDArray[np.int64]
    batch: NDArray[np.int64]
    worker: NDArray[np.int64]
    iteration: NDArray[np.int64]
    clocks: dict[str, NDArray[np.float64]]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    counters: dict[str, NDArray[np.float64]]

    def values(self, metric: str = "cpu") -> NDArray[np.float64]:
        """Give the measured values of a metric [s], all workers and iterations pooled."""
        values = self.clocks[metric]
        return values[np.isfinite(values)]

    def labels(self, metric: str = "cpu") -> dict[str, NDArray[np.int64]]:
        """Give the label of the unit of each measured value, by level."""
        kept = np.isfinite(self.clocks[metric])
        return {level: labels[kept] for level, labels in self.all_labels().items()}

    def all_labels(self) -> dict[str, NDArray[np.int64]]:
        """Give the label of the unit of each iteration, by level; a worker is one of one batch."""
        worker = self.batch * (self.worker.max(initial=0) + 1) + self.worker
        return {"host": self.host, "block": self.block, "worker": worker}

    def units(self, metric: str = "cpu", level: str | None = None) -> Units:
        """Group a metric by its independent units, at the highest level that has enough of them."""
        labels = self.labels(metric)
        chosen = choose_level([labels]) if level is None else level
        return group_units(chosen, labels[chosen], self.values(metric))

    def by_host(self, metric: str = "cpu") -> dict[int, Units]:
        """Group a metric by host, and on each by the blocks that it ran."""
        labels, values = self.labels(metric), self.values(metric)
        masks = {int(host): labels[HOST] == host for host in np.unique(labels[HOST])}
        return {
            host: group_units("block", labels["block"][mine], values[mine]) for host, mine in masks.items()
        }

    def series(self, metric: str = "cpu") -> list[tuple[str, NDArray[np.int64]]]:
        """Give each worker of each batch with the positions of its measured iterations, in order."""
        found: list[tuple[str, NDArray[np.int64]]] = []
        for batch in np.unique(self.batch):
            for worker in np.unique(self.worker[self.batch == batch]):
                mask = (self.batch == batch) & (self.worker == worker) & np.isfinite(self.clocks[metric])
                if mask.any():
                    found.append((f"block {self.block[mask][0]} worker {worker}", np.flatnonzero(mask)))
        return found


@dataclass(frozen=True, slots=True)
class Recorded:
    """A result folder as the analysis sees it.

    Parameters
    ----------
    plan : Plan
        Its plan.
    cells : dict
        Ordinary cells (counters off, no twins) by key.
    twins : tuple of CellData or None
        The A/A pair, if both sides have data.
    counted : tuple of CellData
        Cells with counters on.
    missing : tuple of CellKey
        Cells of the plan without data, counters off.
    runs : polars.DataFrame
        All runs of complete batches, failed ones included.
    """

    plan: Plan
    cells: dict[CellKey, CellData]
    twins: tuple[CellData, CellData] | None
    counted: tuple[CellData, ...]
    missing: tuple[CellKey, ...]
    runs: pl.DataFrame

    @property
    def isolations(self) -> tuple[str, ...]:
        """Isolations of the plan, in its order."""
        return self.plan.factors.get("isolation", ())

    def named(self) -> list[tuple[str, CellData]]:
        """Give the ordinary cells with their names in messages."""
        return [(f"cell {cell.number}", cell) for cell in self.cells.values()]


def read_recorded(result: Path, plan: Plan) -> Recorded:
    """Read the tables of a result.

    Raises
    ------
    DataError
        If a table is absent, damaged, or has no factor that the study needs.
    """
    runs = pl.DataFrame(_select(read_runs(result), plan))
    cells = _cells(_joined(runs, pl.DataFrame(pl.from_arrow(read_measurements(result)))), plan)
    ordinary = {
        cell.key: cell for cell in cells if not _counts(plan, cell.number) and not plan.is_twin(cell.number)
    }
    by_number = {cell.number: cell for cell in cells}
    twins = None
    if plan.twin is not None and all(number in by_number for number in plan.twin):
        first, second = plan.twin
        twins = by_number[first], by_number[second]
    counted = tuple(cell for cell in cells if _counts(plan, cell.number))
    every = {key_of(cell.levels): cell for cell in plan.cells if cell.levels.get("counters") != COUNTERS_ON}
    missing = tuple(sorted(key for key in every if key not in ordinary))
    return Recorded(plan, ordinary, twins, counted, missing, runs)


def key_of(levels: dict[str, str]) -> CellKey:
    """Give the key of a cell of the plan.

    Raises
    ------
    DataError
        If a factor of the study is absent.
    """
    try:
        return CellKey(
            levels["isolation"],
            levels["setup_type"],
            int(levels["setup_size"]),
            levels.get("affinity", NO_AFFINITY),
            levels["workload"],
            levels.get("input", ""),
        )
    except (KeyError, ValueError) as error:
        message = f"the plan does not belong to the stability study: {error!r} in the levels {levels}"
        raise DataError(message, code="data.schema") from error


def _counts(plan: Plan, number: int) -> bool:
    return plan.cells[number].levels.get("counters") == COUNTERS_ON


def _select(table: object, plan: Plan) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table))
    levels = [name for name in _LEVELS if name in plan.factors]
    return frame.select(*_RUN_COLUMNS, *levels)


def _joined(runs: pl.DataFrame, measurements: pl.DataFrame) -> pl.DataFrame:
    """Give one row per iteration of completed runs, with one column per metric."""
    seconds = pl.lit(1.0)
    for unit, size in SECONDS_PER_UNIT.items():
        # Dividing by a power of ten rounds once; multiplying by 1e-9 would round twice.
        seconds = pl.when(pl.col("unit") == unit).then(round(1 / size)).otherwise(seconds)
    measured = (
        measurements.filter(pl.col("phase") == "measure")
        .with_columns((pl.col("value") / seconds).alias("value"))
        .pivot(on="metric", index=["run_id", "iteration"], values="value", aggregate_function="first")
        .rename({"iteration": "inner"})
    )
    return (
        runs.filter(pl.col("status") == "completed")
        .join(measured, on="run_id", how="inner")
        .sort("cell", "block", "batch", "worker", "iteration", "inner")
    )


def _cells(frame: pl.DataFrame, plan: Plan) -> list[CellData]:
    machine = {name: machine_of(name) for name in frame["host_id"].unique()}
    codes = {name: code for code, name in enumerate(sorted(set(machine.values())))}
    hosts = {name: codes[each] for name, each in machine.items()}
    counters = [name for name in frame.columns if name.startswith(COUNTER_PREFIX)]
    found = []
    for (number,), part in frame.group_by("cell", maintain_order=True):
        batch, worker = (part[name].to_numpy().astype(np.int64) for name in ("batch", "worker"))
        start, end = _stamps(part)
        found.append(
            CellData(
                number=int(number),
                key=key_of(plan.cells[int(number)].levels),
                host=np.array([hosts[name] for name in part["host_id"]], dtype=np.int64),
                block=part["block"].to_numpy().astype(np.int64),
                batch=batch,
                worker=worker,
                iteration=_positions(batch, worker),
                clocks={metric: _column(part, metric) for metric in CLOCKS},
                start=start,
                end=end,
                counters={name.removeprefix(COUNTER_PREFIX): _column(part, name) for name in counters},
            )
        )
    return found


def _column(part: pl.DataFrame, name: str) -> NDArray[np.float64]:
    if name not in part.columns:
        return np.full(part.height, np.nan)
    return part[name].cast(pl.Float64).fill_null(np.nan).to_numpy()


def _positions(batch: NDArray[np.int64], worker: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count iterations from 1 within each worker of each batch; rows are sorted."""
    changes = np.flatnonzero((np.diff(batch) != 0) | (np.diff(worker) != 0)) + 1
    starts = np.concatenate(([0], changes))
    lengths = np.diff(np.concatenate((starts, [batch.size])))
    first = np.repeat(starts, lengths)
    return np.asarray(np.arange(batch.size) - first + 1, dtype=np.int64)


def _stamps(part: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give start and end of each iteration relative to its batch.

    UTC stamps are comparable between workers that live in different machines; the length is that of the
    launcher's stamps, else the wall time.
    """
    start_ns = part["start_utc_ns"]
    earliest = part.select(pl.col("start_utc_ns").min().over("batch"))["start_utc_ns"]
    start = (start_ns - earliest).cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e9
    length = (part["end_ns"] - part["start_ns"]).cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e9
    for metric in ("outside-wall", "wall"):
        length = np.where(np.isfinite(length), length, _column(part, metric))
    return start, start + length
