"""The trials of a result folder as the analysis sees them: one per complete run, by cell and block.

The levels of a cell are ``policy`` (name of the policy) and ``load`` (percent of the CPUs that the requests
alone ask for). A block is one repetition: it holds each cell once, and all of its trials are sent the same
arrivals. The plan's option ``a_a`` names two cells of the same levels, ``first,twin``; the twin is the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.studies.colocation.trial import read_trial
from steelyard.studies.run_folders import run_folders, told

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.colocation.trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTrial:
    """One trial: how it ended, and what it left.

    Parameters
    ----------
    run_id : str
        As in the table of runs.
    cell, block : int
        As in the plan; a block is a repetition.
    policy : str
        Name of the policy.
    load_percent : int
        CPU time that the requests alone ask for, over the time of the trial's CPUs [percent].
    is_twin : bool
        Whether it belongs to the second cell of the A/A control.
    status, message : str
        How the run ended; why it failed, in words.
    folder : Path
        Its files.
    trial : Trial or None
        ``None`` where the program came to write none, or it cannot be read.
    problem : str
        Why there is no trial, or why it is not complete; empty for a complete one.
    """

    run_id: str
    cell: int
    block: int
    policy: str
    load_percent: int
    is_twin: bool
    status: str
    message: str
    folder: Path
    trial: Trial | None
    problem: str

    @property
    def place(self) -> str:
        """Folder of the trial relative to the result."""
        return f"{TRACES_NAME}/{self.folder.name}"


def read_recorded(result: Path, plan: Plan) -> tuple[RecordedTrial, ...]:
    """Read every trial of a result, by cell and block.

    Raises
    ------
    DataError
        If the table of runs cannot be read.
    """
    found = []
    for each in run_folders(result, plan):
        trial, problem = _trial_of(each.folder)
        found.append(
            RecordedTrial(
                run_id=each.run_id,
                cell=each.cell,
                block=each.block,
                policy=each.levels["policy"],
                load_percent=int(each.levels["load"]),
                is_twin=each.is_twin,
                status=each.status,
                message=each.message,
                folder=each.folder,
                trial=trial,
                problem=problem,
            )
        )
    return tuple(found)


def _trial_of(folder: Path) -> tuple[Trial | None, str]:
    try:
        trial = read_trial(folder)
    except DataError as error:
        return None, error.message
    if trial.header.get("is_complete") is not True:
        missing = "; ".join(told(entry) for entry in trial.header.get("missing") or ())
        return trial, missing or "the trial did not come to its end"
    return trial, ""
