"""Amounts as people type them: `64M`, `1.5s`, `0-3,8`."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard._native import counter_names
from steelyard.errors import UsageError
from steelyard.units import NS_PER_S, SECONDS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token

_BYTES_PER_UNIT: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_LARGEST: Final = (1 << 63) - 1
"""What the launcher and the kernel hold, in bytes or ns: 8 EiB, or 292 years."""
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
WHOLE_PERCENT: Final = 100
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h)?")


def whole_number(_: type, tokens: Sequence[Token]) -> int:
    """Give the whole number that an option is given.

    Raises
    ------
    ValueError
        If it is none; `1.5` is not rounded.
    """
    text = tokens[0].value
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


WHOLE: Final = Parameter(converter=whole_number)
Whole = Annotated[int, WHOLE]
"""What every verb takes for a whole number."""
WholeOrNone = Annotated[int | None, WHOLE]


def require_range(number: int | None, option: str, least: int, most: int) -> int | None:
    """Give a whole number of an option, if it lies in a range.

    Raises
    ------
    UsageError
        If it does not.
    """
    if number is not None and not least <= number <= most:
        message = f"`{option} {number}`: allowed: a whole number from {least} to {most}"
        raise UsageError(message)
    return number


def parse_bytes(text: str, option: str, *, least: str = "0", why: str = "") -> int:
    """Give a size in bytes; K, M, G, T are powers of 1024.

    Parameters
    ----------
    text, option : str
        What was given, and for which option.
    least : str
        Least size allowed.
    why : str
        Why no less is.

    Raises
    ------
    UsageError
        If the text is no size, or one that is not allowed.

    Examples
    --------
    >>> parse_bytes("64M", "--memory")
    67108864
    >>> parse_bytes("1", "--memory", least="1M")
    Traceback (most recent call last):
    ...
    steelyard.errors.UsageError: `--memory 1`: too small; allowed: `1M` or more
    """
    size = _size(text)
    if size is None:
        message = f"`{option} {text}`: not a size; allowed: a number followed by K, M, G or T, such as `64M`"
        raise UsageError(message)
    if size > _LARGEST:
        message = f"`{option} {text}`: too large; allowed: less than 8388608T"
        raise UsageError(message, hint=f"leave out `{option}` for no limit")
    if size < (_size(least) or 0):
        message = f"`{option} {text}`: too small; allowed: `{least}` or more" + (f", {why}" if why else "")
        raise UsageError(message)
    return size


def _size(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    return round(Fraction(match[1]) * _BYTES_PER_UNIT[match[2].upper()])  # no digit of it is rounded away


def parse_duration_ns(text: str, option: str) -> int:
    """Give a duration in ns; a bare number is seconds.

    Raises
    ------
    UsageError
        If the text is no duration, or 0, or longer than 292 years.

    Examples
    --------
    >>> parse_duration_ns("1.5", "--wall-time")
    1500000000
    >>> parse_duration_ns("250ms", "--wall-time")
    250000000
    """
    match = _DURATION.fullmatch(text.strip())
    seconds = 0.0
    if match is not None:
        unit_s = {**SECONDS_PER_UNIT, "min": 60.0, "h": 3600.0}[match[2] or "s"]
        seconds = float(match[1]) * unit_s
    if seconds <= 0:
        message = (
            f"`{option} {text}`: not a duration; allowed: a positive number with ns, us, ms, s, min or h"
        )
        raise UsageError(message)
    if seconds * NS_PER_S > _LARGEST:
        message = f"`{option} {text}`: too long; allowed: at most 292 years, which are 2559000h"
        raise UsageError(message)
    return max(round(seconds * NS_PER_S), 1)


def parse_cpu_list(text: str, option: str) -> list[int]:
    """Give CPU numbers of a list as the kernel writes it.

    Raises
    ------
    UsageError
        If the text is no list.

    Examples
    --------
    >>> parse_cpu_list("0-2,5", "--cpus")
    [0, 1, 2, 5]
    """
    cpus: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            message = f"`{option} {text}`: not a list of CPUs; allowed: numbers and ranges, such as `0-2,5`"
            raise UsageError(message)
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(cpus)


def parse_counters(text: str, option: str) -> list[str]:
    """Give the names of a list of counters.

    Raises
    ------
    UsageError
        If no machine has a counter of that name.

    Examples
    --------
    >>> parse_counters("instructions,cache-misses", "--counters")
    ['instructions', 'cache-misses']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = counter_names()
    for name in names:
        if name not in known:
            allowed = ", ".join(f"`{each}`" for each in known)
            near = get_close_matches(name, known, n=1)
            message = f"`{option} {text}`: unknown counter `{name}`; allowed: {allowed}"
            raise UsageError(message, hint=f"did you mean `{near[0]}`?" if near else None)
    return names


def parse_cpus(text: str, option: str) -> list[int]:
    """Give the CPUs of a list, all of which this process may use.

    Raises
    ------
    UsageError
        If the text is no list, or names a CPU this process may not use.
    """
    cpus = parse_cpu_list(text, option)
    usable = sorted(os.sched_getaffinity(0))
    if not set(cpus) <= set(usable):
        message = f"`{option} {text}`: this process may use the CPUs {', '.join(map(str, usable))}"
        raise UsageError(message)
    return cpus


def parse_share(text: str, option: str, allowed: str = "a number from 0 to 100, as in `2%`") -> float:
    """Give a share of a text in percent; a bare number is percent too.

    Raises
    ------
    UsageError
        If the text is no number from 0 to 100.

    Examples
    --------
    >>> parse_share("2%", "--margin"), parse_share("0.5", "--margin")
    (0.02, 0.005)
    """
    match = _SHARE.fullmatch(text.strip())
    if match is None or float(match[1]) > WHOLE_PERCENT:
        message = f"`{option} {text}`: not a percentage; allowed: {allowed}"
        raise UsageError(message)
    return float(match[1]) / WHOLE_PERCENT
