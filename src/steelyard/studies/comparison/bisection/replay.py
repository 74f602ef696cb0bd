"""A bisection computed again from what was recorded: the runs, and which commit each block measured."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analyse.culprit.history import CommitFacts, History
from steelyard.analyse.culprit.search import Search
from steelyard.model import RunStatus
from steelyard.record.interim_log import NO_CANDIDATE, LoggedCommit, read_candidates
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.tables import read_runs
from steelyard.studies.comparison.bisection.terms import BAD, CANDIDATE, ENDS, GOOD, PARENT, ROLES, asked_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.analyse.culprit.search import Knowledge
    from steelyard.model import Plan
    from steelyard.record.interim_log import CandidateLog
    from steelyard.studies.comparison.bisection.terms import Asked


@dataclass(frozen=True, slots=True)
class Step:
    """What was known when blocks of a commit were over.

    Parameters
    ----------
    commit : int
        Which one; `NO_CANDIDATE` for both ends alone.
    blocks : int
        Blocks until then, of all commits.
    favourite : int
        The most probable commit by then.
    probability : float
        Of it, with those that cannot be told apart from it.
    """

    commit: int
    blocks: int
    favourite: int
    probability: float


@dataclass(frozen=True, slots=True)
class Bisection:
    """Everything that is known of a bisection.

    Parameters
    ----------
    asked : Asked
        What was asked.
    log : CandidateLog
        Its course.
    search : Search
        All blocks.
    known : Knowledge
        What they say.
    steps : tuple of Step
        What was known on the way.
    notes : tuple of str
        Remarks of the measuring.
    """

    asked: Asked
    log: CandidateLog
    search: Search
    known: Knowledge
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Runs that count."""
        blocks = self.search.blocks
        pairs = len(blocks.ends) + sum(map(len, blocks.steps.values()))
        return 2 * pairs + 3 * sum(map(len, blocks.candidates.values()))


def logged(history: History) -> tuple[LoggedCommit, ...]:
    """Give the commits as they are recorded."""
    return tuple(LoggedCommit(each.id, each.tree, each.parents, each.subject) for each in history.commits)


def history_of(log: CandidateLog) -> History:
    """Give the history that was recorded."""
    return History(tuple(CommitFacts(each.id, each.tree, each.parents, each.subject) for each in log.commits))


def replay(result: Path, plan: Plan) -> Bisection:
    """Give what a recorded bisection says: the same bits as when it was measured.

    Parameters
    ----------
    result : Path
        Result folder with ``candidates.json`` and ``runs.parquet``.
    plan : Plan
        Its plan.

    Raises
    ------
    DataError
        If a file is absent or damaged, or they do not belong together.
    """
    asked = asked_of(plan)
    log = read_candidates(result, plan.id)
    search = Search(history_of(log), asked.margin.level, asked.margin)
    search.failed.update(log.failed or {})
    steps: list[Step] = []
    before: int | None = None
    blocks = list(_blocks(result, log, asked))
    for commit, beside, values in blocks:
        if before is not None and commit != before:
            steps.append(_step(search, before))
        before = commit
        add(search, commit, values, beside)
    if before is not None:
        steps.append(_step(search, before))
    notes = read_provenance(result).notes if (result / PROVENANCE_NAME).exists() else ()
    return Bisection(asked, log, search, search.know(), tuple(steps), notes)


def add(search: Search, commit: int, values: Mapping[str, float], beside: int | None = None) -> None:
    """Add the values of a block by role, if all that it needs are there."""
    if beside is not None:
        if PARENT in values and CANDIDATE in values:
            search.add_step(beside, commit, values[CANDIDATE] / values[PARENT])
    elif commit == NO_CANDIDATE:
        if GOOD in values and BAD in values:
            search.add_ends(values[GOOD], values[BAD])
    elif all(role in values for role in (*ENDS, CANDIDATE)):
        search.add(commit, values[GOOD], values[CANDIDATE], values[BAD])


def _step(search: Search, commit: int) -> Step:
    known = search.know()
    return Step(commit, search.blocks.count, int(known.weights.argmax()), known.probability)


def _blocks(
    result: Path, log: CandidateLog, asked: Asked
) -> Iterator[tuple[int, int | None, dict[str, float]]]:
    """Give commit, what it stood beside, and values of each block in order.

    Blocks of commits that failed later are left out.
    """
    quantity = asked.metric.quantity
    found: dict[int, dict[str, float]] = {}
    rows: list[dict[str, Any]] = read_runs(result).select(["cell", "block", "status", quantity]).to_pylist()
    for row in rows:
        if row[quantity] and not RunStatus(row["status"]).is_failure:
            found.setdefault(row["block"], {})[ROLES[row["cell"]]] = float(row[quantity])
    starts = [block for _, block in log.steps]
    for block in sorted(found):
        at = bisect_right(starts, block) - 1
        commit, first = (NO_CANDIDATE, 0) if at < 0 else log.steps[at]
        beside = (log.beside or {}).get(first)
        if not (log.failed or {}).keys() & {commit, beside}:
            yield commit, beside, found[block]
