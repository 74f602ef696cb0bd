"""Causes of peaks that are planted on purpose, so that finding them can be checked.

``background``
    A process named ``planted-burner`` computes for `BURST_MS` of every `PERIOD_MS`, on the CPU on which the
    measured thread is at that moment, with its class and nice
    value where that is allowed (one priority more in a real-time class: equal ones do not preempt).
``migrations``
    A process named ``planted-mover`` moves the measured thread to another CPU every `MOVE_MS`, among those
    that the thread may use: one that is bound to a CPU stays there.
``allocation``
    The measured program itself allocates, so that its run time system collects garbage: an option of the
    program, nothing is started here.

The processes find the measured thread by its name, also in a container, and end with the conductor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.errors import CapabilityError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

CAUSES: Final = ("none", "background", "allocation", "migrations")
PERIOD_MS: Final = 100
BURST_MS: Final = 20
MOVE_MS: Final = 1
BURNER: Final = "planted-burner"
MOVER: Final = "planted-mover"
_LOOK_S: Final = 0.05
_END_S: Final = 5.0
_SET_NAME: Final = 15
_SET_DEATH_SIGNAL: Final = 1
_FIELD_CPU: Final = 36
"""Field 39 of ``/proc/PID/stat``, counted from the one after the name (field 3)."""


class Told(Protocol):
    """What `planting` needs of a run; `conduct.Conducted` has it."""

    def says(self, key: str, value: object) -> None:
        """Put something into the header."""


@contextmanager
def planting(run: Told, cause: str, *, name: str = "steelyard-calls") -> Iterator[None]:
    """Let a planted cause disturb a thread, by the beginning of its name, for as long as the block lasts.

    Raises
    ------
    UsageError
        If the cause is unknown.
    CapabilityError
        If there is only one CPU to move a thread to.
    """
    if cause not in CAUSES:
        message = f"`planted` is `{cause}`; allowed: {', '.join(CAUSES)}"
        raise UsageError(message, hint="`none` plants nothing")
    if cause == "migrations" and len(os.sched_getaffinity(0)) < 2:  # noqa: PLR2004 - from one to another
        message = "a thread cannot be moved: this process may use only one CPU"
        raise CapabilityError(message, hint="allow it two CPUs", code="capability.cpus")
    if cause in ("none", "allocation"):
        run.says("planted", {"cause": cause})
        yield
        return
    stated = {"period_ms": PERIOD_MS, "burst_ms": BURST_MS} if cause == "background" else {"move_ms": MOVE_MS}
    process_name = BURNER if cause == "background" else MOVER
    run.says("planted", {"cause": cause, "process": process_name, **stated})
    command = (sys.executable, "-m", "steelyard.studies.replication.experiments.planted", cause, name)
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def find_thread(name: str) -> int | None:
    """Give the id of a thread whose name begins so, and that is not of this process."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for thread in (process / "task").iterdir():
                if (thread / "comm").read_text(errors="replace").startswith(name):
                    return int(thread.name)
    return None


def cpu_of(thread: int) -> int:
    """Give the CPU on which a thread is, or was last.

    Raises
    ------
    OSError
        If the thread is gone.
    """
    text = Path(f"/proc/{thread}/stat").read_text(encoding="utf-8", errors="replace")
    return int(text.rpartition(")")[2].split()[_FIELD_CPU])


def _burn(thread: int) -> None:
    """Compute in bursts at fixed times, on the CPU of a thread, until the thread is gone."""
    _rise_to(thread)
    begin = time.monotonic()
    number = 0
    while True:
        number = max(number + 1, int((time.monotonic() - begin) * 1000 / PERIOD_MS) + 1)
        due = begin + number * PERIOD_MS / 1000
        time.sleep(max(0.0, due - time.monotonic()))
        os.sched_setaffinity(0, {cpu_of(thread)})
        while time.monotonic() < due + BURST_MS / 1000:
            pass


def _rise_to(thread: int) -> None:
    """Take the class and nice value of a thread, or one priority more where equal ones do not preempt."""
    with contextlib.suppress(PermissionError):
        policy = os.sched_getscheduler(thread)
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            above = min(os.sched_getparam(thread).sched_priority + 1, os.sched_get_priority_max(policy))
            os.sched_setscheduler(0, policy, os.sched_param(above))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, thread))


def _move(thread: int) -> None:
    """Move a thread among the CPUs it may use until it is gone; what it may use is restored at the end."""
    _rise_to(thread)
    allowed = os.sched_getaffinity(thread)
    cpus = sorted(allowed)
    # KERNEL: a mask set from outside replaces the thread's own, so it is put back.
    try:
        while True:
            here = cpu_of(thread)
            place = cpus.index(here) if here in cpus else 0
            os.sched_setaffinity(thread, {cpus[(place + 1) % len(cpus)]})
            time.sleep(MOVE_MS / 1000)
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(thread, allowed)


class _AskedToEnd(Exception):  # noqa: N818 - no error
    pass


def _leave(_number: int, _frame: object) -> None:
    raise _AskedToEnd


def main(cause: str, name: str) -> None:
    """Disturb the thread of a name until asked to end; a thread that ends is followed by the next."""
    system = ctypes.CDLL(None)
    system.prctl(_SET_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    system.prctl(_SET_NAME, (BURNER if cause == "background" else MOVER).encode(), 0, 0, 0)
    disturb = _burn if cause == "background" else _move
    with contextlib.suppress(_AskedToEnd):
        signal.signal(signal.SIGTERM, _leave)
        while True:
            thread = find_thread(name)
            if thread is None:
                time.sleep(_LOOK_S)
                continue
            with contextlib.suppress(OSError):
                disturb(thread)


if __name__ == "__main__":
    main(*sys.argv[1:3])
