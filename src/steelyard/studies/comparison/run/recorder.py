"""Every run of a comparison on its way to the disk, with what the gate saw around it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import RunOutcome
    from steelyard.run.machine.preparation import BatchGate
    from steelyard.studies.comparison.sample import Run

PERIOD_S: Final = 1.0
"""The gate looks, and runs become safe from a loss of power, once in this time: for each run of a
millisecond alone both would take longer than the run."""


class RunSink(Protocol):
    """Keeps runs: a ledger, or the journal of a host."""

    def begin_attempt(self, batch: int) -> int:
        """Begin a run; give the number of the attempt."""

    def record(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        """Keep its outcome."""

    def note_disturbance(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        """Label it with what disturbed it."""

    def complete_together(self, attempts: Sequence[tuple[int, int]]) -> None:
        """Declare runs complete."""


class Recorder:
    """Keeps runs; a context manager that leaves nothing open.

    Parameters
    ----------
    ledger : RunSink or None
        Where; ``None`` keeps nothing on disk.
    gate : BatchGate
        Asked between blocks.
    """

    def __init__(self, ledger: RunSink | None, gate: BatchGate) -> None:
        self._ledger = ledger
        self._gate = gate
        self._open: list[tuple[int, int]] = []
        self._runs: list[Run] = []
        self._since_s: float | None = None
        self.disturbances: dict[str, int] = {}

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()

    def admit(self, batch: int) -> None:
        """Wait, within bounds, until the machine is quiet, unless it was asked just now.

        Raises
        ------
        GateError
            Under the strict policy.
        """
        if self._since_s is not None and time.monotonic() - self._since_s < PERIOD_S:
            return
        self.settle()
        self._gate(batch)
        self._since_s = time.monotonic()

    def keep(self, batch: int, outcome: RunOutcome, worker: int = 0) -> None:
        """Keep an outcome of a worker; it survives the death of this process."""
        if self._ledger is not None:
            attempt = self._ledger.begin_attempt(batch)
            self._ledger.record(batch, attempt, worker, outcome)
            self._open.append((batch, attempt))

    def note(self, run: Run) -> None:
        """Remember a run, to label it with what the gate sees afterwards."""
        self._runs.append(run)

    def settle(self) -> None:
        """Ask the gate what happened meanwhile, label the runs, and make them durable."""
        reasons = self._gate.close()
        for reason in reasons:
            self.disturbances[reason] = self.disturbances.get(reason, 0) + 1
        if reasons:
            for run in self._runs:
                run.flags.append("disturbed_batch")
        if self._ledger is not None and self._open:
            for batch, attempt in self._open if reasons else ():
                self._ledger.note_disturbance(batch, attempt, reasons)
            self._ledger.complete_together(self._open)
        self._open.clear()
        self._runs.clear()
        self._since_s = None
