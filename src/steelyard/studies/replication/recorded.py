"""The runs of a result folder as the analysis sees them: how each ended, and what it left.

The levels of a cell are ``experiment``, ``configuration`` and ``setting``. A block is one repetition: it
holds each cell once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.studies.replication.experiment_record import read_run
from steelyard.studies.run_folders import run_folders, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Batch, Plan
    from steelyard.studies.replication.experiment_record import ExperimentRun

FAILED: Final = "failed"
"""Outcome of a benchmark that did not reach what it had to: a result, unlike a run that broke."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """One run: how it ended, and what it left.

    Parameters
    ----------
    run_id : str
        As in the table of runs.
    cell, block : int
        As in the plan; a block is a repetition.
    experiment, configuration, setting : str
        Levels of its cell.
    is_twin : bool
        Whether it belongs to the second cell of the A/A control.
    status, message : str
        How the run ended; why it failed, in words.
    folder : Path
        Its files.
    run : ExperimentRun or None
        ``None`` where the conductor came to write none, or it cannot be read.
    problem : str
        Why there is no run, or why it is not complete; empty for a complete one.
    """

    run_id: str
    cell: int
    block: int
    experiment: str
    configuration: str
    setting: str
    is_twin: bool
    status: str
    message: str
    folder: Path
    run: ExperimentRun | None
    problem: str

    @property
    def place(self) -> str:
        """Folder of the run relative to the result."""
        return f"{TRACES_NAME}/{self.folder.name}"

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
    found = []
    for each in run_folders(result, plan):
        run, problem = _run_of(each.folder)
        found.append(
            RecordedRun(
                run_id=each.run_id,
                cell=each.cell,
                block=each.block,
                experiment=each.levels["experiment"],
                configuration=each.levels["configuration"],
                setting=each.levels["setting"],
                is_twin=each.is_twin,
                status=each.status,
                message=each.message,
                folder=each.folder,
                run=run,
                problem=problem,
            )
        )
    return tuple(found)


def runs_on_disk(result: Path, plan: Plan, batches: Sequence[Batch]) -> Iterator[RecordedRun]:
    """Read what runs say of themselves while there is no table of runs: the last attempt of each batch."""
    for batch in batches:
        attempts = sorted((result / TRACES_NAME).glob(f"{batch.number:06d}.[0-9]*"))
        if attempts:
            levels = plan.cell_of(batch).levels
            run, problem = _run_of(attempts[-1])
            yield RecordedRun(
                run_id="",
                cell=batch.cell,
                block=batch.block,
                experiment=levels["experiment"],
                configuration=levels["configuration"],
                setting=levels["setting"],
                is_twin=plan.is_twin(batch.cell),
                status="",
                message="",
                folder=attempts[-1],
                run=run,
                problem=problem,
            )


def _run_of(folder: Path) -> tuple[ExperimentRun | None, str]:
    try:
        run = read_run(folder)
    except DataError as error:
        return None, error.message
    if run.header.get("outcome") == FAILED or run.header.get("is_complete") is True:
        return run, ""
    missing = "; ".join(told(entry) for entry in run.header.get("missing") or ())
    return run, str(run.header.get("reason") or missing or "the run did not come to its end")
