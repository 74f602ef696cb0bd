"""Tables of the stability report about series: growth with load, warm-up, workers, disturbances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.fills import at, pivoted, shared, subject, subjects, verdict
from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE, percent
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.stability.report.messages import (
    contamination_message,
    filled,
    warm_up_message,
    workers_message,
)
from steelyard.units import format_significant

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.page import Table

NOT_MEASURED: Final = "not measured"
_DIGITS: Final = 4


def growth_table(findings: FindingSet) -> Table | None:
    """Give the number of workers at which dispersion starts to grow: workloads by isolations."""
    chosen = findings.of("dispersion_by_load")
    if all(finding.verdict == NOT_MEASURED for finding in chosen):
        return None
    isolations = dict.fromkeys(finding.subject["isolation"] for finding in chosen)
    columns = (
        text("workload", shared(subject("workload"))),
        *(number(name, at(name, _growth), unit="workers") for name in isolations),
    )
    return TableSpec(
        "dispersion_growth",
        "Number of workers at which dispersion starts to grow",
        columns,
        "no growth: none that the intervals can show.",
        file=None,
    ).build(pivoted(chosen, ("workload",), lambda finding: finding.subject["isolation"]))


def _growth(finding: Finding) -> Value:
    start = finding.facts["starts_at"]
    if not isinstance(start, (int, float)):
        return Value(NOT_AVAILABLE if finding.verdict == NOT_MEASURED else "no growth", finding=finding.id)
    return Value(f"{start:g}", float(start), finding=finding.id)


def steadiness_table(findings: FindingSet) -> Table | None:
    """Give the least steady cell of each isolation at each load, with its interval."""
    chosen = findings.of("least_steady_cell")
    if not chosen:
        return None
    loads = sorted({finding.subject["load"] for finding in chosen}, key=int)
    columns = (
        text("isolation", shared(subject("isolation"))),
        *(prose("1 worker" if load == "1" else f"{load} workers", at(load, _steadiness)) for load in loads),
    )
    tolerance = percent(float(chosen[0].facts["tolerance_percent"] or 0.0))
    return TableSpec(
        "least_steady",
        "The least steady program at each load: cv of its CPU time",
        columns,
        f"Verdict: how the interval lies relative to the tolerance of {tolerance}.",
        file=None,
    ).build(pivoted(chosen, ("isolation",), lambda finding: finding.subject["load"]))


_TONES: Final = {"within the tolerance": "good", "beyond the tolerance": "slower"}


def _steadiness(finding: Finding) -> Value:
    return Value(
        filled("{estimates.cv}, {facts.workload}", finding),
        finding.estimates["cv"].value,
        tone=_TONES.get(finding.verdict, "inconclusive"),
        note=filled("{estimates.cv:interval}: {verdict}", finding),
        finding=finding.id,
    )


def _number(key: str, factor: float = 1) -> Fill:
    def write_number(value: float) -> str:
        return f"{value}" if isinstance(value, int) else format_significant(value * factor, _DIGITS)

    return _fact(key, write_number, factor)


def _fact(key: str, write_number: Callable[[float], str], factor: float = 1) -> Fill:
    """Fill with a fact that is a number, written and scaled in a way of its own."""

    def fill(finding: Finding) -> Value:
        value = finding.facts[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return Value(NOT_AVAILABLE, finding=finding.id)
        return Value(write_number(value), value * factor, finding=finding.id)

    return fill


def _course(finding: Finding) -> Value:
    return verdict({finding.verdict: "same" if finding.verdict == "flat" else "warn"})(finding)


WARM_UP: Final = TableSpec(
    "warm_up",
    "Course of each series",
    (
        *subjects("setup", "isolation", "workload"),
        number("first value", _number("first_value_s", 1e3), unit="ms"),
        number("median", _number("median_s", 1e3), unit="ms"),
        number(
            "window sd",
            _number("window_sd_ratio"),
            "median sd of windows of 10 over the sd of the series",
            unit="ratio",
        ),
        number("outliers", _number("outliers")),
        text("course", _course),
    ),
    file=None,
    summary=warm_up_message,
)
"""First value against median, windows and outliers of each series."""

WORKERS: Final = TableSpec(
    "worker_difference",
    "Workers of the same cell against each other",
    (
        *subjects("setup", "isolation", "workload"),
        number("pairs", _number("pairs")),
        number("different", _number("different")),
        number("largest difference", _fact("largest_difference_percent", percent)),
    ),
    "Kolmogorov-Smirnov tests corrected for their number; difference of medians.",
    file=None,
    summary=workers_message,
)
"""How many pairs of workers of a cell differ, and by how much."""


def _share(finding: Finding) -> Value:
    flagged, runs = finding.facts["flagged"], finding.facts["runs"]
    if not isinstance(flagged, int) or not isinstance(runs, int) or not runs:
        return Value(NOT_AVAILABLE, finding=finding.id)
    return Value(f"{100 * flagged / runs:.1f}", flagged / runs, finding=finding.id)


CONTAMINATION: Final = TableSpec(
    "contamination",
    "Runs with a disturbance, as measured run by run",
    (
        *subjects("isolation", "setup", "flag"),
        number("flagged", _number("flagged"), unit="runs"),
        number("of", _number("runs"), unit="runs"),
        number("share", _share, unit="%"),
    ),
    "Flagged runs are kept: a flag is a label, no run is removed because of one.",
    file=None,
    summary=contamination_message,
)


def contamination_table(findings: FindingSet) -> Table | None:
    """Give how many runs carry each flag, most frequent first."""
    return CONTAMINATION.build(
        sorted(findings.of("contamination"), key=lambda each: -(_share(each).order or 0.0))
    )
