"""The measuring loop: blocks of interleaved runs until every comparison is settled or nothing is left."""

from __future__ import annotations

import statistics
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.sequential import Design, SequentialComparison
from steelyard.errors import RunError
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


class Measuring:
    """Runs a plan block by block; a block holds each command of an open comparison once.

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
        self.blocks = 0
        self.is_interrupted = False
        self.is_spent = False
        self.startup_s = 0.0
        design = Design(terms.margin, len(entrants.pairs), terms.location)
        self.duels = [
            Duel(baseline, contender, SequentialComparison(design), next_look=terms.extent.blocks_min)
            for baseline, contender in entrants.pairs
        ]
        self._plan = plan
        self._launches = launches
        self._recorder = recorder
        self._clock = clock or BudgetClock(time.monotonic())
        self._block_s: deque[float] = deque(maxlen=_REMEMBERED_BLOCKS)
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
        is_unsettled = any(duel.known is None or not duel.known.is_settled for duel in self.duels)
        return "spent" if self.is_spent and is_unsettled else "settled"

    @property
    def block_s(self) -> float:
        """Time a block takes [s]; 0 before the first."""
        return statistics.median(self._block_s) if self._block_s else 0.0

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
        contenders = self.entrants.contenders
        self.startup_s = self.elapsed_s
        try:
            for contender in contenders:
                execute_line(contender.hooks.setup, "--setup", contender.folder)
            for batches in _by_block(self._plan.batches):
                self._execute_block(batches, watcher)
                if not any(duel.is_open for duel in self.duels) or self.is_spent:
                    break
        except KeyboardInterrupt:
            self.is_interrupted = True
            fraction = self.terms.extent.fraction(self.blocks, self.elapsed_s)
            for duel in self.duels:
                duel.look(fraction)
        except BaseException:
            self._recorder.settle()
            with suppress(RunError):  # the failure on its way says more
                self._clean_up()
            raise
        self._recorder.settle()
        self._clean_up()

    def _clean_up(self) -> None:
        failure: RunError | None = None
        for contender in self.entrants.contenders:
            try:
                execute_line(contender.hooks.cleanup, "--cleanup", contender.folder)
            except RunError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _execute_block(self, batches: Sequence[Batch], watcher: Watcher) -> None:
        is_warmup = batches[0].block < self.terms.warmup
        wanted = {number for duel in self.duels if duel.is_open for number in (duel.baseline, duel.contender)}
        self._recorder.admit(batches[0].number)
        began_s = time.monotonic()
        self._latest.clear()
        for batch in batches:
            contender = self.entrants.contenders[batch.cell % len(self.entrants.contenders)]
            if contender.number in wanted:
                self._execute_run(contender, batch, WARMUP if is_warmup else MEASURE)
        self._block_s.append(time.monotonic() - began_s)
        if not is_warmup:
            self.blocks += 1
            self._judge()
        watcher.block_done(self)
        self._block_s[-1] = time.monotonic() - began_s

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

    def _judge(self) -> None:
        extent = self.terms.extent
        elapsed_s = self.elapsed_s
        # The next block may take as long as the slowest of late: beside load half of them outlast the median.
        needed_s = max(self._block_s, default=0.0) + self._clock.closing_s
        if not any(duel.sequence.looks for duel in self.duels):
            needed_s += self._clock.first_look_s
        self.is_spent = extent.is_spent(self.blocks, elapsed_s, needed_s)
        fraction = 1.0 if self.is_spent else extent.fraction(self.blocks, elapsed_s)
        for duel in self.duels:
            if not duel.is_open:
                continue
            if {duel.baseline, duel.contender} <= self._latest.keys():
                duel.differences.append(
                    difference_of(self._latest[duel.baseline], self._latest[duel.contender])
                )
            if self.is_spent or len(duel.differences) >= duel.next_look:
                duel.look(fraction)


def _by_block(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    block: list[Batch] = []
    for batch in batches:
        if block and batch.block != block[0].block:
            yield block
            block = []
        block.append(batch)
    if block:
        yield block
