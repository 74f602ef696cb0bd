"""The recorded tables as the analysis sees them: one value per cell and block."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.scaling.speedup import draw_blocks, median_of, ratio_of_medians
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.tables import read_measurements, read_runs
from steelyard.studies.scaling.lost_cells import LostCell, lost_cells
from steelyard.studies.scaling.published import CORES, FILES
from steelyard.studies.scaling.rates import OUTSIDE_WALL, RESPONSES, Response
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.analyse.scaling.speedup import Ratio
    from steelyard.model import Plan

    Vector = NDArray[np.float64]

SERIAL: Final = "serial"
"""Level of the factor ``strategy``, or ``program``, of the program that others are compared with."""

SPEEDUP: Final = "speedup"
MACHINE: Final = "machine"
"""Level of the factor ``strategy``, or ``program``, of threads that share nothing: what the cores give."""

TESTS: Final = ("counter", "sleeper")
"""Levels of the factor ``strategy`` that are tests of a lock and process no packet."""

NO_PACKETS: Final = frozenset({*TESTS, MACHINE})
"""Levels of programs of which no speed-up is asked."""

IDENTITY: Final = ("program", "load", "mean_work", "depth", "strategy", "lock")
"""Factors that tell one curve of speed-up over workers from another."""

PER_WORKER: Final = frozenset(
    {
        "worker_packets",
        "source_packets",
        "worker_iterations",
        "worker_idle",
        "source_mean",
        "thread_sections",
    }
)
"""Metrics whose iteration is the number of a worker or of a source."""


@dataclass(frozen=True, slots=True, eq=False)
class CellTrials:
    """What the trials of one cell gave.

    Parameters
    ----------
    number : int
        Number of the cell.
    levels : dict
        Its factor levels.
    workers : int
        Workers, from the level of that name.
    values : ndarray
        Shape (blocks,): rate of each trial, or the speed-up a file states; NaN where there is none.
    unit : str
        Of the values.
    metrics : dict
        Sums of each further metric, shape (blocks,).
    parts : dict
        For the metrics of `PER_WORKER`: the value of each worker or source, shape (blocks, workers or
        sources); NaN where there is none.
    """

    number: int
    levels: dict[str, str]
    workers: int
    values: Vector
    unit: str
    metrics: dict[str, Vector]
    parts: dict[str, Vector]

    @property
    def identity(self) -> dict[str, str]:
        """The levels that tell its curve from others."""
        return {name: self.levels[name] for name in IDENTITY if name in self.levels}

    @property
    def is_serial(self) -> bool:
        """Whether it is of the program that the others are compared with."""
        return SERIAL in {self.levels.get("strategy"), self.levels.get("program")}

    @property
    def trials(self) -> int:
        """Number of trials."""
        return int(np.isfinite(self.values).sum())

    def unevenness(self, name: str) -> float:
        """Give the coefficient of variation of a metric over workers or sources: the median of the trials.

        0 for one worker; NaN where no trial has it, or nobody did anything.
        """
        parts = self.parts.get(name)
        if parts is None:
            return math.nan
        if parts.shape[1] == 1:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return median_of(parts.std(axis=1, ddof=1) / parts.mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A result folder as its analysis sees it.

    Parameters
    ----------
    plan : Plan
        Its plan.
    cells : tuple of CellTrials
        Measured cells with a rate, in order; without the twin of the A/A control.
    stated : tuple of CellTrials
        Cells of which a file states the speed-up.
    contests : tuple of CellTrials
        Cells of the lock tests, with sections under the lock per second.
    machine : tuple of CellTrials
        Cells of threads that share nothing, with fingerprints per second.
    twin : tuple of CellTrials
        The two cells of the A/A control, or nothing.
    cores : int or None
        Cores of the machine, where known.
    draws : ndarray
        Shape (resamples, blocks).
    hashes : frozenset of str
        SHA-256 of imported files.
    response : Response or None
        How a rate came about.
    lost : tuple of LostCell
        Cells without a completed run.
    """

    plan: Plan
    cells: tuple[CellTrials, ...]
    stated: tuple[CellTrials, ...]
    contests: tuple[CellTrials, ...]
    machine: tuple[CellTrials, ...]
    twin: tuple[CellTrials, ...]
    cores: int | None
    draws: NDArray[np.int64]
    hashes: frozenset[str]
    response: Response | None
    lost: tuple[LostCell, ...] = ()

    @property
    def has_trials(self) -> bool:
        """Whether there are trials, rather than medians that a file states."""
        return not self.hashes

    @property
    def is_wall_time(self) -> bool:
        """Whether a rate is one over the wall time of a run."""
        return self.response is not None and OUTSIDE_WALL in self.response.needs

    @property
    def start_ns(self) -> float | None:
        """What a run takes beside its work at least, as threads that share nothing show it; if measured."""
        alone = next((cell for cell in self.machine if cell.workers == 1), None)
        if alone is None or OUTSIDE_WALL not in alone.metrics:
            return None
        extra = alone.metrics[OUTSIDE_WALL] - alone.metrics["wall"]
        return float(np.nanmin(extra)) if np.isfinite(extra).any() else None

    def machine_speedup(self, workers: int) -> Ratio | None:
        """Give how much faster threads that share nothing are together than one of them, if measured."""
        rates = {cell.workers: cell.values for cell in self.machine}
        if not {1, workers} <= set(rates):
            return None
        ratio = ratio_of_medians(rates[workers], rates[1], self.draws)
        return ratio if math.isfinite(ratio.value) and ratio.value > 0 else None

    def is_oversubscribed(self, workers: int) -> bool:
        """Whether there are more workers than cores."""
        return self.cores is not None and workers > self.cores


