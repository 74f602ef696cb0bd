"""Values of table cells, made of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE

if TYPE_CHECKING:
    from steelyard.model.finding import Finding
    from steelyard.studies.stability.report_data import Key

TABLE_NUMBERS: Final = {"cpu": 1, "wall": 2, "mean": 3, "sd": 4, "parallel": 5, "classes": 6}
"""Numbers of the tables of the published study."""

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


def ratio_value(finding: Finding) -> Value:
    """Give a ratio in percent."""
    value = finding.estimates["ratio"].value
    text = NOT_AVAILABLE if value is None else f"{value * 100:.2f}"
    return Value(text, value, finding=finding.id)
