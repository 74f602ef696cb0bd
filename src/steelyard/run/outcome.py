"""Outcomes as the run stage itself writes or judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.run.secrecy import without_secrets

if TYPE_CHECKING:
    from steelyard.run.isolation.interface import Document

SCHEMA: Final = "steelyard/run-outcome/1"
SHOWN_CHARACTERS: Final = 80
FAILURES: Final = frozenset(
    {
        "nonzero_exit",
        "signalled",
        "cpu_timeout",
        "wall_timeout",
        "out_of_memory",
        "limit_exceeded",
        "interrupted",
        "launcher_failed",
    }
)


def failed_outcome(run_id: str, iteration: int, message: str) -> Document:
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
    return {
        "schema": SCHEMA,
        "id": run_id,
        "iteration": iteration,
        "status": "launcher_failed",
        "exit_code": None,
        "signal": None,
        "limit": None,
        "message": without_secrets(message),
        "start_ns": None,
        "end_ns": None,
        "start_utc_ns": None,
        "quantities": {},
        "counters": {},
        "own": [],
        "standard_output": None,
        "standard_error": None,
        "flags": [],
        "mechanism": {"cgroup": "none", "stamps": "launcher", "isolation": "bare", "degraded": []},
    }


def explained(outcome: Document) -> Document:
    r"""Give a failed outcome whose message ends with what the program wrote to standard error last.

    That is its last line; of a line ``hint: ...`` the line before it, with the hint in brackets.

    Examples
    --------
    >>> said = {"text": "warming up\nno such host\n"}
    >>> explained({"status": "nonzero_exit", "message": None, "standard_error": said})["message"]
    'no such host'
    >>> said = {"text": "error: no such host\n\nhint: name another\n"}
    >>> explained({"status": "nonzero_exit", "message": None, "standard_error": said})["message"]
    'error: no such host (hint: name another)'
    """
    said = ((outcome.get("standard_error") or {}).get("text") or "").strip()
    if outcome["status"] not in FAILURES or not said:
        return outcome
    last = without_secrets(_last_words([line.strip() for line in said.splitlines() if line.strip()]))
    message = outcome["message"]
    return {**outcome, "message": f"{message}: {last}" if message else last}


def _last_words(lines: list[str]) -> str:
    """Give the last line; a hint alone says how to repair nothing in particular."""
    *_, cause, last = ["", *lines]
    return f"{cause} ({last})" if cause and last.startswith("hint:") else last


def check_output(outcome: Document, expected: str | None) -> Document:
    """Fail a run whose output is wrong.

    A program that answers wrongly failed by its own doing, as one that exits with an error code
    does: the status becomes ``nonzero_exit``, the exit code stays what it was, and the message
    begins with ``wrong output``. All measurements are kept.

    Parameters
    ----------
    outcome : dict
        Outcome with captured standard output.
    expected : str or None
        What standard output must be, stripped; ``None`` accepts everything.
    """
    if expected is None or outcome["status"] != "completed":
        return outcome
    captured = outcome.get("standard_output") or {"text": "", "truncated": False}
    found = captured["text"].strip()
    if found == expected.strip() and not captured.get("truncated"):
        return outcome
    message = f"wrong output: `{_shorten(found)}`; expected: `{_shorten(expected.strip())}`"
    return {**outcome, "status": "nonzero_exit", "message": message}


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."
