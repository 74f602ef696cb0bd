"""What a link between two endpoints shall be: ``rate=1gbit,delay=50us,burst=8kb,loss=0.1%,shaper=tbf``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE: Final = "--link rate=1gbit,delay=50us"

RATE_UNITS: Final[Mapping[str, int]] = {
    "bit": 1,
    "kbit": 1_000,
    "mbit": 1_000_000,
    "gbit": 1_000_000_000,
}
"""Bits per second, decimal as in tc."""
STATED_UNITS: Final[Mapping[str, int]] = {
    **{unit.replace("bit", "bps"): bits for unit, bits in RATE_UNITS.items()},
    **RATE_UNITS,
}
"""The same as makers of networks write them."""
TIME_UNITS: Final[Mapping[str, int]] = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Nanoseconds."""
SIZE_UNITS: Final[Mapping[str, int]] = {"b": 1, "kb": 1024, "mb": 1024 * 1024}
"""Bytes. SOURCE: tc(8), PARAMETERS: ``kb`` is 1024 bytes."""
PERCENT: Final[Mapping[str, int]] = {"%": 1}

RATE_RANGE: Final = (64_000, 100_000_000_000)
"""Bits per second: below it a frame takes 0.2 s, above it the kernel's timers are longer than many frames."""
DELAY_RANGE: Final = (0, 10_000_000_000)
BURST_RANGE: Final = (2 * 1514, 16 * 1024 * 1024)
"""Bytes: two frames of Ethernet, so that one always passes also when the kernel rounds the bucket down."""
LOSS_RANGE: Final = (0, 50)

_QUANTITY: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([a-z%]*)", re.ASCII | re.IGNORECASE)


class Shaper(StrEnum):
    """The kernel's mechanism that bounds the rate."""

    HTB = "htb"
    """Hierarchical token bucket: a packet passes whole, on credit, so few timers are needed."""
    TBF = "tbf"
    """Token bucket filter: cuts packets into frames and needs a timer for each, so the bucket alone counts;
    on a busy or virtual machine it loses rate."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """What the link shall be.

    Parameters
    ----------
    rate_bits_per_s : int
        Rate of frames on each side, 64 kbit/s to 100 Gbit/s. Frames count with their Ethernet header.
    delay_ns : int
        Added in each direction, 0 to 10 s; a round trip takes twice as much.
    burst_bytes : int or None
        Size of the token bucket: what passes at once after a pause; ``None`` chooses the smallest that
        the kernel's timers can serve.
    loss_percent : float
        Frames that are lost, 0 to 50.
    shaper : Shaper or None
        Mechanism; ``None`` takes the first that the kernel has.
    """

    rate_bits_per_s: int
    delay_ns: int = 0
    burst_bytes: int | None = None
    loss_percent: float = 0.0
    shaper: Shaper | None = None

    def __str__(self) -> str:
        """Write the options so that `parse_link` reads the same.

        Examples
        --------
        >>> str(LinkOptions(1_000_000_000, delay_ns=50_000))
        'rate=1gbit,delay=50us'
        """
        words = [f"rate={_written(self.rate_bits_per_s, RATE_UNITS)}"]
        if self.delay_ns:
            words.append(f"delay={_written(self.delay_ns, TIME_UNITS)}")
        if self.burst_bytes is not None:
            words.append(f"burst={_written(self.burst_bytes, SIZE_UNITS)}")
        if self.loss_percent:
            words.append(f"loss={Decimal(repr(self.loss_percent)):f}%")
        if self.shaper is not None:
            words.append(f"shaper={self.shaper}")
        return ",".join(words)


@dataclass(frozen=True, slots=True)
class _Key:
    """Units of a key's values, their range in the unit 1, and whether the value is a whole number of it."""

    units: Mapping[str, int]
    range: tuple[int, int]
    default_unit: str | None = None


_KEYS: Final[Mapping[str, _Key]] = {
    "rate": _Key(RATE_UNITS, RATE_RANGE),
    "delay": _Key(TIME_UNITS, DELAY_RANGE),
    "burst": _Key(SIZE_UNITS, BURST_RANGE, "b"),
    "loss": _Key(PERCENT, LOSS_RANGE),
}
_ALLOWED: Final = (*_KEYS, "shaper")


