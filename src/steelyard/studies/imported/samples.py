"""The recorded tables of an import as its analysis sees them: one sample per cell and metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.record.tables import read_measurements, read_runs
from steelyard.units import is_rate

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan

COMPLETED: Final = "completed"
_LAUNCH: Final = ("block", "batch", "launch")
_ORDER: Final = ("cell", "metric", "unit", "block", "batch", "launch", "worker", "iteration")


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


def read_samples(result: Path, plan: Plan, *, with_failed: bool = False) -> list[Sample]:
    """Read the samples of a result folder, by cell, then by metric in order of appearance.

    The times of launches that failed say how fast a program failed: nothing but the statistics that a tool
    computed of all its launches follows from them.

    Raises
    ------
    DataError
        If the tables are absent or damaged.
    """
    runs = pl.DataFrame(
        read_runs(result).select(["run_id", "cell", "block", "batch", "worker", "iteration", "status"])
    ).rename({"iteration": "launch"})
    rows = pl.DataFrame(read_measurements(result).drop_columns(["printed"])).join(
        runs, on="run_id", maintain_order="left"
    )
    found = []
    metrics = {name: place for place, name in enumerate(rows["metric"].unique(maintain_order=True))}
    grouped = rows.sort(*_ORDER, maintain_order=True).group_by("cell", "metric", "unit", maintain_order=True)
    for (cell, metric, unit), frame in grouped:
        measured = frame.filter(pl.col("phase") == "measure")
        completed = measured if with_failed else measured.filter(pl.col("status") == COMPLETED)
        launches = list(completed.group_by(*_LAUNCH, maintain_order=True))
        failed = measured.filter(pl.col("status") != COMPLETED)
        sample = Sample(
            cell=int(str(cell)),
            levels=plan.cells[int(str(cell))].levels,
            metric=str(metric),
            unit=str(unit),
            runs=tuple(part["value"].to_numpy() for _, part in launches),
            blocks=tuple(int(str(key[0])) for key, _ in launches),
            warm_ups=frame.height - measured.height,
            failed=failed.unique(list(_LAUNCH)).height,
        )
        if sample.runs:
            found.append(sample)
    return sorted(found, key=lambda sample: (sample.cell, metrics[sample.metric]))
