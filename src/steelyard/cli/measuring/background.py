"""``steelyard background``: one command that stands back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import NoReturn

from steelyard.errors import UsageError
from steelyard.run.programs import govern_program

LEVELS = ("class", "idle")


def background(
    *command: str,
    require: str | None = None,
    status: Path | None = None,
    quiet: bool = False,
) -> NoReturn:
    """Run a command best-effort: it yields wherever something else wants to run.

    It uses the best protection the host has, and names it on standard error: the scheduling class where
    `steelyard scheduler start` has loaded it, else SCHED_IDLE in a control group that yields, else
    SCHED_IDLE alone, else the lowest priority. The command takes the place of `steelyard`: its standard
    streams, its signals and its exit code are its own.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    require
        Fail with exit code 3 unless the protection is `class`, or at least `idle`.
    status
        JSON file to write, which says what was done for the command.
    quiet
        Do not print which protection is used.

    Examples
    --------
    steelyard background -- make -j8

    steelyard background --require class -- ./index-everything
    """
    if not command or not command[0]:
        message = "`steelyard background` needs a command"
        raise UsageError(message, hint="steelyard background -- make -j8")
    if require is not None and require not in LEVELS:
        message = f"`--require {require}`: allowed: {', '.join(LEVELS)}"
        raise UsageError(message)
    words = ["--require", require] if require else []
    words += ["--status", str(status)] if status else []
    words += ["--quiet"] if quiet else []
    program = str(govern_program())
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these from the start, and the command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(program, [program, "background", *words, "--", *command])  # noqa: S606 - on purpose
