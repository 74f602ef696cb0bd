"""Values of table cells that reports of several studies show, made of findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE, signed_change, with_unit
from steelyard.units import format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model.finding import Finding

CV_DIGITS: Final = 4


def estimate_value(finding: Finding, role: str) -> Value:
    """Give an estimate with its unit."""
    estimate = finding.estimates[role]
    if estimate.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    return Value(with_unit(estimate.value, estimate.unit), estimate.value, finding=finding.id)


def number_value(finding: Finding, role: str) -> Value:
    """Give an estimate as a plain number; its unit stands in the heading."""
    estimate = finding.estimates[role]
    if estimate.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    return Value(format_significant(estimate.value, CV_DIGITS), estimate.value, finding=finding.id)


def change_value(finding: Finding, role: str) -> Value:
    """Give a ratio as a signed difference from one."""
    value = finding.estimates[role].value
    return Value(NOT_AVAILABLE if value is None else signed_change(value), value, finding=finding.id)


def fact_value(finding: Finding, key: str) -> Value:
    """Give a numeric fact."""
    value = finding.facts[key]
    if isinstance(value, (int, float)):
        return Value(f"{value:g}", float(value), finding=finding.id)
    return Value(NOT_AVAILABLE, finding=finding.id)


DOUBT: Final = "*"
"""Mark of an interval in a table that may miss its level; the note of the table says so."""

DOUBT_NOTE: Final = f"{DOUBT} with so few trials the interval may miss its level."


def change_interval_value(finding: Finding, role: str) -> Value:
    """Give the limits of a ratio as signed differences from one."""
    estimate = finding.estimates[role]
    if estimate.low is None or estimate.high is None:
        return Value("none", finding=finding.id)
    doubt = "" if estimate.guaranteed else f" {DOUBT}"
    limits = f"{signed_change(estimate.low)} to {signed_change(estimate.high)}"
    return Value(f"{limits}{doubt}", finding=finding.id)


def interval_value(finding: Finding, role: str) -> Value:
    """Give the limits of an estimate without its level, which stands in the heading."""
    estimate = finding.estimates[role]
    if estimate.low is None or estimate.high is None:
        return Value("none", finding=finding.id)
    low, high = with_unit(estimate.low, estimate.unit), with_unit(estimate.high, estimate.unit)
    doubt = "" if estimate.guaranteed else f" {DOUBT}"
    return Value(f"{low} to {high}{doubt}", finding=finding.id)


def counted(words: Iterable[str], order: Sequence[str] = ()) -> str:
    """Count words, most frequent first, or in a given order.

    Examples
    --------
    >>> counted(["flat", "warm-up", "flat"])
    '2 flat, 1 warm-up'
    """
    counts = Counter(words)
    names = [name for name in order if name in counts] or [name for name, _ in counts.most_common()]
    return ", ".join(f"{counts[name]} {name}" for name in names)
