"""Tables of the report of imported results, each value made of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.fills import (
    NOTHING,
    OPEN_TONES,
    count,
    estimate,
    linked,
    subjects,
    verdict,
    word,
    written,
)
from steelyard.report.page import Value
from steelyard.report.slots import INTERVAL_STYLES, NOT_AVAILABLE
from steelyard.report.table_spec import TableSpec, number, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.page import Table

NOTE: Final = (
    "Intervals take runs (or files) as the unit where there are several; `not guaranteed` marks those that "
    "may miss their level with so few or such dependent values."
)
DIGITS_OF_PUBLISHED: Final = 12


def location_table(findings: FindingSet) -> Table | None:
    """Give the mean of each cell and metric, few columns for a terminal."""
    chosen = findings.of("cell")
    names = _names(chosen)

    def cell(finding: Finding) -> Value:
        return Value(", ".join(finding.subject.get(name, "") for name in names), finding=finding.id)

    columns = (
        text(", ".join(names), cell),
        number("n", count("n")),
        number("runs", count("runs")),
        number("mean", estimate("mean")),
        text("95 % interval", _limits("mean", "interval")),
    )
    return TableSpec(
        "means", "Means", columns, NOTE, file="cells", is_key=True, summary=lambda rows: f"{len(rows)} means"
    ).build(chosen)


def cell_table(findings: FindingSet) -> Table | None:
    """Give one row per cell and metric."""
    chosen = findings.of("cell")
    columns = (
        *subjects(*_names(chosen)),
        number("n", count("n"), "measured values"),
        number("runs", count("runs"), "process launches, as far as the format tells them apart"),
        number(
            "warm-up values",
            count("warm_up_values"),
            "values that the tool itself marked as warm-up; not among n",
        ),
        number("mean", estimate("mean")),
        text("95 % interval", linked(_limits("mean", "interval"))),
        number("cv", estimate("cv"), "standard deviation over mean, all values"),
        number("iqr", estimate("iqr"), "range between the quartiles"),
        text(
            "series",
            linked(lambda finding: Value(finding.verdict)),
            "worst class of the series that are long enough to classify",
        ),
        number("lag-1", _plain("lag_1"), "autocorrelation of neighbours inside a series"),
        number(
            "effective size", _plain("effective_size"), "size of an independent series of equal precision"
        ),
        text("modes", word("modes"), "dip test at 1 %; a hint to look at the values"),
        number("outliers", count("outliers"), "beyond 10 MAD of the median; labelled, kept"),
    )
    return TableSpec(
        "cells",
        "Every cell and metric",
        columns,
        NOTE,
        summary=lambda rows: f"{len(rows)} cells and metrics",
    ).build(chosen)


def comparison_table(findings: FindingSet) -> Table | None:
    """Give one row per comparison."""
    chosen = findings.of("comparison")
    names = [name for name in _names(chosen) if name not in {"family", "first", "second"}]
    columns = (
        *subjects(*names, "first", "second"),
        number("difference", _change),
        text("95 % interval", _limits("ratio", "change_interval")),
        text("verdict", verdict(OPEN_TONES)),
    )
    return TableSpec(
        "comparisons",
        "Each alternative against the first",
        columns,
        is_key=True,
        summary=lambda rows: f"{len(rows)} comparison{'s' * (len(rows) != 1)}",
    ).build(chosen)


def published_table(findings: FindingSet) -> Table | None:
    """Give one row per number that the tool published, with ours beside it."""
    chosen = findings.of("published_value")
    columns = (
        *subjects(*_names(chosen)),
        text("as printed", word("printed")),
        number("published", _exact("published")),
        number("ours", _exact("ours"), "the same statistic of the raw values in the file"),
        text("agreement", _agreement, "to a relative 1e-9"),
    )
    return TableSpec("published", "Published values and ours", columns, summary=_agreeing).build(chosen)


def _names(findings: Sequence[Finding]) -> list[str]:
    """Give the keys of the subjects that tell findings apart; the workload always."""
    keys = list(dict.fromkeys(key for finding in findings for key in finding.subject))
    return [
        key
        for key in keys
        if key == "workload" or len({finding.subject.get(key) for finding in findings}) > 1
    ]


def _limits(role: str, style: str) -> Fill:
    """Fill with limits that say in words whether they may miss their level."""
    return lambda each: Value(INTERVAL_STYLES[style](each.estimates[role]).removeprefix("95 % interval "))


def _exact(role: str) -> Fill:
    """Fill with an estimate in all digits that a tool prints."""

    def fill(finding: Finding) -> Value:
        found = finding.estimates[role]
        if found.value is None:
            return Value(NOT_AVAILABLE, finding=finding.id)
        return Value(f"{found.value:.{DIGITS_OF_PUBLISHED}g} {found.unit}", found.value, finding=finding.id)

    return fill


def _plain(name: str) -> Fill:
    return written(name, "{:.3g}".format)


def _change(finding: Finding) -> Value:
    return NOTHING if finding.estimates["ratio"].value is None else estimate("ratio", "signed")(finding)


def _agreement(finding: Finding) -> Value:
    return verdict({finding.verdict: "good" if finding.verdict == "agrees" else "warn"})(finding)


def _agreeing(rows: Sequence[Finding]) -> str:
    return f"{sum(finding.verdict == 'agrees' for finding in rows)} of {len(rows)} agree"
