"""Outcomes as the run stage itself writes or judges them, and the log of those of one batch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model.run_outcome import CapturedStream, RunOutcome, RunStatus
from steelyard.run.redact import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model import Execution

SHOWN_CHARACTERS: Final = 80


def failed_outcome(run_id: str, iteration: int, message: str) -> RunOutcome:
    """Give the outcome of a run that never happened, or whose worker died: it counts as failed.

    Parameters
    ----------
    run_id : str
        Id of the batch's run specification.
    iteration : int
        Iteration that is missing.
    message : str
        Why.
    """
    return RunOutcome(
        id=run_id, iteration=iteration, status=RunStatus.LAUNCHER_FAILED, message=without_secrets(message)
    )


def explained(outcome: RunOutcome) -> RunOutcome:
    r"""Give a failed outcome whose message ends with what the program wrote to standard error last.

    That is its last line; of lines ``hint: ...`` the line before them, with the first hint in brackets.

    Examples
    --------
    >>> said = CapturedStream("error: no such host\n\nhint: name another\n", 40, truncated=False)
    >>> failed = RunOutcome(id="r", iteration=1, status=RunStatus.NONZERO_EXIT, standard_error=said)
    >>> explained(failed).message
    'error: no such host (hint: name another)'
    """
    said = "" if outcome.standard_error is None else outcome.standard_error.text.strip()
    if not outcome.status.is_failure or not said:
        return outcome
    last = without_secrets(_last_words([line.strip() for line in said.splitlines() if line.strip()]))
    return replace(outcome, message=f"{outcome.message}: {last}" if outcome.message else last)


def _last_words(lines: list[str]) -> str:
    """Give the last line; hints alone say how to repair nothing in particular."""
    causes = [place for place, line in enumerate(lines) if not line.startswith("hint:")]
    if not causes:
        return lines[-1]
    cause, *hints = lines[causes[-1] :]
    return f"{cause} ({hints[0]})" if hints else cause


def check_output(outcome: RunOutcome, expected: str | None) -> RunOutcome:
    """Fail a run whose output is wrong.

    A program that answers wrongly failed by its own doing, as one that exits with an error code
    does: the status becomes ``nonzero_exit``, the exit code stays what it was, and the message
    begins with ``wrong output``. All measurements are kept.

    Parameters
    ----------
    outcome : RunOutcome
        Outcome with captured standard output.
    expected : str or None
        What standard output must be, stripped; ``None`` accepts everything.
    """
    if expected is None or outcome.status.is_failure:
        return outcome
    captured = outcome.standard_output or CapturedStream("", 0, truncated=False)
    found = captured.text.strip()
    if found == expected.strip() and not captured.truncated:
        return outcome
    message = f"wrong output: `{_shorten(found)}`; expected: `{_shorten(expected.strip())}`"
    return replace(outcome, status=RunStatus.NONZERO_EXIT, message=message)


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


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
