"""The measuring loop: blocks of interleaved runs until every comparison is settled or nothing is left."""

from __future__ import annotations

import statistics
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.analyse.comparison.duel import Duel, eliminate
from steelyard.analyse.comparison.sequential import SequentialComparison
from steelyard.errors import RunError, UsageError
from steelyard.studies.comparison.modes.layout import layout_of
from steelyard.studies.comparison.run.launch import execute_line
from steelyard.studies.comparison.sample import Run
from steelyard.studies.comparison.terms import MEASURE, WARMUP, Mode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from steelyard.analyse.comparison.sequential import Design
    from steelyard.model import Batch, Plan
    from steelyard.studies.comparison.contender import Contender, Field
    from steelyard.studies.comparison.run.launch import Launches
    from steelyard.studies.comparison.run.recorder import Recorder
    from steelyard.studies.comparison.run.resumption import Resumed
    from steelyard.studies.comparison.terms import Terms

_REMEMBERED_BLOCKS: Final = 20


class Watcher(Protocol):
    """Told how far the measuring is."""

    def say(self, text: str) -> None:
        """Say what somebody must know before the first run."""

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
        self.is_over = False
        """Whether its plan has no runs left."""
        self.blocks = self.blocks_before = 0
        self.spent_s = 0.0
        self._ahead = blocks
        self._began_s = self._before_s = 0.0
        self._block_s: deque[float] = deque(maxlen=_REMEMBERED_BLOCKS)

    @property
    def is_open(self) -> bool:
        """Whether a comparison is not settled, and can be."""
        return self.failure is None and any(duel.is_open for duel in self.duels)

    @property
    def new_blocks(self) -> int:
        """Measured blocks since it began, or went on."""
        return self.blocks - self.blocks_before

    @property
    def block_s(self) -> float:
        """Time a block takes [s]; 0 before the first."""
        return statistics.median(self._block_s) if self._block_s else 0.0

    @property
    def longest_block_s(self) -> float:
        """Time the next block may take: beside load half of them outlast the median [s]."""
        return max(self._block_s, default=0.0)

    @property
    def first_look_s(self) -> float:
        """Time until each of its comparisons that is open was looked at once [s]."""
        missing = [
            duel.next_look - len(duel.differences)
            for duel in self.duels
            if duel.is_open and not duel.sequence.looks
        ]
        return max(missing, default=0) * self.block_s

    def next_block(self) -> list[Batch] | None:
        """Give the runs of the next block; ``None`` behind the last."""
        return next(self._ahead, None)

    def leave_out(self, blocks: Collection[int]) -> None:
        """Leave out blocks that are measured already."""
        ahead = self._ahead
        self._ahead = (block for block in ahead if block[0].block not in blocks)

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
        self.plan = plan
        self.terms = terms
        self.entrants = entrants
        self.runs: list[Run] = []
        self.is_interrupted = False
        self.is_spent = False
        self.startup_s = self._blocks_from_s = 0.0
        self.duels = [
            Duel(
                *pair,
                SequentialComparison(design),
                next_look=self._first_look(design),
            )
            for pair, design in terms.questions(entrants.pairs)
        ]
        self.contests = [
            Contest(
                _blocks_of(plan.batches, members, len(entrants.contenders)),
                [duel for duel in self.duels if duel.contender in members],
            )
            for members in entrants.contests
        ]
        # Where the minutes do not suffice for all, other revisions have others measured.
        self._lots = {
            contest: sha256(f"{plan.id} {place}".encode()).digest()
            for place, contest in enumerate(self.contests)
        }
        fewest = max(terms.fewest_runs(entrants.pairs).values(), default=terms.extent.blocks_min)
        self._extent = replace(terms.extent, blocks_min=fewest)
        self._resumed: Resumed | None = None
        self._launches = launches
        self._recorder = recorder
        self._clock = clock or BudgetClock(time.monotonic())
        self._latest: dict[int, float] = {}

    def _first_look(self, design: Design) -> int:
        extent = self.terms.extent
        return max(extent.blocks_min, design.first_look(extent.blocks_max))

    def go_on(self, resumed: Resumed) -> None:
        """Begin where a comparison stopped; its warm-up is repeated and not recorded again."""
        self._resumed, self._extent = resumed, resumed.extent
        self.runs, self.duels = list(resumed.runs), list(resumed.duels)
        for contest, members in zip(self.contests, self.entrants.contests, strict=True):
            measured = {run.block for run in self.runs if run.phase == MEASURE and run.contender in members}
            contest.duels = [duel for duel in self.duels if duel.contender in members]
            contest.blocks = contest.blocks_before = len(measured)
            used = max((resumed.blocks_used.get(member, 0) for member in members), default=0)
            contest.leave_out(range(self.terms.warmup, used))
        for duel in self.duels:
            if not duel.sequence.looks:
                duel.next_look = self._first_look(duel.sequence.design)

    @property
    def elapsed_s(self) -> float:
        """Time since the begin, start-up, warm-up and waiting included [s]."""
        return time.monotonic() - self._clock.began_s

    @property
    def total_s(self) -> float:
        """Time since the begin, and before if it goes on [s]."""
        return self.elapsed_s + self.earlier_s

    @property
    def earlier_s(self) -> float:
        """Time that it took before it goes on [s]."""
        return self._resumed.elapsed_s if self._resumed else 0.0

    def _share(self, contest: Contest) -> float:
        """Give how much of the largest experiment is over."""
        return self._extent.fraction(contest.new_blocks, self.elapsed_s)

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
            self._blocks_from_s = self.elapsed_s
            while (contest := self._next_contest()) is not None:
                batches = contest.next_block()
                if batches is None:
                    contest.is_over = True
                    continue
                with self._failing_alone(contest):
                    self._execute_block(contest, batches, watcher)
            self._look_last()
        except KeyboardInterrupt:
            self.is_interrupted = True
            for contest in self.contests:
                for duel in contest.duels:
                    duel.look(duel.fraction(self._share(contest)))
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
                    self._execute_line(contender, "setup")
                    line = contender.folder, contender.hooks.setup
                    if all(line) and line not in lines and len(self.contests) > 1:
                        _require_untouched(contender, written)
                    lines.add(line)

    def _execute_line(self, contender: Contender, name: str) -> None:
        """Execute a line around the runs, for no longer than a run may take."""
        line = getattr(contender.hooks, name)
        execute_line(line, f"--{name}", contender.folder, self.terms.longest_run_s)

    def _clean_up(self) -> None:
        failure: RunError | None = None
        for contest in self.contests:
            for contender in self._members(contest):
                try:
                    self._execute_line(contender, "cleanup")
                except RunError as error:
                    failure = failure or error
                    contest.failure = contest.failure or error
        if failure is not None and len(self.contests) == 1:
            raise failure

    def _look_last(self) -> None:
        """Look at what is open where the time ended with a block that nobody judged, such as a warm-up."""
        for duel in (duel for contest in self.contests if contest.is_open for duel in contest.duels):
            self.is_spent = True
            if duel.is_open and duel.differences:
                duel.look(duel.fraction(1.0))

    def _members(self, contest: Contest) -> list[Contender]:
        numbers = {number for duel in contest.duels for number in (duel.baseline, duel.contender)}
        return [self.entrants.contenders[number] for number in sorted(numbers)]

    def _next_contest(self) -> Contest | None:
        """Give the open contest on which the least time was spent of those whose next block fits.

        The first turns are in an order that is drawn for the plan.

        Where the time does not suffice for the first looks at those that were begun, no other one is begun:
        all would be without a verdict.
        """
        is_open = [each for each in self.contests if each.is_open]
        fitting = [each for each in self._fitting(is_open) if not each.is_over]
        begun = [each for each in fitting if each.spent_s > 0]
        if begun and self._pace * sum(each.first_look_s for each in begun) > self._left_s:
            fitting = begun
        return min(fitting, key=lambda each: (each.spent_s, self._lots[each]), default=None)

    @property
    def _pace(self) -> float:
        """Time that passes for each second of blocks: the gate and the choice of the next take some."""
        blocks_s = sum(each.spent_s for each in self.contests)
        return max((self.elapsed_s - self._blocks_from_s) / blocks_s, 1.0)

    @property
    def _left_s(self) -> float:
        """Time of the budget that is left for blocks [s]."""
        return self._extent.budget_s - self.elapsed_s - self._clock.closing_s

    def _fitting(self, contests: Sequence[Contest]) -> list[Contest]:
        """Give those of the open contests whose next block fits into the time."""
        # What is the same for all is computed once: with hundreds of contests it would take the time of runs.
        reserve_s = self._clock.closing_s
        if not any(duel.sequence.looks for duel in self.duels):
            reserve_s += self._clock.first_look_s
        fitting = {
            contest
            for contest in contests
            if not self._extent.is_spent(
                contest.new_blocks, self.elapsed_s, contest.longest_block_s + reserve_s
            )
        }
        # Something is measured in any case; a whole suite of warm-ups is not.
        if not any(each.new_blocks for each in self.contests):
            longest_s = max((each.spent_s for each in contests), default=0.0)
            fitting |= {each for each in contests if each.spent_s == longest_s}
        return [each for each in contests if each in fitting]

    def _execute_block(self, contest: Contest, batches: Sequence[Batch], watcher: Watcher) -> None:
        phase = self.terms.phase_of(batches[0].block)
        wanted = {
            number for duel in contest.duels if duel.is_open for number in (duel.baseline, duel.contender)
        }
        self._recorder.admit(batches[0].number)
        contest.begin_block()
        self._latest.clear()
        count = len(self.entrants.contenders)
        runs = [
            (self.entrants.contenders[batch.cell % count], batch)
            for batch in batches
            if batch.cell % count in wanted
        ]
        is_duet = self.terms.mode is Mode.DUET and len(runs) > 1
        for together in [runs] if is_duet else [[run] for run in runs]:
            self._execute_runs(together, phase)
        contest.spend()
        if phase == MEASURE:
            contest.blocks += 1
            self._judge(contest)
        watcher.block_done(self)
        contest.spend()

    def _execute_runs(self, runs: Sequence[tuple[Contender, Batch]], phase: str) -> None:
        """Execute one run, or those of a duet together."""
        for contender, _ in runs:
            self._execute_line(contender, "prepare")
        entries = [
            (each, batch.number, layout_of(self.terms, (each.number, batch.block, batch.number)))
            for each, batch in runs
        ]
        if len(entries) > 1:
            outcomes = self._launches.execute_together(entries)
        else:
            outcomes = [self._launches.execute(*entry) for entry in entries]
        is_kept = not (self._resumed and phase == WARMUP)
        if is_kept:
            for worker, ((_, batch), outcome) in enumerate(zip(runs, outcomes, strict=True)):
                self._recorder.keep(batch.number, outcome, worker)
        for (contender, batch), outcome in zip(runs, outcomes, strict=True):
            self._launches.judge(contender, outcome)
            run = Run.of(outcome, (contender.number, batch.block, batch.number), phase)
            if is_kept:
                self.runs.append(run)
                self._recorder.note(run)
            value = getattr(run, self.terms.metric.quantity)
            if value:
                self._latest[contender.number] = float(value)
        for contender, _ in runs:
            self._execute_line(contender, "conclude")

    def _judge(self, contest: Contest) -> None:
        """Take the differences of a block, and look where it is time."""
        for duel in contest.duels:
            if duel.is_open and {duel.baseline, duel.contender} <= self._latest.keys():
                duel.add(self._latest[duel.baseline], self._latest[duel.contender])
        fitting = self._fitting([each for each in self.contests if each.is_open])
        self.is_spent = not fitting
        for each in self.contests if self.is_spent else (contest,):
            is_last = each not in fitting
            share = 1.0 if is_last else self._share(each)
            for duel in each.duels:
                if duel.is_open and (is_last or len(duel.differences) >= duel.next_look):
                    duel.look(duel.fraction(share))
            if self.terms.is_best:
                eliminate(each.duels)


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
