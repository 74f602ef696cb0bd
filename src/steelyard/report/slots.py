"""Slots of sentence templates: which value of a finding a slot names, and how it is written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from steelyard.errors import InternalError
from steelyard.units import format_bytes, format_seconds, format_significant

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model.finding import Estimate, Finding

NOT_AVAILABLE: Final = "NA"
Scalar: TypeAlias = "str | int | float | bool | None"

PERCENT_DIGITS: Final = 3
RATIO_DECIMALS: Final = 4
SIGNIFICANT_DIGITS: Final = 4
SMALL_PERCENT: Final = 0.1
LEAST_PERCENT: Final = 0.001


class AbsentSlotError(InternalError):
    """A template names a value that its finding does not have."""

    code = "report.slot"


def value_of(finding: Finding, slot: str) -> Scalar | Estimate:
    """Give what a slot names.

    Parameters
    ----------
    finding : Finding
        Where to look.
    slot : str
        ``claim``, ``verdict``, ``subject.KEY``, ``facts.KEY``, ``estimates.ROLE``, or
        ``estimates.ROLE.FIELD`` with a field of `Estimate`.

    Raises
    ------
    AbsentSlotError
        If the finding has no such value.
    """
    head, _, rest = slot.partition(".")
    if slot in {"claim", "verdict"}:
        return finding.verdict if slot == "verdict" else finding.claim
    if head == "subject" and rest in finding.subject:
        return finding.subject[rest]
    if head == "facts" and rest in finding.facts:
        return finding.facts[rest]
    role, _, part = rest.partition(".")
    if head == "estimates" and role in finding.estimates:
        estimate = finding.estimates[role]
        if not part:
            return estimate
        if part in {"value", "low", "high", "level", "unit", "method", "units", "measurements"}:
            found: Scalar = getattr(estimate, part)
            return found
    message = f"finding `{finding.id}` has no slot `{slot}`; it has: {', '.join(slots_of(finding))}"
    raise AbsentSlotError(message)


def slots_of(finding: Finding) -> list[str]:
    """Give the names of all slots of a finding, without the fields of its estimates."""
    return [
        "claim",
        "verdict",
        *(f"subject.{key}" for key in finding.subject),
        *(f"facts.{key}" for key in finding.facts),
        *(f"estimates.{role}" for role in finding.estimates),
    ]


def is_present(value: Scalar | Estimate) -> bool:
    """Tell whether a slot holds something to say."""
    if value is None or value == "":
        return False
    return isinstance(value, (str, int, float)) or value.value is not None


def write(value: Scalar | Estimate, style: str = "") -> str:
    """Write the value of a slot for people.

    Parameters
    ----------
    value : str, int, float, bool, None or Estimate
        From `value_of`.
    style : str
        A key of `STYLES`; empty for the unit's own way. Text is written as it is, but a number in it as
        ``percent`` if that is asked for.

    Raises
    ------
    AbsentSlotError
        If the style does not exist.
    """
    if style and style not in STYLES and style not in INTERVAL_STYLES:
        allowed = ", ".join(f"`{name}`" for name in (*STYLES, *INTERVAL_STYLES))
        message = f"slot style `{style}` does not exist; allowed: {allowed}"
        raise AbsentSlotError(message)
    if not is_present(value):
        return NOT_AVAILABLE
    if isinstance(value, (str, bool)):
        text = str(value)
        return f"{text} %" if style == "percent" and text.isdecimal() else text
    if value is None or isinstance(value, (int, float)):
        return _written(value, style, "")
    if style in INTERVAL_STYLES:
        return INTERVAL_STYLES[style](value)
    return _written(value.value, style, value.unit)


def _written(number: float | None, style: str, unit: str) -> str:
    if number is None or style in INTERVAL_STYLES:
        return NOT_AVAILABLE
    if style:
        return STYLES[style](float(number))
    return with_unit(number, unit) if unit else _plain(number)


def with_unit(number: float, unit: str) -> str:
    """Write a number in a unit.

    Examples
    --------
    >>> with_unit(0.0523456, "s"), with_unit(2.34567, "percent"), with_unit(1.0, "workers")
    ('52.35 ms', '2.35 %', '1 worker')
    """
    if unit in _WRITERS:
        return _WRITERS[unit](number)
    return f"{_plain(number)} {unit}".rstrip()


def interval(estimate: Estimate) -> str:
    """Write the limits of an estimate, with level; empty when there are none.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> interval(Estimate(1.02, "ratio", "welch", 1.01, 1.03, 0.95))
    '95 % interval 1.0100 to 1.0300'
    """
    return limits_text(estimate, lambda value: with_unit(value, estimate.unit))


def limits_text(estimate: Estimate, written: Callable[[float], str]) -> str:
    """Write the limits of an estimate, with level, in a way of writing numbers."""
    if estimate.low is None or estimate.high is None:
        return "no interval"
    low, high = written(estimate.low), written(estimate.high)
    doubt = "" if estimate.guaranteed else ", not guaranteed"
    return f"{level_text(estimate)} {low} to {high}{doubt}"


def rounded(estimate: Estimate) -> str:
    """Write an estimate with as many digits as its interval leaves: two of half its width.

    Without an interval, or with one that is a point, it is written as `with_unit` does.

    References
    ----------
    .. [1] JCGM 100:2008 (GUM), 7.2.6: at most two significant digits of an uncertainty.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> rounded(Estimate(33.0129, "ratio", "", 12.3, 58.1, 0.95))
    '33'
    >>> rounded(Estimate(1.98765, "ratio", "", 1.9812, 1.9961, 0.95))
    '1.9876'
    """
    if estimate.value is None:
        return NOT_AVAILABLE
    return _to_interval(estimate.value, estimate)


def rounded_interval(estimate: Estimate) -> str:
    """Write the limits of an estimate, with level, to the digits of `rounded`.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> rounded_interval(Estimate(33.0129, "ratio", "", 12.3, 58.1, 0.95))
    '95 % interval 12 to 58'
    """
    return limits_text(estimate, lambda value: _to_interval(value, estimate))


def _to_interval(value: float, estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None or estimate.unit not in _ROUNDED_UNITS:
        return with_unit(value, estimate.unit)
    decimals = _decimals(estimate.low, estimate.high)
    if decimals is None:
        return with_unit(value, estimate.unit)
    # A narrow interval lends no digits beyond those that the unit is written with.
    digits = f"{value:.{min(decimals, RATIO_DECIMALS)}f}"
    suffix = _ROUNDED_UNITS[estimate.unit]
    return f"{digits} {suffix}".rstrip()


def rounded_change(estimate: Estimate) -> str:
    """Write a ratio as a signed difference from one, with the digits that its interval leaves.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> rounded_change(Estimate(1.3542, "ratio", "", 0.92, 2.03, 0.95))
    '+35 %'
    """
    return NOT_AVAILABLE if estimate.value is None else _change_to_interval(estimate.value, estimate)


def rounded_change_interval(estimate: Estimate) -> str:
    """Write the limits of a ratio as signed differences from one, to the digits of `rounded_change`.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> rounded_change_interval(Estimate(1.3542, "ratio", "", 0.9187, 2.03, 0.95))
    '95 % interval -8 % to +103 %'
    """
    return limits_text(estimate, lambda value: _change_to_interval(value, estimate))


def _change_to_interval(value: float, estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return signed_change(value)
    decimals = _decimals(100 * estimate.low, 100 * estimate.high)
    if decimals is None:
        return signed_change(value)
    digits = f"{100 * (value - 1):+.{min(decimals, PERCENT_DIGITS)}f}"
    return f"{digits.lstrip('+-') if not float(digits) else digits} %"


def _decimals(low: float, high: float) -> int | None:
    """Give how many decimals half of an interval's width is written with, to two digits."""
    half = (high - low) / 2
    return max(0, 1 - math.floor(math.log10(half))) if 0 < half < math.inf else None


