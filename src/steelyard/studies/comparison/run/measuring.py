"""The measuring loop: blocks of interleaved runs until every comparison is settled or nothing is left."""

from __future__ import annotations

import statistics
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.sequential import SequentialComparison
from steelyard.errors import RunError, UsageError
from steelyard.studies.comparison.run.launch import execute_line
from steelyard.studies.comparison.sample import Run
from steelyard.studies.comparison.terms import MEASURE, WARMUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Batch, Plan
    from steelyard.studies.comparison.contender import Contender, Field
    from steelyard.studies.comparison.run.launch import Launches
    from steelyard.studies.comparison.run.recorder import Recorder
    from steelyard.studies.comparison.terms import Terms

_REMEMBERED_BLOCKS: Final = 20


class Watcher(Protocol):
    """Told how far the measuring is."""

    def block_done(self, measuring: Measuring) -> None:
        """Say that a block is over."""


@dataclass(frozen=True, slots=True)
class BudgetClock:
    """What a budget of time is spent by.

    Parameters
    ----------
    began_s : float
        When the user began to wait, on the monotonic clock [s].
    closing_s : float
        Time that is kept for what follows the last run [s].
    first_look_s : float
        Time that the first look takes beyond any other [s].
    """

    began_s: float
    closing_s: float = 0.0
    first_look_s: float = 0.0


class Contest:
    """Commands that take turns, and their comparisons; a field has one, a suite one for each benchmark.

    Parameters
    ----------
    blocks : iterator
        Its blocks in order, warm-up first.
    duels : list of Duel
        Its comparisons.
    """

    def __init__(self, blocks: Iterator[list[Batch]], duels: list[Duel]) -> None:
        self.duels = duels
        self.failure: RunError | None = None
        self.blocks = 0
        self.spent_s = 0.0
        self._ahead = blocks
        self._began_s = self._before_s = 0.0
        self._block_s: deque[float] = deque(maxlen=_REMEMBERED_BLOCKS)

    @property
    def is_open(self) -> bool:
        """Whether a comparison is not settled, and can be."""
        return self.failure is None and any(duel.is_open for duel in self.duels)

    @property
    def block_s(self) -> float:
        """Time a block takes [s]; 0 before the first."""
        return statistics.median(self._block_s) if self._block_s else 0.0

    @property
    def longest_block_s(self) -> float:
        """Time the next block may take: beside load half of them outlast the median [s]."""
        return max(self._block_s, default=0.0)

    def next_block(self) -> list[Batch] | None:
        """Give the runs of the next block; ``None`` behind the last."""
        return next(self._ahead, None)

    def begin_block(self) -> None:
        """Count the time of a block from now on."""
        self._began_s, self._before_s = time.monotonic(), self.spent_s
        self._block_s.append(0.0)

    def spend(self) -> None:
        """Count what the block has taken by now."""
        self._block_s[-1] = time.monotonic() - self._began_s
        self.spent_s = self._before_s + self._block_s[-1]


