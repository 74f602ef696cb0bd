"""Read the pauses of a Java program from the log of its virtual machine.

The log is the one of ``-Xlog:gc*,safepoint:file=FILE:tn`` (JEP 158, "Unified JVM Logging"; Java 11 or later):
each line begins with the monotonic clock in nanoseconds, which is also the clock of ``System.nanoTime``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

GC: Final = "gc"
SAFEPOINT: Final = "safepoint"
LOG_OPTION: Final = "-Xlog:gc*,safepoint:file={path}:tn:filecount=0"
"""Option that makes the log; without rotation, so that it is whole."""

_STAMP: Final = re.compile(r"\[(\d+)ns\](?:\[[^\]]*\])* ?(.*)")
_COLLECTION: Final = re.compile(
    r"GC\((\d+)\) (Pause .+?)(?: \d+[KMG]->\d+[KMG]\(\d+[KMG]\))?(?: (\d+)[.,](\d{3})ms)?"
)
_SAFEPOINT: Final = re.compile(r'Safepoint "([^"]*)", .*\bTotal: +(\d+) ns')


@dataclass(frozen=True, slots=True)
class Pause:
    """A time during which the program did not run.

    Parameters
    ----------
    start_ns : int
        Begin, on the monotonic clock.
    duration_ns : int
        Length; a collection's is known to 1 us, a safepoint's to 1 ns.
    kind : str
        `GC` or `SAFEPOINT`.
    cause : str
        In the words of the log.
    """

    start_ns: int
    duration_ns: int
    kind: str
    cause: str


def read_pauses(lines: Iterable[str]) -> list[Pause]:
    """Give the pauses of a log, by their begin; lines that say something else are passed over.

    A collection happens inside a safepoint: both are given, each with its kind. The begin of a collection is
    the stamp of the line that announces it, or, without one, its end less its length; the stamp of a
    safepoint is its end.

    Examples
    --------
    >>> log = [
    ...     "[5000000ns] GC(0) Pause Young (Normal) (G1 Evacuation Pause)",
    ...     "[7345000ns] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 23M->1M(256M) 2.345ms",
    ...     '[7400000ns] Safepoint "G1CollectForAllocation", Time since last: 90 ns, Reaching safepoint:'
    ...     " 50000 ns, At safepoint: 2350000 ns, Total: 2400000 ns",
    ... ]
    >>> for pause in read_pauses(log):
    ...     print(pause.start_ns, pause.duration_ns, pause.kind, pause.cause)
    5000000 2345000 gc Pause Young (Normal) (G1 Evacuation Pause)
    5000000 2400000 safepoint G1CollectForAllocation
    """
    announced: dict[tuple[str, str], int] = {}
    found = []
    for line in lines:
        stamped = _STAMP.fullmatch(line.rstrip("\n"))
        if stamped is None:
            continue
        stamp_ns = int(stamped[1])
        pause = _collection(stamp_ns, stamped[2], announced) or _safepoint(stamp_ns, stamped[2])
        if pause is not None:
            found.append(pause)
    return sorted(found, key=lambda each: (each.start_ns, each.kind))


def _collection(stamp_ns: int, message: str, announced: dict[tuple[str, str], int]) -> Pause | None:
    said = _COLLECTION.fullmatch(message)
    if said is None:
        return None
    number, cause, milliseconds, microseconds = said.groups()
    if milliseconds is None:
        announced[number, cause] = stamp_ns
        return None
    duration_ns = (int(milliseconds) * 1000 + int(microseconds)) * 1000
    start_ns = announced.pop((number, cause), stamp_ns - duration_ns)
    return Pause(start_ns, duration_ns, GC, cause)


def _safepoint(stamp_ns: int, message: str) -> Pause | None:
    said = _SAFEPOINT.fullmatch(message)
    if said is None:
        return None
    duration_ns = int(said[2])
    return Pause(stamp_ns - duration_ns, duration_ns, SAFEPOINT, said[1])