def read_recorded(result: Path, plan: Plan, resamples: int) -> Recorded:
    """Read the tables of a result folder.

    Raises
    ------
    DataError
        If the tables are absent or damaged.
    """
    runs = pl.DataFrame(
        read_runs(result).select(["run_id", "cell", "block", "status", "exit_code", "signal", "limit"])
    )
    rows = pl.DataFrame(read_measurements(result).select(["run_id", "phase", "metric", "value", "unit"]))
    joined = rows.filter(pl.col("phase") == "measure").join(
        runs.filter(pl.col("status") == "completed"), on="run_id"
    )
    table = _Table(joined, plan)
    response = table.response()
    cells = table.cells(response) if response is not None else ()
    pair = plan.twin or ()
    provenance = read_provenance(result) if (result / PROVENANCE_NAME).exists() else None
    origins = () if provenance is None else provenance.origins
    hashes = frozenset(origin.sha256 for origin in origins)
    cores = plan.options.get("core_count")
    return Recorded(
        plan=plan,
        cells=tuple(cell for cell in cells if cell.number not in pair[1:]),
        stated=table.stated(),
        contests=table.sections(TESTS),
        machine=table.sections((MACHINE,)),
        twin=tuple(cell for cell in cells if cell.number in pair),
        cores=cores if isinstance(cores, int) else CORES if hashes & FILES else None,
        draws=draw_blocks(plan.blocks, resamples=resamples, seed=plan.seed),
        hashes=hashes,
        response=response,
        lost=lost_cells(
            runs,
            plan,
            lambda cell: cell.number not in pair[1:] and kind_of(cell.levels) not in {*NO_PACKETS, SERIAL},
        ),
    )


def kind_of(levels: Mapping[str, str]) -> str:
    """Give the strategy of a cell, or the program where there are no strategies."""
    return levels.get("strategy") or levels.get("program", "")


