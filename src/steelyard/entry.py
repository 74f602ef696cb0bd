"""Where the command line begins: Ctrl-C or SIGTERM while modules are loaded ends it in silence."""

# Each import here is time in which an interruption is still Python's; `signal` and `typing` are not free.
from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from steelyard.interruption import INTERRUPTED, SIGNALS


def main() -> None:
    """Run the command line; until its verb begins, a signal finds nothing that would have to be ended."""
    for number in SIGNALS:
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            _signal.signal(number, _leave)
    from steelyard.cli import main as command_line  # noqa: PLC0415 - only now can it be interrupted

    command_line()


def _leave(_number: int, _frame: object) -> None:
    os._exit(INTERRUPTED)
