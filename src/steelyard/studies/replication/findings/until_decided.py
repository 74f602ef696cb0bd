"""Which runs of a plan are still wanted: those of comparisons that are open, within the budget of time.

The plan holds more blocks than are needed. The first `FEWEST_BLOCKS` are run whole; then each comparison
is looked at now and then, by the procedure of `steelyard compare`, and from there on a block holds the cells
of open comparisons only. When it was looked at, and how much of the budget was over, is kept in
``looks.json``: with the runs, all that the verdicts are computed from.
"""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.record.interim_log import LOOKS_NAME, OPEN, LookTimes, read_looks
from steelyard.run.executor.run_options import EveryBatch
from steelyard.studies.replication.budget import extent_of
from steelyard.studies.replication.findings.circumstances import judge_twins
from steelyard.studies.replication.findings.comparisons import judge_all
from steelyard.studies.replication.margins import planned_margins
from steelyard.studies.replication.options import FEWEST_BLOCKS
from steelyard.studies.replication.recorded import runs_on_disk
from steelyard.studies.replication.values.summaries import cells_of, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from steelyard.model import Batch, Plan
    from steelyard.run.executor.run_options import Selection
    from steelyard.studies.replication.values.summaries import Summary

SETTLED: Final = "settled"
SPENT: Final = "spent"


def planned_looks(result: Path, plan: Plan, blocks: int) -> Sequence[tuple[int, float]] | None:
    """Give when a result was looked at; ``None`` where the number of blocks is fixed.

    A study that was stopped is looked at once more with the blocks that were run.

    Raises
    ------
    DataError
        If ``looks.json`` is absent or damaged.
    """
    extent = extent_of(plan)
    if extent is None:
        return None
    times = read_looks(result, plan.id, 1)
    (looks,) = times.looks
    if times.end == OPEN and blocks > (looks[-1][0] if looks else 0):
        return (*looks, (blocks, extent.fraction(blocks, times.elapsed_s)))
    return looks


def selection_of(plan: Plan, result: Path) -> AbstractContextManager[Selection]:
    """Give what says which batches of a plan are wanted: all where the number of blocks is fixed."""
    return nullcontext(EveryBatch()) if extent_of(plan) is None else UntilDecided(plan, result)


class UntilDecided:
    """Says of each batch whether it is wanted; a context manager around the execution of a plan.

    Parameters
    ----------
    plan : Plan
        With a budget.
    result : Path
        Where its runs are kept, and ``looks.json``.
    clock : callable
        Gives the time [s]; monotonic.
    """

    def __init__(self, plan: Plan, result: Path, clock: Callable[[], float] = time.monotonic) -> None:
        extent = extent_of(plan)
        assert extent is not None  # noqa: S101 - only plans with a budget are decided
        self._plan, self._result, self._clock, self._extent = plan, result, clock, extent
        self._looks: list[tuple[int, float]] = []
        self._end = OPEN
        self._summaries: dict[int, list[Summary]] = {}
        self._seconds: dict[int, list[float]] = {}
        self._running: tuple[int, float] | None = None
        self._block = 0
        self._wanted = frozenset(batch.cell for batch in plan.batches)
        self._began_s = clock()

    def __enter__(self) -> UntilDecided:
        """Take up what was kept of an earlier session."""
        if (self._result / LOOKS_NAME).exists():
            times = read_looks(self._result, self._plan.id, 1)
            self._began_s -= times.elapsed_s
            self._looks = list(times.looks[0])
            self._end = times.end
            self._block = max((batch.block for batch in self._executed()), default=0)
            if self._looks:
                self._narrow()
        self._keep()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look at what the last block gave, unless something stopped the execution."""
        if kind is None and self._end == OPEN:
            self._note_time()
            self._judge(self._plan.blocks)
        self._keep()

    @property
    def elapsed_s(self) -> float:
        """Time of all sessions [s]."""
        return self._clock() - self._began_s

    def left_s(self) -> float:
        """Give what is left of the budget [s]; no bound before the first look."""
        return max(self._extent.budget_s - self.elapsed_s, 0.0) if self._looks else float("inf")

    def wants(self, batch: Batch) -> bool:
        """Tell whether a batch is to be run; they are asked for in the order of the plan."""
        self._note_time()
        if batch.block > self._block:
            self._block = batch.block
            if self._end == OPEN:
                self._judge(batch.block)
        if self._end != OPEN or batch.block < self._block or batch.cell not in self._wanted:
            return False
        if self.left_s() <= 0:
            return False  # a block that takes longer than its like ends here: pairs that are whole count
        self._running = batch.cell, self._clock()
        return True

    def _note_time(self) -> None:
        if self._running is not None:
            cell, began_s = self._running
            self._seconds.setdefault(cell, []).append(self._clock() - began_s)
            self._running = None

    def _judge(self, blocks: int) -> None:
        """Look at the comparisons if it is time to, and keep the look before anything more is run."""
        if blocks < FEWEST_BLOCKS:
            return
        next_block_s = sum(
            statistics.median(self._seconds[cell]) for cell in self._wanted & self._seconds.keys()
        )
        is_spent = self._extent.is_spent(blocks, self.elapsed_s, next_block_s)
        if not is_spent and self._looks and blocks < next_look(self._looks[-1][0]):
            return
        self._looks.append((blocks, 1.0 if is_spent else self._fraction(blocks)))
        self._narrow()
        if not self._wanted:
            self._end = SETTLED
        elif is_spent:
            self._end = SPENT
        self._keep()

    def _fraction(self, blocks: int) -> float:
        return max(self._extent.fraction(blocks, self.elapsed_s), self._looks[-1][1] if self._looks else 0.0)

    def _narrow(self) -> None:
        """Keep the cells of open comparisons."""
        summaries = self._read(self._looks[-1][0])
        numbers = {tuple(cell.levels.values()): cell.number for cell in reversed(self._plan.cells)}
        margins = planned_margins(self._plan)
        wanted = set()
        for each, judged, _ in judge_all(cells_of(summaries), margins, self._looks):
            if judged.is_open:
                wanted |= {numbers[each.first.key], numbers[each.second.key]}
        if any(twins.judged.is_open for twins in judge_twins(summaries, margins, self._looks)):
            wanted |= set(self._plan.twin or ())
        self._wanted = frozenset(wanted)

    def _read(self, blocks: int) -> list[Summary]:
        """Read the runs of blocks that are over, each once; by cell and block, as the analysis does."""
        for block in range(blocks):
            if block not in self._summaries:
                batches = [batch for batch in self._plan.batches if batch.block == block]
                self._summaries[block] = summarise(runs_on_disk(self._result, self._plan, batches))[0]
        every = (each for block in range(blocks) for each in self._summaries[block])
        return sorted(every, key=lambda each: (each.recorded.cell, each.recorded.block))

    def _executed(self) -> Iterator[Batch]:
        for batch in self._plan.batches:
            if any(runs_on_disk(self._result, self._plan, [batch])):
                yield batch

    def _keep(self) -> None:
        LookTimes(self._plan.id, (tuple(self._looks),), self._end, self.elapsed_s).write(self._result)
