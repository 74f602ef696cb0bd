"""The runs of a result folder as the analysis sees them: how each ended, and what it left.

The levels of a cell are ``experiment``, ``configuration`` and ``setting``. A block is one repetition: it
contains each cell once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.studies.replication.experiment_record import read_run
from steelyard.studies.run_folders import RunFolder, describe_missing, run_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Batch, Plan
    from steelyard.studies.replication.experiment_record import ExperimentRun

FAILED: Final = "failed"
"""Outcome of a benchmark that did not reach what it had to: a result, unlike a run that broke."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun(RunFolder):
    """One run: how it ended, and what it left.

    Parameters
    ----------
    run : ExperimentRun or None
        ``None`` where the conductor came to write none, or it cannot be read.
    problem : str
        Why there is no run, or why it is not complete; empty for a complete one.
    """

    run: ExperimentRun | None
    problem: str

    @property
    def experiment(self) -> str:
        """Level of its cell."""
        return self.levels["experiment"]

    @property
    def configuration(self) -> str:
        """Level of its cell."""
        return self.levels["configuration"]

    @property
    def setting(self) -> str:
        """Level of its cell."""
        return self.levels["setting"]

    @property
    def header(self) -> Mapping[str, Any]:
        """What happened, as the conductor wrote it; empty where it wrote nothing."""
        return {} if self.run is None else self.run.header

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the experiment's program was given."""
        return {} if self.run is None else (self.run.asked.get("configuration") or {}).get("parameters") or {}

    @property
    def is_failed_benchmark(self) -> bool:
        """Whether the benchmark itself failed, which is a result."""
        return self.header.get("outcome") == FAILED

    @property
    def is_usable(self) -> bool:
        """Whether its numbers count: complete, and the benchmark did not fail."""
        return self.run is not None and not self.problem and not self.is_failed_benchmark


def read_recorded(result: Path, plan: Plan) -> tuple[RecordedRun, ...]:
    """Read what every run of a result says of itself, by cell and block; no values yet.

    Raises
    ------
    DataError
        If the table of runs cannot be read.
    """
    return tuple(_recorded(each) for each in run_folders(result, plan))


def runs_on_disk(result: Path, plan: Plan, batches: Sequence[Batch]) -> Iterator[RecordedRun]:
    """Read what runs say of themselves while there is no table of runs: the last attempt of each batch."""
    for batch in batches:
        attempts = sorted((result / TRACES_NAME).glob(f"{batch.number:06d}.[0-9]*"))
        if attempts:
            levels, is_twin = plan.cell_of(batch).levels, plan.is_twin(batch.cell)
            yield _recorded(RunFolder("", batch.cell, batch.block, levels, is_twin, "", "", attempts[-1]))


def _recorded(each: RunFolder) -> RecordedRun:
    run, problem = _run_of(each.folder)
    return RecordedRun(**each.facts(), run=run, problem=problem)


def _run_of(folder: Path) -> tuple[ExperimentRun | None, str]:
    try:
        run = read_run(folder)
    except DataError as error:
        return None, error.message
    if run.header.get("outcome") == FAILED or run.header.get("is_complete") is True:
        return run, ""
    missing = "; ".join(describe_missing(entry) for entry in run.header.get("missing") or ())
    return run, str(run.header.get("reason") or missing or "the run did not come to its end")