def level_text(estimate: Estimate) -> str:
    """Name an interval by its level.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> level_text(Estimate(1.0, "ratio", "welch", 0.9, 1.1, 0.95))
    '95 % interval'
    """
    return "interval" if estimate.level is None else f"{percent(estimate.level * 100)} interval"


def percent(value: float) -> str:
    """Write a percentage.

    Examples
    --------
    >>> percent(2.0), percent(0.01234), percent(153.2), percent(0.0000123)
    ('2 %', '0.0123 %', '153 %', 'below 0.001 %')
    """
    if 0 < abs(value) < LEAST_PERCENT:
        return f"below {LEAST_PERCENT} %"
    text = format_significant(value, PERCENT_DIGITS)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} %"


def change(ratio: float) -> str:
    """Write a ratio as a difference from one.

    Examples
    --------
    >>> change(1.0234), change(0.95), change(1.0)
    ('2.34 % more', '5 % less', '0 % more')
    """
    difference = (ratio - 1) * 100
    if abs(difference) < SMALL_PERCENT:
        return f"{percent(round(abs(difference), 3))} {'less' if difference < 0 else 'more'}"
    return f"{percent(abs(difference))} {'less' if difference < 0 else 'more'}"


def signed_change(ratio: float) -> str:
    """Write a ratio as a signed difference from one.

    Examples
    --------
    >>> signed_change(1.0234), signed_change(0.95), signed_change(1.0), signed_change(0.999999)
    ('+2.34 %', '-5 %', '0 %', 'above -0.001 %')
    """
    difference = (ratio - 1) * 100
    sign = "+" if difference > 0 else "-" if difference < 0 else ""
    if 0 < abs(difference) < LEAST_PERCENT:
        return f"{'below' if difference > 0 else 'above'} {sign}{LEAST_PERCENT} %"
    return f"{sign}{percent(abs(difference))}"