def parse_link(text: str) -> LinkOptions:
    """Read the value of ``--link``.

    Parameters
    ----------
    text : str
        ``KEY=VALUE`` pairs with commas between them; ``rate`` is required.

    Raises
    ------
    UsageError
        Naming the part that is wrong, and the allowed keys, units and range.

    Examples
    --------
    >>> parse_link("rate=1gbit,delay=50us")
    LinkOptions(rate_bits_per_s=1000000000, delay_ns=50000, burst_bytes=None, loss_percent=0.0, shaper=None)
    """
    pairs: dict[str, str] = {}
    for part in text.split(","):
        key, sign, value = (word.strip() for word in part.partition("="))
        if not sign or not value or key not in _ALLOWED:
            raise _wrong(text, f"`{part}` is not KEY=VALUE with a key of: {', '.join(_ALLOWED)}")
        if key in pairs:
            raise _wrong(text, f"`{key}` is given twice")
        pairs[key] = value
    if "rate" not in pairs:
        raise _wrong(text, "`rate` is missing")
    found = {key: _quantity(text, key, pairs[key]) for key in _KEYS if key in pairs}
    return LinkOptions(
        rate_bits_per_s=int(found["rate"]),
        delay_ns=int(found.get("delay", Decimal(0))),
        burst_bytes=int(found["burst"]) if "burst" in found else None,
        loss_percent=float(found.get("loss", Decimal(0))),
        shaper=_shaper(text, pairs.get("shaper")),
    )


@dataclass(frozen=True, slots=True)
class NominalLink:
    """What a network is called: the two numbers that its users write into a model.

    Parameters
    ----------
    bandwidth_bytes_per_s, latency_s : float
        Of one direction, positive.
    """

    bandwidth_bytes_per_s: float
    latency_s: float


def is_nominal(text: str) -> bool:
    """Say whether a value of ``--link`` states what is there, instead of what is to be made."""
    return "=" not in text and text != "none"


def parse_nominal(text: str) -> NominalLink:
    """Read ``RATE,LATENCY`` as in ``10Gbps,50us``.

    Raises
    ------
    UsageError
        Naming the part that is wrong, and the allowed units.

    Examples
    --------
    >>> parse_nominal("10Gbps,50us")
    NominalLink(bandwidth_bytes_per_s=1250000000.0, latency_s=5e-05)
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:  # noqa: PLR2004 - a rate and a latency
        raise _wrong(
            text, "it is neither `RATE,LATENCY` of an existing network nor `rate=...` of one to create"
        )
    rate, latency = parts
    bits = _stated(text, "the rate", rate, STATED_UNITS)
    nanoseconds = _stated(text, "the latency", latency, {"ns": 1, **TIME_UNITS})
    return NominalLink(bits / 8, nanoseconds / 1e9)


def _stated(text: str, name: str, value: str, units: Mapping[str, int]) -> float:
    matched = _QUANTITY.fullmatch(value)
    unit = matched[2].lower() if matched else ""
    number = float(matched[1]) * units[unit] if matched is not None and unit in units else 0.0
    if not number > 0:
        raise _wrong(
            text, f"{name} is `{value}`; expected a positive number with a unit of: {', '.join(units)}"
        )
    return number


def _quantity(text: str, key: str, value: str) -> Decimal:
    """Read a number with its unit, in the unit 1 of the key."""
    wanted = _KEYS[key]
    matched = _QUANTITY.fullmatch(value)
    unit = (matched[2].lower() or wanted.default_unit or "") if matched else ""
    low, high = (_written(bound, wanted.units) for bound in wanted.range)
    expected = f"expected {low} to {high}, units: {', '.join(wanted.units)}"
    if matched is None or unit not in wanted.units:
        raise _wrong(text, f"{key} is `{value}`; {expected}")
    number = Decimal(str(matched[1])) * wanted.units[unit]
    if not wanted.range[0] <= number <= wanted.range[1]:
        raise _wrong(text, f"{key} is `{value}`; {expected}")
    if key != "loss" and number != int(number):
        raise _wrong(text, f"{key} is `{value}`, a part of the smallest unit; {expected}")
    return number


def _shaper(text: str, value: str | None) -> Shaper | None:
    if value is None:
        return None
    try:
        return Shaper(value)
    except ValueError as error:
        allowed = ", ".join(Shaper)
        raise _wrong(text, f"shaper is `{value}`; allowed: {allowed}") from error


def _written(value: int, units: Mapping[str, int]) -> str:
    """Write a whole number in the largest unit that keeps it whole."""
    for unit in sorted(units, key=lambda name: units[name], reverse=True):
        if value % units[unit] == 0 and (value or units[unit] == 1 or min(units.values()) > 1):
            return f"{value // units[unit]}{unit}"
    return f"{Decimal(value) / min(units.values()):f}{min(units, key=lambda name: units[name])}"


def _wrong(text: str, reason: str) -> UsageError:
    hint = f"`--link 10Gbps,50us` states an existing network; to create one, use e.g. {EXAMPLE}"
    return UsageError(f"`--link {text}`: {reason}", hint=hint, code="usage.link")
