"""Values of table cells, made of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE, signed_change, with_unit
from steelyard.units import format_significant

if TYPE_CHECKING:
    from steelyard.model.finding import Finding
    from steelyard.studies.stability.report_data import Key

TABLE_NUMBERS: Final = {"cpu": 1, "wall": 2, "mean": 3, "sd": 4, "parallel": 5, "classes": 6}
"""Numbers of the tables of the published study."""

CV_DIGITS: Final = 4
SECONDS_DECIMALS: Final = 7
"""SOURCE: digits of the published tables."""


def place(finding: Finding) -> Key:
    """Give the cell a finding is about."""
    subject = finding.subject
    return subject["isolation"], subject["setup"], subject["workload"]


def size_of(setup: str) -> str:
    """Give the number of workers of a setup as text; empty when it states none."""
    size = setup.rpartition(",")[2]
    return size if size.isdigit() else ""


def seconds_value(finding: Finding, role: str) -> Value:
    """Give an estimate in seconds with the digits of the published tables."""
    value = finding.estimates[role].value
    text = NOT_AVAILABLE if value is None else f"{value:.{SECONDS_DECIMALS}f}"
    return Value(text, value, finding=finding.id)


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


def ratio_value(finding: Finding) -> Value:
    """Give a ratio in percent."""
    value = finding.estimates["ratio"].value
    text = NOT_AVAILABLE if value is None else f"{value * 100:.2f}"
    return Value(text, value, finding=finding.id)


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