def change_interval(estimate: Estimate) -> str:
    """Write the limits of a ratio as signed differences from one.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> change_interval(Estimate(1.02, "ratio", "welch", 0.99, 1.03, 0.95, guaranteed=False))
    '95 % interval -1 % to +3 %, not guaranteed'
    """
    return limits_text(estimate, signed_change)


def ratio_interval(estimate: Estimate) -> str:
    """Write the limits of a ratio in percent.

    Examples
    --------
    >>> from steelyard.model.finding import Estimate
    >>> ratio_interval(Estimate(0.2, "ratio", "", 0.1, 0.5, 0.95))
    '95 % interval 10 % to 50 %'
    """
    return limits_text(estimate, lambda value: percent(100 * value))


def _rate(value: float) -> str:
    """Write bytes per second in decimal units, as links are sold.

    Examples
    --------
    >>> _rate(119_550_859.0)
    '119.6 MB/s'
    """
    return _prefixed(value, "B/s")


def _operations(value: float) -> str:
    """Write a throughput with a decimal prefix.

    Examples
    --------
    >>> _operations(338_745_000.0), _operations(12.3456)
    ('338.7 Mop/s', '12.35 op/s')
    """
    return _prefixed(value, "op/s")


def _prefixed(value: float, unit: str) -> str:
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{format_significant(value / size, SIGNIFICANT_DIGITS)} {prefix}{unit}"
    return f"{format_significant(value, SIGNIFICANT_DIGITS)} {unit}"


def _workers(value: float) -> str:
    return "1 worker" if value == 1 else f"{_plain(value)} workers"


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


_ROUNDED_UNITS: Final = {"ratio": "", "percent": "%", "workers": "workers", "cores": "cores"}
"""Units that `rounded` knows, with what stands behind the number."""

_WRITERS: Final[dict[str, Callable[[float], str]]] = {
    "s": format_seconds,
    "ns": lambda value: format_seconds(value * 1e-9),
    "bytes": format_bytes,
    "percent": percent,
    "ratio": lambda value: f"{value:.{RATIO_DECIMALS}f}",
    "count": lambda value: f"{value:,.0f}".replace(",", " "),
    "workers": _workers,
    "bytes/s": _rate,
    "s/byte": lambda value: f"{format_significant(value * 1e9, SIGNIFICANT_DIGITS)} ns/B",
    "operations/s": _operations,
    "requests/s": lambda value: f"{format_significant(value, SIGNIFICANT_DIGITS)} requests/s",
}

STYLES: Final[dict[str, Callable[[float], str]]] = {
    "seconds": format_seconds,
    "percent": percent,
    "ratio_percent": lambda value: percent(value * 100),
    "change": change,
    "signed": signed_change,
    "count": lambda value: f"{value:,.0f}".replace(",", " "),
    "workers": _workers,
    "number": _plain,
    "significant": lambda value: format_significant(value, SIGNIFICANT_DIGITS),
}
"""Ways to write a number, chosen after a colon in a slot: ``{facts.tolerance_percent:percent}``."""

INTERVAL_STYLES: Final[dict[str, Callable[[Estimate], str]]] = {
    "interval": interval,
    "rounded": rounded,
    "rounded_interval": rounded_interval,
    "rounded_change": rounded_change,
    "rounded_change_interval": rounded_change_interval,
    "change_interval": change_interval,
    "ratio_interval": ratio_interval,
}
"""Ways to write an estimate that need its limits."""
