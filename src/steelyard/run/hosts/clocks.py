"""How far clocks of hosts are from this one's: readings that enclose an instant, and what follows from them.

Nothing is shifted by it: it says how far start times of runs on different hosts can be compared.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

CLOCK_NAME: Final = "clock.jsonl"
MOST_COMPARED: Final = 200
"""Readings of a host among which every pair is looked at."""
_LARGEST_NS: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A host's clock said `there_ns` at an instant that was between the other two by this host's clock.

    Parameters
    ----------
    before_ns, there_ns, after_ns : int
        Nanoseconds since 1970, UTC.
    """

    before_ns: int
    there_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True)
class ClockComparison:
    """What readings say of a clock.

    Parameters
    ----------
    readings : int
        How many there are.
    span_s : float
        Time from the first to the last [s].
    low_s, high_s : float
        By so much the clock was ahead of this host's [s]: each offset in between agrees with all readings.
    is_steady : bool
        Whether there is one; otherwise the clock moved against this one, and the limits enclose its offsets.
    drift_low_ppm, drift_high_ppm : float or None
        Between these it went faster than this host's; ``None`` where the readings are too close.
    """

    readings: int
    span_s: float
    low_s: float
    high_s: float
    is_steady: bool
    drift_low_ppm: float | None
    drift_high_ppm: float | None


def now_ns() -> int:
    """Give the time by this host's clock."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def compare_clock(readings: Iterable[ClockReading]) -> ClockComparison | None:
    """Say how far a clock was from this host's; ``None`` without a reading.

    Each reading bounds the offset on both sides, so no symmetry of the way there and back is assumed.

    Examples
    --------
    >>> second = 10**9
    >>> first, last = (0, 5 * second, second), (100 * second, 105 * second, 101 * second)
    >>> found = compare_clock([ClockReading(*first), ClockReading(*last)])
    >>> found.low_s, found.high_s, found.is_steady
    (4.0, 5.0, True)
    """
    ordered = sorted(readings, key=lambda each: each.before_ns)
    if not ordered:
        return None
    lows = [each.there_ns - each.after_ns for each in ordered]
    highs = [each.there_ns - each.before_ns for each in ordered]
    low, high = max(lows), min(highs)
    is_steady = low <= high
    if not is_steady:
        low, high = min(lows), max(highs)
    span_ns = ordered[-1].after_ns - ordered[0].before_ns
    drift = _drift(ordered[:: len(ordered) // MOST_COMPARED + 1])
    return ClockComparison(len(ordered), span_ns / 1e9, low / 1e9, high / 1e9, is_steady, *drift)


def _drift(ordered: Sequence[ClockReading]) -> tuple[float, float] | tuple[None, None]:
    """Bound the mean rate between readings that are far from each other [ppm]."""
    span_ns = ordered[-1].after_ns - ordered[0].before_ns
    bounds = []
    for one, other in combinations(ordered, 2):
        apart_ns, together_ns = other.before_ns - one.after_ns, other.after_ns - one.before_ns
        if 2 * apart_ns <= span_ns:
            continue
        there_ns = other.there_ns - one.there_ns
        most = _largest_rate(there_ns - apart_ns, apart_ns, together_ns)
        least = -_largest_rate(together_ns - there_ns, apart_ns, together_ns)
        bounds.append((least, most))
    if not bounds:
        return None, None
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    if low > high:  # it went at different rates
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return low, high


def _largest_rate(change_ns: int, apart_ns: int, together_ns: int) -> float:
    """Give the largest rate of a change that took one of these times, or one in between."""
    return 1e6 * change_ns / (apart_ns if change_ns >= 0 else together_ns)


def keep_readings(folder: Path, readings: Iterable[ClockReading]) -> None:
    """Add readings to those of a folder; where they cannot be kept, less is known of the clock."""
    lines = [json.dumps([each.before_ns, each.there_ns, each.after_ns]) + "\n" for each in readings]
    with suppress(OSError), (folder / CLOCK_NAME).open("a", encoding="ascii") as file:
        file.write("".join(lines))


def read_readings(folder: Path) -> Iterator[ClockReading]:
    """Give the readings of a folder; a line that was cut off is none."""
    try:
        text = (folder / CLOCK_NAME).read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        with suppress(ValueError, TypeError):
            before_ns, there_ns, after_ns = json.loads(line)
            yield checked(before_ns, there_ns, after_ns)


def checked(before_ns: object, there_ns: object, after_ns: object) -> ClockReading:
    """Give a reading of numbers that may be anything.

    Raises
    ------
    ValueError
        If they are no times in order.
    """
    found = [
        each for each in (before_ns, there_ns, after_ns) if type(each) is int and 0 <= each < _LARGEST_NS
    ]
    if len(found) != 3 or found[0] > found[2]:  # noqa: PLR2004 - a reading has three
        message = "no reading of a clock"
        raise ValueError(message)
    return ClockReading(*found)