class Measuring:
    """Runs a plan block by block; a block holds each command of the open comparisons of a contest once.

    The next block belongs to the open contest on which the least time was spent, so that the time goes where
    verdicts are open, and a benchmark of seconds does not starve one of milliseconds.

    Parameters
    ----------
    plan : Plan
        Order of execution.
    entrants : Field
        Commands and comparisons.
    terms : Terms
        How it is measured and what is promised.
    launches : Launches
        Launches a run.
    recorder : Recorder
        Keeps it.
    clock : BudgetClock or None
        What the budget is spent by; it begins now unless given.
    """

    def __init__(
        self,
        plan: Plan,
        entrants: Field,
        terms: Terms,
        launches: Launches,
        recorder: Recorder,
        clock: BudgetClock | None = None,
    ) -> None:
        self.terms = terms
        self.entrants = entrants
        self.runs: list[Run] = []
        self.is_interrupted = False
        self.is_spent = False
        self.startup_s = 0.0
        self.duels = [
            Duel(*pair, SequentialComparison(design), next_look=terms.extent.blocks_min)
            for pair, design in zip(entrants.pairs, terms.designs(len(entrants.pairs)), strict=True)
        ]
        self.contests = [
            Contest(
                _blocks_of(plan.batches, members, len(entrants.contenders)),
                [duel for duel in self.duels if duel.contender in members],
            )
            for members in entrants.contests
        ]
        self._launches = launches
        self._recorder = recorder
        self._clock = clock or BudgetClock(time.monotonic())
        self._latest: dict[int, float] = {}

    @property
    def elapsed_s(self) -> float:
        """Time since the begin, start-up, warm-up and waiting included [s]."""
        return time.monotonic() - self._clock.began_s

    @property
    def end(self) -> str:
        """Why it ended: ``settled``, ``spent`` or ``interrupted``."""
        if self.is_interrupted:
            return "interrupted"
        return "spent" if self.is_spent and any(contest.is_open for contest in self.contests) else "settled"

    def execute(self, watcher: Watcher) -> None:
        """Measure until everything is settled or spent, or somebody interrupts.

        Raises
        ------
        RunError
            If a command or a line around it fails. What was recorded is kept.
        CapabilityError
            If this host cannot measure what is compared.
        GateError
            From the gate.
        """
        self.startup_s = self.elapsed_s
        try:
            self._set_up()
            while (contest := self._next_contest()) is not None:
                batches = contest.next_block()
                if batches is None:
                    break
                with self._failing_alone(contest):
                    self._execute_block(contest, batches, watcher)
        except KeyboardInterrupt:
            self.is_interrupted = True
            for contest in self.contests:
                for duel in contest.duels:
                    duel.look(self.terms.extent.fraction(contest.blocks, self.elapsed_s))
        except BaseException:
            self._recorder.settle()
            with suppress(RunError):  # the failure on its way says more
                self._clean_up()
            raise
        self._recorder.settle()
        self._clean_up()

    @contextmanager
    def _failing_alone(self, contest: Contest) -> Iterator[None]:
        """Let a failure end its own benchmark; the others of a suite go on."""
        try:
            yield
        except RunError as error:
            contest.failure = contest.failure or error
            if all(each.failure for each in self.contests):
                raise

    def _set_up(self) -> None:
        """Execute the lines before the first runs; none may undo what another one made."""
        written: dict[Path, dict[str, tuple[int, int]]] = {}
        lines: set[tuple[Path | None, str | None]] = set()
        for contest in self.contests:
            with self._failing_alone(contest):
                for contender in self._members(contest):
                    execute_line(contender.hooks.setup, "--setup", contender.folder)
                    line = contender.folder, contender.hooks.setup
                    if all(line) and line not in lines and len(self.contests) > 1:
                        _require_untouched(contender, written)
                    lines.add(line)

    def _clean_up(self) -> None:
        failure: RunError | None = None
        for contest in self.contests:
            for contender in self._members(contest):
                try:
                    execute_line(contender.hooks.cleanup, "--cleanup", contender.folder)
                except RunError as error:
                    failure = failure or error
                    contest.failure = contest.failure or error
        if failure is not None and len(self.contests) == 1:
            raise failure

    def _members(self, contest: Contest) -> list[Contender]:
        numbers = {number for duel in contest.duels for number in (duel.baseline, duel.contender)}
        return [self.entrants.contenders[number] for number in sorted(numbers)]

    def _next_contest(self) -> Contest | None:
        """Give the open contest on which the least time was spent of those whose next block fits."""
        fitting = [each for each in self.contests if each.is_open and self._fits(each)]
        return min(fitting, key=lambda contest: contest.spent_s, default=None)

    def _fits(self, contest: Contest) -> bool:
        if not any(each.blocks for each in self.contests):
            return True
        needed_s = contest.longest_block_s + self._clock.closing_s
        if not any(duel.sequence.looks for duel in self.duels):
            needed_s += self._clock.first_look_s
        return not self.terms.extent.is_spent(contest.blocks, self.elapsed_s, needed_s)

    def _execute_block(self, contest: Contest, batches: Sequence[Batch], watcher: Watcher) -> None:
        is_warmup = batches[0].block < self.terms.warmup
        wanted = {
            number for duel in contest.duels if duel.is_open for number in (duel.baseline, duel.contender)
        }
        self._recorder.admit(batches[0].number)
        contest.begin_block()
        self._latest.clear()
        for batch in batches:
            contender = self.entrants.contenders[batch.cell % len(self.entrants.contenders)]
            if contender.number in wanted:
                self._execute_run(contender, batch, WARMUP if is_warmup else MEASURE)
        contest.spend()
        if not is_warmup:
            contest.blocks += 1
            self._judge(contest)
        watcher.block_done(self)
        contest.spend()

    def _execute_run(self, contender: Contender, batch: Batch, phase: str) -> None:
        execute_line(contender.hooks.prepare, "--prepare", contender.folder)
        outcome = self._launches.execute(contender, batch.number)
        self._recorder.keep(batch.number, outcome)
        self._launches.judge(contender, outcome)
        run = Run.of(outcome, (contender.number, batch.block, batch.number), phase)
        self.runs.append(run)
        self._recorder.note(run)
        value = getattr(run, self.terms.metric.quantity)
        if value:
            self._latest[contender.number] = float(value)
        execute_line(contender.hooks.conclude, "--conclude", contender.folder)

    def _judge(self, contest: Contest) -> None:
        """Take the differences of a block, and look where it is time."""
        for duel in contest.duels:
            if duel.is_open and {duel.baseline, duel.contender} <= self._latest.keys():
                duel.differences.append(
                    difference_of(self._latest[duel.baseline], self._latest[duel.contender])
                )
        self.is_spent = not any(self._fits(each) for each in self.contests if each.is_open)
        for each in self.contests if self.is_spent else (contest,):
            is_last = self.is_spent or not self._fits(each)
            fraction = 1.0 if is_last else self.terms.extent.fraction(each.blocks, self.elapsed_s)
            for duel in each.duels:
                if duel.is_open and (is_last or len(duel.differences) >= duel.next_look):
                    duel.look(fraction)


def _require_untouched(contender: Contender, written: dict[Path, dict[str, tuple[int, int]]]) -> None:
    """Refuse a setup that changes what the setup of another benchmark wrote into the same checkout.

    Raises
    ------
    UsageError
        If it does: each benchmark would read what the last one wrote.
    """
    folder = contender.folder or Path.cwd()
    now = {
        str(path): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    before = written.get(folder)
    if before is not None:
        changed = [path for path, mark in before.items() if path in now and now[path] != mark]
        if changed:
            name = Path(changed[0]).relative_to(folder)
            message = (
                f"the setup of `{contender.benchmark}` changes `{name}`, which was there before: all "
                "benchmarks share the checkout of a revision"
            )
            hint = "let each write files of its own name, such as in-{size}.txt, or use `prepare`"
            raise UsageError(message, hint=hint, code="usage.setup")
    written[folder] = now


def _blocks_of(batches: Sequence[Batch], members: frozenset[int], count: int) -> Iterator[list[Batch]]:
    """Give the runs of some commands, block by block."""
    for _, block in groupby(batches, key=lambda batch: batch.block):
        yield [batch for batch in block if batch.cell % count in members]