class _Table:
    """Measurements by cell, block and metric."""

    def __init__(self, joined: pl.DataFrame, plan: Plan) -> None:
        self._plan = plan
        self._runs: dict[int, dict[int, dict[str, list[float]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        self._units: dict[str, str] = {}
        columns = ("cell", "block", "metric", "value", "unit")
        for cell, block, metric, value, unit in joined.select(columns).iter_rows():
            self._runs[cell][block][metric].append(value)
            self._units.setdefault(metric, unit)

    def response(self) -> Response | None:
        """Give the best way to a rate that all runs with anything but a stated speed-up offer."""
        offered = [
            set(metrics)
            for number, blocks in self._runs.items()
            for metrics in blocks.values()
            if SPEEDUP not in metrics and self._kind(number) not in NO_PACKETS
        ]
        return next(
            (
                each
                for each in RESPONSES
                if offered and all(names.issuperset(each.needs) for names in offered)
            ),
            None,
        )

    def cells(self, response: Response) -> tuple[CellTrials, ...]:
        """Give the cells with a rate."""
        unit = response.unit or self._units.get(response.needs[0], "")
        found = []
        for number in sorted(self._runs):
            blocks = {at: each for at, each in self._runs[number].items() if SPEEDUP not in each}
            if blocks and self._kind(number) not in NO_PACKETS:
                rates = {at: response.rate(_summed(each)) for at, each in blocks.items()}
                found.append(self._cell(number, rates, unit, blocks))
        return tuple(found)

    def sections(self, kinds: tuple[str, ...]) -> tuple[CellTrials, ...]:
        """Give the cells of lock tests, or of the machine itself, with their sections per second."""
        found = []
        for number in sorted(self._runs):
            blocks = {
                at: each for at, each in self._runs[number].items() if {"sections", "wall"} <= set(each)
            }
            if blocks and self._kind(number) in kinds:
                rates = {
                    at: sum(each["sections"]) * NS_PER_S / sum(each["wall"])
                    if sum(each["wall"]) > 0
                    else math.nan
                    for at, each in blocks.items()
                }
                found.append(self._cell(number, rates, "1/s", blocks))
        return tuple(found)

    def _kind(self, number: int) -> str:
        return kind_of(self._plan.cells[number].levels)

    def stated(self) -> tuple[CellTrials, ...]:
        """Give the cells of which a file states the speed-up."""
        found = []
        for number in sorted(self._runs):
            given = {at: each[SPEEDUP][0] for at, each in self._runs[number].items() if SPEEDUP in each}
            if given:
                found.append(self._cell(number, given, "ratio", {}))
        return tuple(found)

    def _cell(
        self,
        number: int,
        values: Mapping[int, float],
        unit: str,
        blocks: Mapping[int, Mapping[str, list[float]]],
    ) -> CellTrials:
        levels = self._plan.cells[number].levels
        names = sorted({name for metrics in blocks.values() for name in metrics})
        sums = {name: {at: sum(each.get(name, [])) for at, each in blocks.items()} for name in names}
        return CellTrials(
            number=number,
            levels=levels,
            workers=int(levels["workers"]),
            values=self._vector(values),
            unit=unit,
            metrics={name: self._vector(each) for name, each in sums.items()},
            parts={name: self._matrix(name, blocks) for name in names if name in PER_WORKER},
        )

    def _vector(self, values: Mapping[int, float]) -> Vector:
        vector = np.full(self._plan.blocks, np.nan)
        for block, value in values.items():
            vector[block] = value
        return vector

    def _matrix(self, name: str, blocks: Mapping[int, Mapping[str, list[float]]]) -> Vector:
        given = {at: metrics[name] for at, metrics in blocks.items() if name in metrics}
        matrix = np.full((self._plan.blocks, max(map(len, given.values()))), np.nan)
        for block, values in given.items():
            matrix[block, : len(values)] = values
        return matrix


def _summed(metrics: Mapping[str, list[float]]) -> dict[str, float]:
    """Give one number per metric of a run: rates by their mean, amounts and times by their sum."""
    return {
        name: math.fsum(values) / (len(values) if name == "rate" else 1) for name, values in metrics.items()
    }
