"""The outcomes of one batch on their way into the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.run.executor.outcome import failed_outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model import Execution, RunOutcome


class OutcomeLog:
    """Remembers which iterations were kept, so that a batch that fails is completed exactly once.

    Parameters
    ----------
    keep : callable
        Takes the worker's index and an outcome.
    """

    def __init__(self, keep: Callable[[int, RunOutcome], None]) -> None:
        self._keep = keep
        self._seen: set[tuple[int, int]] = set()

    def keep(self, worker: int, outcome: RunOutcome) -> None:
        """Keep one outcome."""
        self._keep(worker, outcome)
        self._seen.add((worker, outcome.iteration))

    def fail_rest(self, execution: Execution, run_id: str, reason: str) -> None:
        """Keep a failed outcome for every iteration that has none."""
        for worker in range(execution.workers):
            for iteration in range(1, execution.iterations + 1):
                if (worker, iteration) not in self._seen:
                    self._keep(worker, failed_outcome(run_id, iteration, reason))


def keep_failed(
    execution: Execution, run_id: str, reason: str, keep: Callable[[int, RunOutcome], None]
) -> None:
    """Keep a failed outcome for every iteration of a batch that could not begin."""
    OutcomeLog(keep).fail_rest(execution, run_id, reason)
