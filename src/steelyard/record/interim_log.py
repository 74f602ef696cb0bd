"""What is decided while runs are measured, recorded like the runs.

``looks.json`` says when a growing comparison was looked at: what a look may claim depends on all looks
before it. ``candidates.json`` says which commit each block of a bisection measured: its plan has a place for
one, and what is known by then decides which takes it. With the runs, each is all that verdicts follow from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.document import read_document, write_document

if TYPE_CHECKING:
    from pathlib import Path

LOOKS_SCHEMA: Final = "steelyard/looks/1"
LOOKS_NAME: Final = "looks.json"
OPEN: Final = "open"
"""The measuring had not ended when this was written; if nothing followed, it was killed."""
FAILED: Final = "failed"
SPENT: Final = "spent"
ENDS: Final = (OPEN, FAILED, "settled", SPENT, "interrupted")


@dataclass(frozen=True, slots=True)
class LookTimes:
    """The looks at every pair of a comparison, and how the measuring ended.

    Parameters
    ----------
    plan_id : str
        Plan of the comparison.
    looks : tuple
        Of each pair in the order of the plan: its looks, each as (blocks in which both sides had a value,
        part of the largest experiment that was over, in [0, 1], or beyond if it went on), blocks ascending.
    end : str
        ``open``, ``failed``, ``settled``, ``spent`` or ``interrupted``.
    elapsed_s : float
        Time since the begin, waiting included [s].
    """

    plan_id: str
    looks: tuple[tuple[tuple[int, float], ...], ...]
    end: str
    elapsed_s: float
    schema: str = LOOKS_SCHEMA

    def write(self, result: Path) -> None:
        """Write ``looks.json``; the file is whole or the older one stays.

        Raises
        ------
        DataError
            If it cannot be written.
        """
        write_document(result / LOOKS_NAME, self, hint=f"check the rights of `{result}`")


def read_looks(result: Path, plan_id: str, pairs: int) -> LookTimes:
    """Read ``looks.json``.

    Parameters
    ----------
    result : Path
        Result folder.
    plan_id : str
        Plan that it must belong to.
    pairs : int
        Comparisons of that plan.

    Raises
    ------
    DataError
        If it is absent, damaged, of another schema or plan, or says what no comparison can do.
    """
    path = result / LOOKS_NAME
    damaged = "restore the file from a copy: only it says how much error each look had left to spend"
    found = read_document(path, LookTimes, LOOKS_SCHEMA, absent=damaged, damaged=damaged)
    _require_sound(path, plan_id, found.plan_id, _problem(found, pairs), damaged)
    return found


def _require_sound(path: Path, plan_id: str, found_id: str, problem: str | None, hint: str) -> None:
    """Refuse a log of another plan, or one that says what cannot be."""
    if found_id != plan_id:
        message = f"`{path}` belongs to a different plan than the `plan.json` beside it"
        raise DataError(message, hint="do not mix files from two result folders", code="data.other-plan")
    if problem is not None:
        message = f"`{path}` is damaged: {problem}"
        raise DataError(message, hint=hint, code="data.corrupt")


def _problem(found: LookTimes, pairs: int) -> str | None:
    if len(found.looks) != pairs:
        return f"looks at {len(found.looks)} comparisons; the plan has {pairs}"
    if found.end not in ENDS:
        return f"`end` is `{found.end}`; allowed: {', '.join(f'`{end}`' for end in ENDS)}"
    if not (math.isfinite(found.elapsed_s) and found.elapsed_s >= 0):
        return f"`elapsed_s` is {found.elapsed_s}; allowed: 0 or more"
    for looks in found.looks:
        earlier = (0.0, *(fraction for _, fraction in looks))
        for (blocks, fraction), before in zip(looks, earlier, strict=False):
            if blocks < 1 or not 0 <= fraction <= math.ceil(before) + 1:
                return "a look needs at least 1 block, and a fraction in [0, 1] or of the next stage"
        if any(after[0] <= before[0] or after[1] < before[1] for before, after in pairwise(looks)):
            return "looks must ascend"
    return None


CANDIDATES_SCHEMA: Final = "steelyard/candidates/1"
CANDIDATES_NAME: Final = "candidates.json"
NO_CANDIDATE: Final = -1
"""In place of a commit: the block measures both ends alone."""
ENDS_OF_SEARCH: Final = ("open", "settled", "spent", "interrupted", "exhausted", "failed")


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit between both ends.

    Parameters
    ----------
    id, tree, subject : str
        Of the commit.
    parents : tuple of int
        Places of its parents in the list.
    """

    id: str
    tree: str
    parents: tuple[int, ...]
    subject: str = ""


