"""``steelyard workload``: run a built-in workload program."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.errors import UsageError
from steelyard.run import programs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORKLOADS: Final[dict[str, Callable[[], Path]]] = {"packets": programs.packets_program}
SIGNALLED: Final = 128


def workload(
    name: str,
    /,
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> int:
    """Run a built-in workload program and pass on what it prints.

    `packets` deals packets from n sources to n queues and computes a fingerprint of each:
    `serial M n W U s [correct]` on one thread, `parallel M n W U s D L S [correct]` with workers. It prints
    one number: the packets finished within M ms, or, with `correct`, the sum of the fingerprints of M
    packets from each source. `steelyard workload packets help` explains every argument.

    Parameters
    ----------
    name
        `packets`.
    arguments
        What the program takes.

    Returns
    -------
    int
        The program's exit code.

    Examples
    --------
    steelyard workload packets serial 2000 4 1000 t 1

    steelyard workload packets parallel 2000 4 1000 t 1 32 b A --workers 2
    """
    program = WORKLOADS.get(name)
    if program is None:
        message = f"`{name}` is not a workload; known: {', '.join(f'`{known}`' for known in WORKLOADS)}"
        raise UsageError(message, hint="steelyard workload packets serial 2000 4 1000 t 1")
    sys.stdout.flush()
    # The program is a child and not put in our place: whoever measures `steelyard` keeps one process.
    code = subprocess.run([str(program()), *arguments], check=False, close_fds=False).returncode
    return code if code >= 0 else SIGNALLED - code
