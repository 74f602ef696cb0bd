"""The rate of the host's time stamp counter.

Software emulation gives a guest the host's counter. A guest calibrates it against an emulated timer
and errs by a factor (1001 instead of 2600 MHz was seen) when the host is loaded meanwhile; then all
its clocks run wrong. So the rate is measured here and told to the guest.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import time
from typing import Final

READ_COUNTER: Final = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx,32; or rax,rdx; ret
WINDOW_NS: Final = 100_000_000
ATTEMPTS: Final = 20


def counter_khz() -> int | None:
    """Measure the rate of the time stamp counter [kHz]; ``None`` where there is none to read.

    Two readings 100 ms apart, each the tightest of 20 between two readings of the clock: the error
    is below 10 ppm even on a loaded host.
    """
    if platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(READ_COUNTER)
    anchor = ctypes.c_char.from_buffer(page)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(anchor))
    first_ns, first = _tightest(read)
    time.sleep(WINDOW_NS / 1e9)
    last_ns, last = _tightest(read)
    del read, anchor
    page.close()
    return round((last - first) * 1_000_000 / (last_ns - first_ns))


def _tightest(read: ctypes._FuncPointer) -> tuple[int, int]:
    """Give the time [ns] and the counter of the reading with the shortest bracket."""
    best: tuple[int, int, int] | None = None
    for _ in range(ATTEMPTS):
        before = time.monotonic_ns()
        counter = read()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, counter)
    assert best is not None  # noqa: S101 - at least one attempt
    return best[1], best[2]
