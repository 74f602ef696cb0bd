"""Runs of a pair that failed because Slurm lost a node: they say nothing of the pair, and are run again.

While a daemon of Slurm is away, no step begins on the other node of a job. The daemon comes back, or Slurm
gives its node up after ``SlurmdTimeout``, five minutes unless a site says otherwise, and ends the job.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.run.isolation.attempt import attempt
from steelyard.studies.communication.pairs import NODE_VARIABLE, hosts_of, step_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.model import Cell, RunOutcome

PATIENCE_S: Final = 900.0
"""Longer than sites let Slurm wait before it gives a node up."""
LOOK_S: Final = 2.0
_STEP_S: Final = 60.0
_OF_SLURM: Final = "srun: error: "
_OF_PROGRAM: Final = re.compile(r"\S+: tasks? [\d,-]+: ")
"""How `srun` says that a program ended by itself, or was killed."""


def lost_node(cell: Cell, failed: Iterable[RunOutcome]) -> str:
    """Give why runs failed without their own doing, once a step begins on the other node; else nothing.

    Parameters
    ----------
    cell : Cell
        Of the runs.
    failed : iterable of RunOutcome
        Those that failed.

    Raises
    ------
    RunError
        If no step begins there for a long time.
    """
    here = os.environ.get(NODE_VARIABLE, "")
    others = [node for node in hosts_of(cell) if node != here]
    if len(others) != 1:
        return ""
    reason = next(filter(None, map(_said_by_slurm, failed)), "")
    deadline_s = time.monotonic() + PATIENCE_S
    while not (tried := attempt([*step_words(others[0]), "true"], timeout_s=_STEP_S)).succeeded:
        reason = tried.last_words.removeprefix(_OF_SLURM)
        if time.monotonic() > deadline_s:
            message = f"cannot start a step on `{others[0]}` for {PATIENCE_S:g} s: {reason}"
            hint = "`sinfo` tells how its node is; continue with --resume when it answers"
            raise RunError(message, hint=hint, code="run.lost-node")
        time.sleep(LOOK_S)
    return f"node {others[0]} was lost: {reason}" if reason else ""


def _said_by_slurm(failed: RunOutcome) -> str:
    """Give what `srun` says of itself, not of the program that it ran."""
    said = failed.standard_error.text if failed.standard_error else ""
    words = (line.partition(_OF_SLURM)[2] for line in said.splitlines())
    return next((each for each in words if each and not _OF_PROGRAM.match(each)), "")
