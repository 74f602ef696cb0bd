"""Ctrl-C and SIGTERM during a study: the first stops in order, the second at once."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from steelyard.interruption import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Iterator

TOGETHER_S: Final = 0.3
"""Signals so close are one: a key is hit twice, and `timeout` tells the process and its whole group."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first Ctrl-C or SIGTERM into `KeyboardInterrupt`, and let the second end the process.

    A signal that was ignored from the start (``nohup``, a shell's background job) stays ignored.
    """

    def stop(_number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, lambda *_: None)
        sys.stderr.write("\nstopping; interrupt once more to stop at once\n")
        time.sleep(TOGETHER_S)
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    watched = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.getsignal(each) for each in watched}
    for each in watched:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
