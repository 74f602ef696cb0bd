"""Pieces that the tables of the replication report share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE
from steelyard.studies.report_values import DOUBT_NOTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding

TONES: Final = {
    "equivalent": "equivalent",
    "different": "higher",
    "undecided": "inconclusive",
    "higher": "higher",
    "lesser": "lesser",
    "same": "same",
    "overlap": "overlap",
    "spikes gone": "good",
    "fewer spikes": "warn",
    "still spikes": "bad",
    "more spikes": "bad",
    "named": "good",
    "named in part": "warn",
    "costs": "warn",
    "loses records": "bad",
    "below every framework": "good",
    "not below every framework": "bad",
    "always fails": "bad",
    "sometimes fails": "warn",
    "played": "warn",
    "on time": "good",
    "late": "bad",
    "does not follow from the rows": "bad",
    "follows from a row": "good",
    "a new device holds": "good",
    "a new device may differ": "warn",
}
NOTHING: Final = Value(NOT_AVAILABLE)


def verdict_value(finding: Finding) -> Value:
    """Give a verdict with its colour; why it is undecided stands below."""
    reason = str(finding.facts.get("reason") or "") if finding.verdict == "undecided" else ""
    return Value(finding.verdict, tone=TONES.get(finding.verdict, ""), note=reason, finding=finding.id)


def what_values(each: Finding) -> tuple[Value, Value, Value]:
    """Say what a comparison is about."""
    parts = (each.subject["configuration"], each.subject["operation"])
    return (
        Value(each.subject["experiment"]),
        Value(" ".join(part for part in parts if part)),
        Value(each.subject["metric"]),
    )


def word_value(each: Finding, key: str) -> Value:
    """Give a fact that is a word."""
    word = str(each.facts[key] or "")
    return Value(word, tone=TONES.get(word, "")) if word else NOTHING


def time_value(each: Finding, key: str) -> Value:
    """Give a fact in nanoseconds as microseconds."""
    value = each.facts[key]
    if not isinstance(value, int | float):
        return NOTHING
    return Value(f"{value / 1000:.4g} us", float(value), finding=each.id)


def quotient_value(each: Finding, role: str) -> Value:
    """Give an estimate as a plain number."""
    value = each.estimates[role].value
    return NOTHING if value is None else Value(f"{value:.4g}", value, finding=each.id)


def percent_value(each: Finding, key: str) -> Value:
    """Give a fact in percent."""
    value = each.facts[key]
    return Value(f"{value:.3g} %", float(value)) if isinstance(value, int | float) else NOTHING


def table_of(
    name: str,
    title: str,
    columns: tuple[Column, ...],
    rows: Sequence[tuple[Value, ...]],
    *,
    note: str = "",
    file: str = "",
) -> Table | None:
    """Make a table; none without rows. The note about doubt is left out where nothing is doubted."""
    if not rows:
        return None
    said = "" if note == DOUBT_NOTE and not _is_doubted(rows) else note
    return Table(name, title, columns, tuple(rows), note=said, file=f"tables/{file or name}.csv")


def as_key(table: Table | None) -> Table | None:
    """Show a table in the summary of a terminal too."""
    return None if table is None else replace(table, is_key=True)


def _is_doubted(rows: Sequence[tuple[Value, ...]]) -> bool:
    return any("*" in value.text + value.note for row in rows for value in row)
