"""The trials of a result folder as the analysis sees them: one per complete run, by cell and block.

The levels of a cell are ``policy`` (name of the policy) and ``load`` (percent of the CPUs that the requests
alone ask for). A block is one repetition: it holds each cell once, and all of its trials are sent the same
arrivals. The plan's option ``a_a`` names two cells of the same levels, ``first,twin``; the twin is the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.studies.colocation.trial import read_trial
from steelyard.studies.run_folders import RunFolder, describe_missing, run_folders

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.colocation.trial import Trial


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTrial(RunFolder):
    """One trial: how it ended, and what it left.

    Parameters
    ----------
    trial : Trial or None
        ``None`` where the program came to write none, or it cannot be read.
    problem : str
        Why there is no trial, or why it is not complete; empty for a complete one.
    """

    trial: Trial | None
    problem: str

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self.levels["policy"]

    @property
    def load(self) -> str:
        """CPU time that the requests alone need, over that of the CPUs [percent]; a load's own name."""
        return self.levels["load"]


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
        found.append(RecordedTrial(**each.facts(), trial=trial, problem=problem))
    return tuple(found)


def _trial_of(folder: Path) -> tuple[Trial | None, str]:
    try:
        trial = read_trial(folder)
    except DataError as error:
        return None, error.message
    if trial.header.get("is_complete") is not True:
        missing = "; ".join(describe_missing(entry) for entry in trial.header.get("missing") or ())
        return trial, missing or "the trial did not come to its end"
    return trial, ""
