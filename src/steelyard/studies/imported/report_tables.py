"""Tables of the report of imported results, each value made of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, change_interval, interval, signed_change
from steelyard.studies.report_values import estimate_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet

NOTE: Final = (
    "Intervals take runs (or files) as the unit where there are several; `not guaranteed` marks those that "
    "may miss their level with so few or such dependent values."
)
DIGITS_OF_PUBLISHED: Final = 12


def location_table(findings: FindingSet) -> Table | None:
    """Give the mean of each cell and metric, few columns for a terminal."""
    chosen = findings.of("cell")
    if not chosen:
        return None
    names = _subjects(chosen)
    rows = tuple(
        (
            Value(", ".join(finding.subject.get(name, "") for name in names), finding=finding.id),
            _count(finding, "n"),
            _count(finding, "runs"),
            estimate_value(finding, "mean"),
            Value(interval(finding.estimates["mean"]).removeprefix("95 % interval ")),
        )
        for finding in chosen
    )
    return Table(
        id="means",
        title="Means",
        columns=(
            Column(", ".join(names)),
            *(Column(name, is_number=True) for name in ("n", "runs", "mean")),
            Column("95 % interval"),
        ),
        rows=rows,
        note=NOTE,
        file="tables/cells.csv",
        is_key=True,
        summary=f"{len(chosen)} means",
    )


def cell_table(findings: FindingSet) -> Table | None:
    """Give one row per cell and metric."""
    chosen = findings.of("cell")
    if not chosen:
        return None
    names = _subjects(chosen)
    rows = tuple(
        (
            *(Value(finding.subject.get(name, "")) for name in names),
            _count(finding, "n"),
            _count(finding, "runs"),
            _count(finding, "warm_up_values"),
            estimate_value(finding, "mean"),
            Value(interval(finding.estimates["mean"]).removeprefix("95 % interval "), finding=finding.id),
            estimate_value(finding, "cv"),
            estimate_value(finding, "iqr"),
            Value(finding.verdict, finding=finding.id),
            _plain(finding, "lag_1"),
            _plain(finding, "effective_size"),
            Value(str(finding.facts["modes"])),
            _count(finding, "outliers"),
        )
        for finding in chosen
    )
    numbers = {
        "n": "measured values",
        "runs": "process launches, as far as the format tells them apart",
        "warm-up values": "values that the tool itself marked as warm-up; not among n",
    }
    return Table(
        id="cells",
        title="Every cell and metric",
        columns=(
            *(Column(name) for name in names),
            *(Column(name, is_number=True, explanation=text) for name, text in numbers.items()),
            Column("mean", is_number=True),
            Column("95 % interval"),
            Column("cv", is_number=True, explanation="standard deviation over mean, all values"),
            Column("iqr", is_number=True, explanation="range between the quartiles"),
            Column("series", explanation="worst class of the series that are long enough to classify"),
            Column("lag-1", is_number=True, explanation="autocorrelation of neighbours inside a series"),
            Column("effective size", is_number=True, explanation="values an independent series would need"),
            Column("modes", explanation="dip test at 1 %; a hint to look at the values"),
            Column("outliers", is_number=True, explanation="beyond 10 MAD of the median; labelled, kept"),
        ),
        rows=rows,
        note=NOTE,
        file="tables/cells.csv",
        summary=f"{len(chosen)} cells and metrics",
    )


def comparison_table(findings: FindingSet) -> Table | None:
    """Give one row per comparison."""
    chosen = findings.of("comparison")
    if not chosen:
        return None
    names = [name for name in _subjects(chosen) if name not in {"family", "first", "second"}]
    rows = tuple(
        (
            *(Value(finding.subject.get(name, "")) for name in names),
            Value(finding.subject["first"]),
            Value(finding.subject["second"]),
            _change(finding),
            Value(change_interval(finding.estimates["ratio"]).removeprefix("95 % interval ")),
            Value(finding.verdict, tone=finding.verdict, finding=finding.id),
        )
        for finding in chosen
    )
    return Table(
        id="comparisons",
        title="Each alternative against the first",
        columns=(
            *(Column(name) for name in (*names, "first", "second")),
            Column("difference", is_number=True),
            Column("95 % interval"),
            Column("verdict"),
        ),
        rows=rows,
        file="tables/comparisons.csv",
        is_key=True,
        summary=f"{len(chosen)} comparisons",
    )


def published_table(findings: FindingSet) -> Table | None:
    """Give one row per number that the tool published, with ours beside it."""
    chosen = findings.of("published_value")
    if not chosen:
        return None
    names = _subjects(chosen)
    rows = tuple(
        (
            *(Value(finding.subject.get(name, "")) for name in names),
            Value(str(finding.facts["printed"])),
            _exact(finding, "published"),
            _exact(finding, "ours"),
            Value(
                finding.verdict, tone="good" if finding.verdict == "agrees" else "warn", finding=finding.id
            ),
        )
        for finding in chosen
    )
    return Table(
        id="published",
        title="Published values and ours",
        columns=(
            *(Column(name) for name in names),
            Column("as printed"),
            Column("published", is_number=True),
            Column("ours", is_number=True, explanation="the same statistic of the raw values in the file"),
            Column("agreement", explanation="to a relative 1e-9"),
        ),
        rows=rows,
        file="tables/published.csv",
        summary=f"{sum(f.verdict == 'agrees' for f in chosen)} of {len(chosen)} agree",
    )


def _subjects(findings: Sequence[Finding]) -> list[str]:
    """Give the keys of the subjects that tell findings apart; the workload always."""
    keys = list(dict.fromkeys(key for finding in findings for key in finding.subject))
    return [
        key
        for key in keys
        if key == "workload" or len({finding.subject.get(key) for finding in findings}) > 1
    ]


def _exact(finding: Finding, role: str) -> Value:
    estimate = finding.estimates[role]
    if estimate.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    text = f"{estimate.value:.{DIGITS_OF_PUBLISHED}g} {estimate.unit}"
    return Value(text, estimate.value, finding=finding.id)


def _count(finding: Finding, name: str) -> Value:
    value = finding.facts[name]
    return Value(NOT_AVAILABLE) if value is None else Value(str(value), float(value))


def _plain(finding: Finding, name: str) -> Value:
    value = finding.facts[name]
    return Value(NOT_AVAILABLE) if value is None else Value(f"{float(value):.3g}", float(value))


def _change(finding: Finding) -> Value:
    value = finding.estimates["ratio"].value
    if value is None:
        return Value(NOT_AVAILABLE)
    return Value(signed_change(value), value, finding=finding.id)
