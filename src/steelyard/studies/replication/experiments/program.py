"""Runs a program at a place to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.studies.replication.devices.interface import Place
    from steelyard.studies.replication.experiments.conduct import Conducted

LONGEST_S: Final = 7200.0
"""What lives longer is taken for stuck."""
_END_BYTES: Final = 65536
_LAST_LINES: Final = 3
"""Java says last that it could not be made, and before that why."""
_NO_PRIORITY: Final = "cannot set niceness"


def execute(run: Conducted, role: str, place: Place, command: Sequence[str]) -> None:
    """Start a program, wait for its end, and require that it succeeds.

    Raises
    ------
    RunError
        If it fails, with the last lines that it wrote, or does not end.
    """
    log = run.log(role)
    try:
        status = place.start(command, log=log).wait(LONGEST_S)
    except TimeoutError as error:
        message = f"the program of role `{role}` lived for more than {LONGEST_S:g} s"
        raise RunError(message, hint="ask for fewer calls or iterations", code="run.program") from error
    end = _end(log)
    if status != 0:
        lines = [line.strip() for line in end.splitlines() if line.strip()][-_LAST_LINES:]
        said = " / ".join(lines) or "it wrote nothing"
        message = f"the program of role `{role}` ended with status {status}: {said}"
        raise RunError(message, hint=f"read `{log}`", code="run.program")
    if _NO_PRIORITY in end:
        run.missing(f"cannot raise the priority of role `{role}`: only root may do so")


def _end(log: Path) -> str:
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _END_BYTES, 0))
        return file.read().decode("utf-8", "replace")
