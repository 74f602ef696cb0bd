"""The measuring loop of a bisection: blocks of good, candidate and bad until one commit is named."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.analyse.culprit.choice import Costs
from steelyard.analyse.culprit.search import Answer
from steelyard.errors import DataError, RunError
from steelyard.record.interim_log import NO_CANDIDATE
from steelyard.studies.comparison.bisection.replay import add
from steelyard.studies.comparison.bisection.terms import BAD, CANDIDATE, ENDS, GOOD, PARENT, ROLES
from steelyard.studies.comparison.run.launch import execute_line
from steelyard.studies.comparison.sample import Run
from steelyard.studies.comparison.terms import MEASURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from steelyard.analyse.culprit.choice import Choice
    from steelyard.analyse.culprit.search import Knowledge, Search
    from steelyard.model import Batch, Plan
    from steelyard.record.interim_log import CandidateLog
    from steelyard.revisions.build import Build
    from steelyard.studies.comparison.bisection.terms import Question
    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.run.launch import Launches
    from steelyard.studies.comparison.run.recorder import Recorder

_SECONDS: Final = 60.0
_DECISION_SHARE: Final = 0.1
"""Part of the time of measuring that deciding may take."""
_RUNS_OF_BLOCK: Final = len((*ENDS, CANDIDATE))
_LONGEST_REASON: Final = 300


class Watcher(Protocol):
    """Told how far it is."""

    def block_done(self, measuring: Measuring) -> None:
        """Say that a block, or a build, is over."""


class Measuring:
    """Measures blocks and decides in between which commit is next.

    Parameters
    ----------
    question : Question
        What is asked.
    plan : Plan
        Order inside of the blocks.
    search : Search
        What is known; blocks of earlier sessions are in it.
    log : CandidateLog
        The course so far.
    builder : callable
        Gives the build of a commit by its place, or of the good end by -1, for as long as it is used.
    launches : Launches
        Launches a run.
    recorder : Recorder
        Keeps it.
    keep : callable
        Writes the course down.
    """

    def __init__(
        self,
        question: Question,
        plan: Plan,
        search: Search,
        log: CandidateLog,
        builder: Callable[[int], AbstractContextManager[Build]],
        means: tuple[Launches, Recorder, Callable[[CandidateLog], None]],
    ) -> None:
        self.question = question
        self.search = search
        self.log = log
        self.known: Knowledge = search.know()
        self.current: int = NO_CANDIDATE
        self._builder = builder
        self._launches, self._recorder, self._keep = means
        self._blocks = _of_blocks(plan)
        self._next_block = 0
        self._began_s = time.monotonic()
        self._spent_before_s = log.elapsed_s
        self._builds_s: list[float] = [log.build_s] * (log.build_s > 0)
        self._blocks_s: list[float] = [log.block_s] * (log.block_s > 0)
        self._beside: int | None = None
        self._built: set[int] = set(search.blocks.candidates).union(*search.blocks.steps) - {-1}
        self._facts: dict[str, Build] = {}
        self._warm: set[Path] = set()

    @property
    def elapsed_s(self) -> float:
        """Time of this session [s]."""
        return time.monotonic() - self._began_s

    @property
    def costs(self) -> Costs:
        """What measuring costs by now."""
        build_s = statistics.median(self._builds_s) if self._builds_s else 0.0
        block_s = statistics.median(self._blocks_s[-20:]) if self._blocks_s else 0.0
        return Costs(build_s, max(block_s, 1e-4), frozenset(self._built))

    @property
    def builds(self) -> tuple[Build, ...]:
        """Builds that were used, each once."""
        return tuple(self._facts.values())

    def execute(self, first_block: int, watcher: Watcher) -> None:
        """Measure until the question is answered, the time is spent, or somebody interrupts.

        Parameters
        ----------
        first_block : int
            Block to begin with.
        watcher : Watcher
            Told after each block.

        Raises
        ------
        RunError
            If one of both ends cannot be built or run. What was recorded is kept.
        DataError
            If a file cannot be written.
        """
        self._next_block = first_block
        try:
            with ExitStack() as stack:
                ends = {role: self._prepared(stack, role, at) for role, at in ((GOOD, -1), (BAD, self._last))}
                end = self._measure(ends, watcher)
        except KeyboardInterrupt:
            end = "interrupted"
        except BaseException:
            with suppress(DataError):  # the failure on its way says more
                self._recorder.settle()
                self._write("failed")
            raise
        self._recorder.settle()
        self.known = self.search.know()
        self._write(end)

    @property
    def _last(self) -> int:
        return len(self.search.history) - 1

    def _measure(self, ends: dict[str, Contender], watcher: Watcher) -> str:
        self._begin_step(NO_CANDIDATE, None)
        while True:
            began_s = time.monotonic()
            self.known = self.search.know()
            if self.known.answer is not Answer.OPEN:
                return "settled"
            choice = None
            if self.search.differs:
                choice = self.search.choose(self.known, self.costs)
                if choice is None:
                    return "exhausted"
            if self._is_spent(choice):
                return "spent"
            decided_s = time.monotonic() - began_s
            if choice is None:
                self._execute_block(ends, watcher)
            elif not self._measure_commit(choice, ends, decided_s, watcher):
                return "spent"
            if self._next_block >= len(self._blocks):
                return "exhausted"

    def _is_spent(self, choice: Choice | None) -> bool:
        needed_s = self.costs.block_s
        if choice is not None and choice.commit not in self._built:
            needed_s += self.costs.build_s
        return bool(self._blocks_s) and self.elapsed_s + needed_s > _SECONDS * self.question.minutes

    def _measure_commit(
        self, choice: Choice, ends: dict[str, Contender], decided_s: float, watcher: Watcher
    ) -> bool:
        """Measure some blocks of a commit; give whether there is time for more."""
        # Half of what seems best now: the first blocks may change it.
        blocks = max((choice.blocks + 1) // 2, int(decided_s / (_DECISION_SHARE * self.costs.block_s)), 1)
        try:
            with ExitStack() as stack:
                contenders = self._contenders(stack, choice, ends)
                self._begin_step(choice.commit, choice.beside)
                for _ in range(min(blocks, len(self._blocks) - self._next_block)):
                    if self._is_spent(None):
                        return False
                    self._execute_block(contenders, watcher)
        except _CandidateError as error:
            reason = " ".join(str(error.reason).split())[:_LONGEST_REASON]
            self.search.failed.add(error.commit)
            self.search.blocks.drop(error.commit)
            self._built.discard(error.commit)
            self.log = replace(self.log, failed={**(self.log.failed or {}), error.commit: reason})
            self._write("open")
            watcher.block_done(self)
        return True

    def _contenders(
        self, stack: ExitStack, choice: Choice, ends: dict[str, Contender]
    ) -> dict[str, Contender]:
        """Give what runs in the blocks of a choice: a candidate with both ends, or with its parent."""
        self.current, self._beside = choice.commit, choice.beside
        if choice.beside is None:
            return {**ends, CANDIDATE: self._prepared(stack, CANDIDATE, choice.commit)}
        found = {}
        of_ends = {-1: ends[GOOD], self._last: ends[BAD]}
        for role, commit in ((PARENT, choice.beside), (CANDIDATE, choice.commit)):
            if commit in of_ends:
                found[role] = replace(of_ends[commit], number=ROLES.index(role), name=role)
            else:
                found[role] = self._prepared(stack, role, commit)
        return found

    def _prepared(self, stack: ExitStack, role: str, commit: int) -> Contender:
        """Give a program that is built, set up, and has run once, so that caches are warm."""
        began_s = time.monotonic()
        with self._failing(role):
            build = stack.enter_context(self._builder(commit))
            if build.status == "failed":
                raise build.failure()
            if commit not in self._built and not build.is_reused:
                self._builds_s.append(time.monotonic() - began_s)
            contender = self.question.contender(role, build.folder)
            if build.folder not in self._warm:
                self._facts[build.commit.id] = build
                self._execute_line(contender, "setup")
                stack.callback(self._clean_up, contender)
                for _ in range(self.question.terms.warmup):
                    self._execute_line(contender, "prepare")
                    self._launches.judge(contender, self._launches.execute(contender, 0))
                    self._execute_line(contender, "conclude")
                self._warm.add(build.folder)
        if role not in ENDS:
            self._built.add(commit)
        return contender

    def _execute_line(self, contender: Contender, name: str) -> None:
        """Execute a line around the runs, for no longer than a run may take."""
        line = getattr(contender.hooks, name)
        execute_line(line, f"--{name}", contender.folder, self.question.terms.longest_run_s)

    def _clean_up(self, contender: Contender) -> None:
        with suppress(RunError):  # the answer does not depend on it
            self._execute_line(contender, "cleanup")
        if contender.hooks.setup is not None and contender.folder is not None:
            self._warm.discard(contender.folder)

    def _begin_step(self, commit: int, beside: int | None) -> None:
        steps, parents = self.log.steps, dict(self.log.beside or {})
        if steps and (steps[-1][0], parents.get(steps[-1][1])) == (commit, beside):
            return
        if steps and steps[-1][1] == self._next_block:
            steps = steps[:-1]
            parents.pop(self._next_block, None)
        if beside is not None:
            parents[self._next_block] = beside
        self.log = replace(self.log, steps=(*steps, (commit, self._next_block)), beside=parents or None)
        self._write("open")

    def _execute_block(self, contenders: dict[str, Contender], watcher: Watcher) -> None:
        batches = self._blocks[self._next_block]
        self._next_block += 1
        self._recorder.admit(batches[0].number)
        began_s = time.monotonic()
        values: dict[str, float] = {}
        for batch in batches:
            role = ROLES[batch.cell]
            if role in contenders:
                with self._failing(role):
                    value = self._run(contenders[role], batch)
                if value:
                    values[role] = float(value)
        self._blocks_s.append((time.monotonic() - began_s) * _RUNS_OF_BLOCK / len(contenders))
        if CANDIDATE in contenders:
            add(self.search, self.current, values, self._beside)
        else:
            add(self.search, NO_CANDIDATE, values)
        watcher.block_done(self)

    def _run(self, contender: Contender, batch: Batch) -> int | None:
        self._execute_line(contender, "prepare")
        outcome = self._launches.execute(contender, batch.number)
        self._recorder.keep(batch.number, outcome)
        self._launches.judge(contender, outcome)
        run = Run.of(outcome, (contender.number, batch.block, batch.number), MEASURE)
        self._recorder.note(run)
        self._execute_line(contender, "conclude")
        value: int | None = getattr(run, self.question.terms.metric.quantity)
        return value

    @contextmanager
    def _failing(self, role: str) -> Iterator[None]:
        """Let a failure of a commit end its own measuring; one of both ends is an error."""
        try:
            yield
        except (RunError, DataError) as error:
            commit = {CANDIDATE: self.current, PARENT: self._beside}.get(role)
            if commit is None or commit in {-1, self._last} or error.code not in _OF_PROGRAM:
                raise
            raise _CandidateError(error, commit) from error

    def _write(self, end: str) -> None:
        costs = self.costs
        self.log = replace(
            self.log,
            end=end,
            elapsed_s=self._spent_before_s + self.elapsed_s,
            build_s=costs.build_s,
            block_s=costs.block_s,
        )
        self._keep(self.log)


_OF_PROGRAM: Final = ("run.build", "run.failed", "run.not-executed", "run.prepare", "data.git")
"""Failures that belong to a commit: build, run, the lines around it, a checkout without the folder."""


class _CandidateError(Exception):
    """A commit cannot be measured."""

    def __init__(self, reason: RunError | DataError, commit: int) -> None:
        super().__init__(reason.message)
        self.reason = reason.message
        self.commit = commit


def _of_blocks(plan: Plan) -> Sequence[list[Batch]]:
    found: list[list[Batch]] = [[] for _ in range(plan.blocks)]
    for batch in plan.batches:
        found[batch.block].append(batch)
    return found
