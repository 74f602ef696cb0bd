"""What fills the columns of a table of findings: each function here gives a function of a finding.

A value that rests on a number of its finding leads to it; names do not, unless `linked` says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from steelyard.report.page import Value
from steelyard.report.slots import INTERVAL_STYLES, NOT_AVAILABLE, level_text, limits_text, write
from steelyard.report.table_spec import DOUBT, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from steelyard.model.finding import Finding
    from steelyard.report.table_spec import ColumnSpec

Row = TypeVar("Row")
Fill: TypeAlias = "Callable[[Finding], Value]"

NOTHING: Final = Value(NOT_AVAILABLE)
NO_TONES: Final[Mapping[str, str]] = {}

TONES: Final[Mapping[str, str]] = {
    **{word: word for word in ("faster", "slower", "equivalent", "higher", "lesser", "same", "overlap")},
    "agrees": "good",
    "contradicts": "warn",
}
"""Tone of each verdict that means the same in every study; a study adds its own words."""

OPEN_TONES: Final[Mapping[str, str]] = {word: word for word in ("inconclusive", "descriptive", NOT_AVAILABLE)}
"""Verdicts that decide nothing, for tables that mark them too."""


def subject(key: str) -> Fill:
    """Fill with a part of the subject; nothing where the finding has no such part."""
    return lambda finding: Value(finding.subject.get(key, ""))


def subject_number(key: str) -> Fill:
    """Fill with a part of the subject, sorted by value where it is a number."""

    def fill(finding: Finding) -> Value:
        said = finding.subject.get(key, "")
        return Value(said, float(said) if said.isdecimal() else None)

    return fill


def subjects(*keys: str) -> tuple[ColumnSpec[Finding], ...]:
    """Give one column of text per part of the subject, by its name."""
    return tuple(text(key, subject(key)) for key in keys)


def verdict(own: Mapping[str, str] = NO_TONES) -> Fill:
    """Fill with the verdict in its tone; `own` are the words of the study, which come before `TONES`."""
    tones = {**TONES, **own}
    return lambda finding: Value(finding.verdict, tone=tones.get(finding.verdict, ""), finding=finding.id)


def estimate(role: str, style: str | Callable[[float], str] = "") -> Fill:
    """Fill with an estimate in a style of `report.slots` or in a way of its own; by default with its unit."""

    def fill(finding: Finding) -> Value:
        if role not in finding.estimates:
            return NOTHING
        found = finding.estimates[role]
        if isinstance(style, str):
            said = write(found, style)
        else:
            said = NOT_AVAILABLE if found.value is None else style(found.value)
        return Value(said, found.value, finding=finding.id)

    return fill


def limits(role: str, style: str | Callable[[float], str] = "interval") -> Fill:
    """Fill with the limits of an estimate, without their level, which stands in the heading.

    A style is one of `report.slots`, or a way of its own to write a number.
    """

    def fill(finding: Finding) -> Value:
        if role not in finding.estimates:
            return NOTHING
        found = finding.estimates[role]
        if found.low is None or found.high is None:
            return Value("none", finding=finding.id)
        whole = INTERVAL_STYLES[style](found) if isinstance(style, str) else limits_text(found, style)
        said = whole.removeprefix(f"{level_text(found)} ").partition(",")[0]
        return Value(said if found.guaranteed else f"{said} {DOUBT}", finding=finding.id)

    return fill


def fact(key: str) -> Fill:
    """Fill with a fact that is a number."""

    def fill(finding: Finding) -> Value:
        found = finding.facts[key]
        if isinstance(found, int | float):
            return Value(f"{found:g}", float(found), finding=finding.id)
        return Value(NOT_AVAILABLE, finding=finding.id)

    return fill


def written(key: str, write_number: Callable[[float], str]) -> Fill:
    """Fill with a fact that is a number, written in a way of its own."""

    def fill(finding: Finding) -> Value:
        found = finding.facts[key]
        return Value(write_number(found), float(found)) if isinstance(found, int | float) else NOTHING

    return fill


def count(key: str) -> Fill:
    """Fill with a fact that counts something, in all its digits."""
    return written(key, str)


def word(key: str, absent: str = "") -> Fill:
    """Fill with a fact that is text; with `absent` where there is none."""
    return lambda finding: Value(str(finding.facts.get(key) or absent))


def linked(fill: Fill) -> Fill:
    """Let a value lead to its finding."""
    return lambda finding: replace(fill(finding), finding=finding.id)


def of(pick: Callable[[Row], Finding | None], fill: Fill) -> Callable[[Row], Value]:
    """Fill from the finding that `pick` gives of a row; NA where it gives none."""

    def filled(row: Row) -> Value:
        found = pick(row)
        return NOTHING if found is None else fill(found)

    return filled


def pivoted(
    findings: Iterable[Finding], by: Sequence[str], across: Callable[[Finding], str]
) -> list[dict[str, Finding]]:
    """Put findings that share parts of their subject into one row, each under its name in that row."""
    rows: dict[tuple[str, ...], dict[str, Finding]] = {}
    for finding in findings:
        rows.setdefault(tuple(finding.subject[key] for key in by), {})[across(finding)] = finding
    return list(rows.values())


def shared(fill: Fill) -> Callable[[Mapping[str, Finding]], Value]:
    """Fill from any finding of a row of `pivoted`: with what all of them share."""
    return lambda row: fill(next(iter(row.values())))


def at(name: str, fill: Fill) -> Callable[[Mapping[str, Finding]], Value]:
    """Fill from the finding of that name in a row of `pivoted`; NA where there is none."""
    return of(lambda row: row.get(name), fill)
