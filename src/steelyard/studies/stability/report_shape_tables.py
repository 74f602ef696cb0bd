"""Tables of the stability report about the shape of series: growth with load, warm-up, workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, percent
from steelyard.studies.stability.report_messages import (
    contamination_message,
    filled,
    warm_up_message,
    workers_message,
)
from steelyard.units import format_significant

if TYPE_CHECKING:
    from steelyard.model.finding import Finding, FindingSet

NOT_MEASURED: Final = "not measured"
_DIGITS: Final = 4


def growth_table(findings: FindingSet) -> Table | None:
    """Give the number of workers at which dispersion starts to grow: workloads by isolations."""
    chosen = findings.of("dispersion_by_load")
    if all(finding.verdict == NOT_MEASURED for finding in chosen):
        return None
    by_place = {(finding.subject["workload"], finding.subject["isolation"]): finding for finding in chosen}
    isolations = list(dict.fromkeys(finding.subject["isolation"] for finding in chosen))
    workloads = dict.fromkeys(finding.subject["workload"] for finding in chosen)
    rows = tuple(
        (Value(name), *(_growth(by_place.get((name, isolation))) for isolation in isolations))
        for name in workloads
    )
    return Table(
        id="dispersion_growth",
        title="Number of workers at which dispersion starts to grow",
        columns=(Column("workload"), *(Column(name, "workers", is_number=True) for name in isolations)),
        rows=rows,
        note="no growth: none that is larger than the intervals allow to tell.",
    )


def steadiness_table(findings: FindingSet) -> Table | None:
    """Give the least steady cell of each isolation at each load, with its interval."""
    chosen = findings.of("least_steady_cell")
    if not chosen:
        return None
    by_place = {(finding.subject["isolation"], finding.subject["load"]): finding for finding in chosen}
    loads = sorted({finding.subject["load"] for finding in chosen}, key=int)
    isolations = dict.fromkeys(finding.subject["isolation"] for finding in chosen)
    rows = tuple(
        (Value(name), *(_steadiness(by_place.get((name, load))) for load in loads)) for name in isolations
    )
    tolerance = percent(float(chosen[0].facts["tolerance_percent"] or 0.0))
    return Table(
        id="least_steady",
        title="The least steady program at each load: cv of its CPU time",
        columns=(
            Column("isolation"),
            *(Column("1 worker" if load == "1" else f"{load} workers", is_prose=True) for load in loads),
        ),
        rows=rows,
        note=f"Verdict: where the interval lies to the tolerance of {tolerance}.",
    )


_TONES: Final = {"within the tolerance": "good", "beyond the tolerance": "slower"}


def _steadiness(finding: Finding | None) -> Value:
    if finding is None:
        return Value(NOT_AVAILABLE)
    return Value(
        filled("{estimates.cv}, {facts.workload}", finding),
        finding.estimates["cv"].value,
        tone=_TONES.get(finding.verdict, "inconclusive"),
        note=filled("{estimates.cv:interval}: {verdict}", finding),
        finding=finding.id,
    )


def _growth(finding: Finding | None) -> Value:
    if finding is None:
        return Value(NOT_AVAILABLE)
    start = finding.facts["starts_at"]
    if not isinstance(start, (int, float)):
        return Value(NOT_AVAILABLE if finding.verdict == NOT_MEASURED else "no growth", finding=finding.id)
    return Value(f"{start:g}", float(start), finding=finding.id)


def warm_up_table(findings: FindingSet) -> Table | None:
    """Give the course of each series: first value against median, windows, outliers."""
    chosen = findings.of("warm_up")
    if not chosen:
        return None
    columns = (
        Column("setup"),
        Column("isolation"),
        Column("workload"),
        Column("first value", "ms", is_number=True),
        Column("median", "ms", is_number=True),
        Column(
            "window sd",
            "ratio",
            is_number=True,
            explanation="median sd of windows of 10 over the sd of the series",
        ),
        Column("outliers", is_number=True),
        Column("course"),
    )
    rows = tuple(
        (
            *(Value(finding.subject[key]) for key in ("setup", "isolation", "workload")),
            _number(finding, "first_value_s", 1e3),
            _number(finding, "median_s", 1e3),
            _number(finding, "window_sd_ratio", 1),
            _number(finding, "outliers", 1),
            Value(finding.verdict, tone="same" if finding.verdict == "flat" else "warn", finding=finding.id),
        )
        for finding in chosen
    )
    return Table("warm_up", "Course of each series", columns, rows, summary=warm_up_message(chosen))


def worker_table(findings: FindingSet) -> Table | None:
    """Give how many pairs of workers of a cell differ, and by how much."""
    chosen = findings.of("worker_difference")
    if not chosen:
        return None
    columns = (
        Column("setup"),
        Column("isolation"),
        Column("workload"),
        Column("pairs", is_number=True),
        Column("different", is_number=True),
        Column("largest difference", is_number=True),
    )
    rows = tuple(
        (
            *(Value(finding.subject[key]) for key in ("setup", "isolation", "workload")),
            _number(finding, "pairs", 1),
            _number(finding, "different", 1),
            _percent(finding, "largest_difference_percent"),
        )
        for finding in chosen
    )
    return Table(
        id="worker_difference",
        title="Workers of the same cell against each other",
        columns=columns,
        rows=rows,
        note="Kolmogorov-Smirnov tests corrected for their number; difference of medians.",
        summary=workers_message(chosen),
    )


def _number(finding: Finding, key: str, factor: float) -> Value:
    value = finding.facts[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Value(NOT_AVAILABLE, finding=finding.id)
    text = f"{value}" if isinstance(value, int) else format_significant(value * factor, _DIGITS)
    return Value(text, value * factor, finding=finding.id)


def _percent(finding: Finding, key: str) -> Value:
    value = finding.facts[key]
    if not isinstance(value, (int, float)):
        return Value(NOT_AVAILABLE, finding=finding.id)
    return Value(percent(value), float(value), finding=finding.id)


def contamination_table(findings: FindingSet) -> Table | None:
    """Give how many runs carry each flag, most frequent first."""
    chosen = findings.of("contamination")
    if not chosen:
        return None
    columns = (
        Column("isolation"),
        Column("setup"),
        Column("flag"),
        Column("flagged", "runs", is_number=True),
        Column("of", "runs", is_number=True),
        Column("share", "%", is_number=True),
    )
    rows = [
        (
            *(Value(finding.subject[key]) for key in ("isolation", "setup", "flag")),
            _number(finding, "flagged", 1),
            _number(finding, "runs", 1),
            _share(finding),
        )
        for finding in chosen
    ]
    rows.sort(key=lambda row: -(row[-1].order or 0.0))
    return Table(
        id="contamination",
        title="Runs with a disturbance, as measured run by run",
        columns=columns,
        rows=tuple(rows),
        note="Flagged runs are kept: a flag is a label, nothing is removed because of one.",
        summary=contamination_message(chosen),
    )


def _share(finding: Finding) -> Value:
    flagged, runs = finding.facts["flagged"], finding.facts["runs"]
    if not isinstance(flagged, int) or not isinstance(runs, int) or not runs:
        return Value(NOT_AVAILABLE, finding=finding.id)
    return Value(f"{100 * flagged / runs:.1f}", flagged / runs, finding=finding.id)
