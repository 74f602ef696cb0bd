"""What an execution is told beside its plan: places, gates, where outcomes go, which batches are wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.run.progress import Progress, Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.model import Affinity, Batch, Cell, RunOutcome
    from steelyard.run.executor.run_files import RunFiles

    Placement = Callable[[int, Affinity], Sequence[Sequence[int] | None]]
    """Gives the CPUs of each of so many parallel processes."""
    NodesOf = Callable[[Sequence[int]], Sequence[int]]
    """Gives the memory nodes near to some CPUs."""
    LostHost = Callable[[Cell, Sequence[RunOutcome]], str]
    """Gives why runs of a cell failed, where not they did but a host."""

MOST_LOST: Final = 10
"""Attempts at a batch whose runs failed for a host that was lost."""
PATIENCE_S: Final = 120.0
"""Time a worker may be silent beyond the wall time its run may take."""


class Sink(Protocol):
    """Where outcomes are kept; `steelyard.record.ledger.Ledger` is one."""

    def begin_attempt(self, batch: int) -> int:
        """Begin to run a batch."""

    def record(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        """Keep one outcome; durable at return."""

    def note_disturbance(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        """Label an open attempt with what disturbed it."""

    def complete(self, batch: int, attempt: int, expected: int | None = None) -> None:
        """Declare an attempt complete."""

    def completed_batches(self) -> frozenset[int]:
        """Give the batches that need not be run again."""


class Selection(Protocol):
    """Says which batches of a plan are worth running, while it is run."""

    def wants(self, batch: Batch) -> bool:
        """Tell whether a batch is to be run; asked before each one, in the order of the plan."""

    def left_s(self) -> float:
        """Give the longest time that may be left [s]."""


class EveryBatch:
    """Wants the whole plan."""

    def wants(self, batch: Batch) -> bool:
        """Want it."""
        return True

    def left_s(self) -> float:
        """Set no bound."""
        return float("inf")


def unguarded(batch: int) -> None:
    """Admit every batch."""


def undisturbed() -> tuple[str, ...]:
    """Find no fault with any batch."""
    return ()


def nothing_lost(cell: Cell, failed: Sequence[RunOutcome]) -> str:
    """Hold a failure to be that of the run."""
    del cell, failed
    return ""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How a plan is run; nothing of it changes what is measured.

    Parameters
    ----------
    placement : callable
        Number of parallel processes and affinity to the CPUs of each.
    nodes_of : callable or None
        Memory nodes near to some CPUs, for workers whose memory is bound; ``None`` refuses to bind.
    gate : callable
        Called with the batch's number before each batch; raises `GateError` if the machine is not
        admissible and the study must not go on.
    disturbances : callable
        Called after each batch; gives what disturbed it, in words.
    retries : int
        How often a disturbed batch is run again; the disturbed attempts stay recorded.
    lost_host : callable
        Called with the cell and the failed runs of a batch; gives why they failed where a host was lost that
        is back, nothing where they failed by themselves. Such a batch is run again, up to `MOST_LOST` times.
    progress : Progress
        Told what happens.
    patience_s : float
        Time a worker may be silent beyond its limits [s].
    files : RunFiles or None
        Where the files of runs are kept; ``None`` for plans whose runs leave none.
    selection : Selection
        Which batches are run, and which are left out.
    only : frozenset of int or None
        Numbers of the batches that are asked for; ``None``: the whole plan.
    """

    placement: Placement
    nodes_of: NodesOf | None = None
    gate: Callable[[int], None] = unguarded
    disturbances: Callable[[], tuple[str, ...]] = undisturbed
    retries: int = 0
    lost_host: LostHost = nothing_lost
    progress: Progress = field(default_factory=Silent)
    patience_s: float = PATIENCE_S
    files: RunFiles | None = None
    selection: Selection = field(default_factory=EveryBatch)
    only: frozenset[int] | None = None
