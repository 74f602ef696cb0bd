"""The report in one table: one row per isolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, change_interval, interval, level_text, signed_change, write
from steelyard.studies.stability.report_messages import filled

if TYPE_CHECKING:
    from steelyard.model.finding import Finding, FindingSet

CLOCKS = ("outside-cpu", "outside-wall")


def glance_table(findings: FindingSet) -> Table | None:
    """Give workers, least steady cell, shift of the mean and trusted clocks of each isolation."""
    chosen = {finding.subject["isolation"]: finding for finding in findings.of("recommended_workers")}
    if not chosen:
        return None
    shifts = {finding.subject["isolation"]: finding for finding in findings.of("location_shift")}
    trusts = {
        (finding.subject["isolation"], finding.subject["clock"]): finding
        for finding in findings.of("clock_trust")
    }
    rows = tuple(
        (
            Value(name),
            _workers(finding),
            _steadiness(finding),
            _shift(shifts.get(name)),
            *(_trust(trusts.get((name, clock))) for clock in CLOCKS),
        )
        for name, finding in chosen.items()
    )
    baseline = next((finding.subject["baseline"] for finding in shifts.values()), "the baseline")
    tolerance = write(next(iter(chosen.values())).facts["tolerance_percent"], "percent")
    return Table(
        id="glance",
        title=f"Each isolation at a glance, tolerance {tolerance}",
        columns=(
            Column("isolation"),
            Column("workers", is_number=True),
            Column("least steady there"),
            Column(f"time vs {baseline}", explanation="mean CPU time of one worker"),
            Column("cpu", is_number=True, explanation="workers up to which the outside CPU clock is trusted"),
            Column(
                "wall", is_number=True, explanation="workers up to which the outside wall clock is trusted"
            ),
        ),
        rows=rows,
        note="Workers: the most at which every program scatters by no more than the tolerance, with its "
        "whole interval; undecided where an interval reaches beyond it with one worker already, none where "
        "a whole interval lies beyond. cpu, wall: workers up to which the error of that outside clock "
        "stays within the tolerance.",
        is_key=True,
    )


def _workers(finding: Finding) -> Value:
    workers = finding.estimates["workers"].value
    if not workers:
        tone = "bad" if finding.verdict == "none" else "warn"
        return Value(finding.verdict, 0.0, tone=tone, finding=finding.id)
    return Value(f"{workers:g}", workers, finding=finding.id)


def _steadiness(finding: Finding) -> Value:
    role = "worst" if finding.estimates["workers"].value else "limiting"
    estimate = finding.estimates[role]
    if estimate.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    text = filled(f"{{facts.{role}_workload}} {{estimates.{role}}}", finding)
    limits = interval(estimate).replace(f"{level_text(estimate)} ", "")
    return Value(text, estimate.value, note=limits, finding=finding.id)


def _shift(finding: Finding | None) -> Value:
    if finding is None:
        return Value("-")
    ratio = finding.estimates["ratio"]
    if ratio.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    limits = change_interval(ratio).replace(f"{level_text(ratio)} ", "")
    text = f"{signed_change(ratio.value)} {finding.verdict}"
    return Value(text, ratio.value, note=limits, finding=finding.id)


def _trust(finding: Finding | None) -> Value:
    if finding is None:
        return Value(NOT_AVAILABLE)
    limit = finding.facts["trusted_up_to_workers"]
    if not isinstance(limit, int | float) or not limit:
        return Value("none", 0.0, tone="warn", finding=finding.id)
    return Value(f"{limit:g}", float(limit), finding=finding.id)
