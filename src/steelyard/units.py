"""Units of measurements, their sizes in base units, and texts for people."""

from __future__ import annotations

import re
from typing import Final

from steelyard.errors import DataError

SECONDS_PER_UNIT: Final[dict[str, float]] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""Length of each unit of time in seconds."""

TIME_UNITS: Final = {
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("usec", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
}
"""Other names of units of time."""

_AMOUNTS: Final = frozenset({*SECONDS_PER_UNIT, "bytes", "KiB", "count", "J", "Hz"})

_LONG_S: Final = {
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    "day": 86400.0,
}
_PER_TIME: Final = re.compile(
    rf"ops/.*|(?P<what>.*)/(?:{'|'.join((*SECONDS_PER_UNIT, *TIME_UNITS, *_LONG_S))})"
    r"|(?:[kmgtpe]i?)?(?:bps|flops)|[kmg]?(?:iops|fps|qps|rps|tps|ips)",
    re.IGNORECASE,
)
"""Amounts of something in a time."""
_UNWANTED: Final = re.compile(
    r"(?<![a-z])(?:dropped|err(?:or)?s?|fail(?:ed|s|ures?)?|faults?|lost|miss(?:ed|es)?|reconnects?"
    r"|retr(?:y|ies|ans|ansmits|ansmissions)|timeouts?)(?![a-z])",
    re.IGNORECASE,
)
"""Things of which more in a time is worse."""

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000


def seconds_per(unit: str) -> float:
    """Give the length of a unit of time in seconds.

    Parameters
    ----------
    unit : str
        One of ``ns``, ``us``, ``ms``, ``s``.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    DataError
        If the unit is not a unit of time.

    Examples
    --------
    >>> seconds_per("ms")
    0.001
    """
    try:
        return SECONDS_PER_UNIT[unit]
    except KeyError:
        allowed = ", ".join(f"`{name}`" for name in SECONDS_PER_UNIT)
        message = f"`{unit}` is not a unit of time; allowed: {allowed}"
        raise DataError(message, code="data.unit") from None


def is_rate(unit: str) -> bool:
    """Tell whether more of a unit is better: operations, items or bytes per time.

    Examples
    --------
    >>> is_rate("ops/s"), is_rate("MB/sec"), is_rate("requests/min"), is_rate("Mbps"), is_rate("fps")
    (True, True, True, True, True)
    >>> is_rate("ns"), is_rate("ns/op"), is_rate("errors/s"), is_rate("cache_misses/s"), is_rate("us/s")
    (False, False, False, False, False)
    >>> is_rate("missions/s"), is_rate("retrievals/s")
    (True, True)
    """
    found = _PER_TIME.fullmatch(unit)
    what = found["what"] if found else None
    return found is not None and not (what and (what in SECONDS_PER_UNIT or _UNWANTED.search(what)))


def per_second(unit: str) -> tuple[str, float]:
    """Give the unit of a rate per second, and what values of a unit are multiplied by to be in it.

    Examples
    --------
    >>> per_second("ops/ms"), per_second("MB/sec"), per_second("ms"), per_second("Mbps")
    (('ops/s', 1000.0), ('MB/s', 1.0), ('ms', 1.0), ('Mbps', 1.0))
    """
    what, sign, time = unit.rpartition("/")
    seconds = {**SECONDS_PER_UNIT, **_LONG_S}.get(TIME_UNITS.get(time, time))
    return (f"{what}/s", 1 / seconds) if sign and seconds is not None and is_rate(unit) else (unit, 1.0)


def is_amount(unit: str) -> bool:
    """Tell whether a unit is that of an amount, whose mean is negative only where values are.

    Examples
    --------
    >>> is_amount("ms"), is_amount("MB/s"), is_amount("percent")
    (True, True, False)
    """
    return unit in _AMOUNTS or _PER_TIME.fullmatch(unit) is not None


def format_seconds(seconds: float, digits: int = 4) -> str:
    """Write a duration with a unit that suits its size.

    Parameters
    ----------
    seconds : float
        Duration [s].
    digits : int
        Significant digits, at least 1.

    Returns
    -------
    str
        Number and unit.

    Examples
    --------
    >>> format_seconds(0.0523456)
    '52.35 ms'
    >>> format_seconds(-2.5e-6)
    '-2.500 us'
    >>> format_seconds(0)
    '0 s'
    """
    if seconds == 0:
        return "0 s"
    for unit in ("s", "ms", "us", "ns"):
        scaled = seconds / SECONDS_PER_UNIT[unit]
        if abs(scaled) >= 1 or unit == "ns":
            return f"{format_significant(scaled, digits)} {unit}"
    return f"{seconds} s"


def format_significant(value: float, digits: int) -> str:
    """Write a number with a given number of significant digits and no exponent.

    Examples
    --------
    >>> format_significant(0.0012345, 3)
    '0.00123'
    >>> format_significant(12345.6, 3)
    '12346'
    """
    if value == 0 or value != value:  # noqa: PLR0124 - NaN is the one value unequal to itself
        return str(value)
    decimals = digits - 1 - _exponent(value)
    return f"{value:.{max(decimals, 0)}f}"


def _exponent(value: float) -> int:
    return int(f"{abs(value):e}".split("e")[1])


def format_bytes(count: float) -> str:
    """Write a number of bytes with a binary unit.

    Examples
    --------
    >>> format_bytes(262144)
    '256 KiB'
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":  # noqa: PLR2004 - definition of the binary units
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{count} B"


def format_count(count: int, noun: str) -> str:
    """Give a number of things with their name, whose plural ends in ``s``.

    Examples
    --------
    >>> format_count(1, "run"), format_count(0, "cell")
    ('1 run', '0 cells')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