@dataclass(frozen=True, slots=True)
class CandidateLog:
    """The course of a bisection.

    Parameters
    ----------
    plan_id : str
        Plan of the bisection.
    commits : tuple of LoggedCommit
        In an order in which each stands behind its parents.
    steps : tuple of (int, int)
        Commit, or `NO_CANDIDATE`, and the first block in which it was measured; ascending.
    beside : dict
        By the first block of a step: the commit beside which it was measured in place of both ends, -1 for
        the good one.
    failed : dict
        By place of a commit: why it could not be measured.
    block_s, build_s : float
        Time of a block and of a build [s].
    end : str
        Why it ended: ``settled``, ``spent``, ``interrupted``, ``exhausted`` (nothing is left to measure),
        ``failed``, or ``open`` (killed).
    elapsed_s : float
        Time it took in all sessions [s].
    """

    plan_id: str
    commits: tuple[LoggedCommit, ...]
    steps: tuple[tuple[int, int], ...] = ()
    failed: dict[int, str] | None = None
    block_s: float = 0.0
    build_s: float = 0.0
    end: str = "open"
    elapsed_s: float = 0.0
    beside: dict[int, int] | None = None
    schema: str = CANDIDATES_SCHEMA

    def write(self, result: Path) -> None:
        """Write ``candidates.json``; the file is whole or the older one stays.

        Raises
        ------
        DataError
            If it cannot be written.
        """
        write_document(result / CANDIDATES_NAME, self, hint=f"check the rights of `{result}`")


def read_candidates(result: Path, plan_id: str) -> CandidateLog:
    """Read ``candidates.json``.

    Parameters
    ----------
    result : Path
        Result folder.
    plan_id : str
        Plan that it must belong to.

    Raises
    ------
    DataError
        If it is absent, damaged, of another schema or plan, or names commits that it does not have.
    """
    path = result / CANDIDATES_NAME
    damaged = "restore the file from a copy: only it says which commit each block measured"
    found = read_document(path, CandidateLog, CANDIDATES_SCHEMA, absent=damaged, damaged=damaged)
    _require_sound(path, plan_id, found.plan_id, _problem_of_candidates(found), damaged)
    return found


def _problem_of_candidates(found: CandidateLog) -> str | None:  # noqa: PLR0911 - a reason for each
    size = len(found.commits)
    if not size:
        return "it names no commit"
    if found.end not in ENDS_OF_SEARCH:
        return f"`end` is `{found.end}`; allowed: {', '.join(f'`{end}`' for end in ENDS_OF_SEARCH)}"
    for at, commit in enumerate(found.commits):
        if any(not 0 <= parent < at for parent in commit.parents):
            return f"commit {at} stands before one of its parents"
    if any(not NO_CANDIDATE <= commit < size for commit, _ in found.steps):
        return f"a step names none of {size} commits"
    if any(not 0 <= commit < size - 1 for commit in found.failed or {}):
        return f"a failed commit is none of {size - 1} candidates"
    blocks = [block for _, block in found.steps]
    commits = {block: commit for commit, block in found.steps}
    if any(
        not NO_CANDIDATE <= at < commits.get(block, NO_CANDIDATE)
        for block, at in (found.beside or {}).items()
    ):
        return "a commit is beside one that does not stand before it"
    return None if blocks == sorted(set(blocks)) else "the blocks of its steps do not ascend"
