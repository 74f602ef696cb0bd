"""Tables of the stability report about clocks and stamps: outside errors, trust, parallel ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, write
from steelyard.studies.report_values import estimate_value, fact_value, number_value
from steelyard.studies.stability.report_messages import (
    errors_message,
    filled,
    granularity_message,
    groups_message,
    parallel_message,
)
from steelyard.studies.stability.report_values import (
    TABLE_NUMBERS,
    place,
    ratio_value,
    seconds_value,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.studies.stability.report_data import Key

HOMOGENOUS: Final = "parallel-homogenous,"
"""Start of the label of a setup in which all workers execute the same workload, unbound."""

COARSE: Final = "coarse"


def outside_error_table(findings: FindingSet, missing: Sequence[Key], metric: str) -> Table | None:
    """Give table 1 (CPU time) or 2 (wall-clock time): the error of the outside clock.

    Parameters
    ----------
    findings : FindingSet
        All findings.
    missing : sequence of Key
        Cells that were not measured; they stand last as NA.
    metric : str
        ``cpu`` or ``wall``.
    """
    chosen = [finding for finding in findings.of("outside_error") if finding.subject["metric"] == metric]
    if not chosen:
        return None
    measured = {place(finding) for finding in chosen}
    rows = tuple(
        (
            Value(finding.subject["setup"]),
            Value(finding.subject["isolation"]),
            Value(finding.subject["workload"]),
            seconds_value(finding, "mean"),
            seconds_value(finding, "sd"),
            number_value(finding, "cv"),
        )
        for finding in chosen
    ) + tuple(
        (Value(setup), Value(isolation), Value(workload), *[Value(NOT_AVAILABLE)] * 3)
        for isolation, setup, workload in missing
        if (isolation, setup, workload) not in measured
    )
    return Table(
        id=f"outside_error_{metric}",
        title=f"Table {TABLE_NUMBERS[metric]}. Error of the outside {metric} clock, sorted by relative error",
        columns=(
            Column("setup"),
            Column("isolation"),
            Column("workload"),
            Column(f"{metric}_err_mean", "s", is_number=True, explanation="mean of |outside - own|"),
            Column(
                f"{metric}_err_sd", "s", is_number=True, explanation="standard deviation of |outside - own|"
            ),
            Column(
                f"{metric}_err_cv", "%", is_number=True, explanation="100 x sd of the error / mean own time"
            ),
        ),
        rows=rows,
        note="Error = |outside - own| of each iteration; cells without CPU binding. NA: not measured.",
        file="tables/outside_error.csv",
        summary=errors_message(chosen),
    )


def clock_trust_table(findings: FindingSet) -> Table | None:
    """Give up to how many workers each clock can be trusted, one row per isolation."""
    chosen = findings.of("clock_trust")
    if not chosen:
        return None
    clocks = list(dict.fromkeys(finding.subject["clock"] for finding in chosen))
    by_place = {(finding.subject["isolation"], finding.subject["clock"]): finding for finding in chosen}
    isolations = dict.fromkeys(finding.subject["isolation"] for finding in chosen)
    rows = tuple(
        (Value(name), *(_trusted(by_place.get((name, clock))) for clock in clocks)) for name in isolations
    )
    tolerance = write(chosen[0].facts["tolerance_percent"], "percent")
    return Table(
        id="clock_trust",
        title="Clocks trusted up to this number of workers",
        columns=(Column("isolation"), *(Column(clock, "workers", is_number=True) for clock in clocks)),
        rows=rows,
        note=f"Trusted: the standard deviation of the error stays below {tolerance} of the run time for "
        f"every workload. Small: the largest error, or the one that ends the trust.",
    )


def granularity_table(findings: FindingSet) -> Table | None:
    """Give the step of every clock, coarse ones first."""
    chosen = sorted(findings.of("clock_granularity"), key=lambda finding: finding.verdict != COARSE)
    if not chosen:
        return None
    rows = tuple(
        (
            Value(finding.subject["isolation"]),
            Value(finding.subject["clock"]),
            estimate_value(finding, "step"),
            fact_value(finding, "share_of_iteration_percent"),
            Value(finding.verdict, tone="warn" if finding.verdict == COARSE else "good", finding=finding.id),
        )
        for finding in chosen
    )
    return Table(
        id="clock_granularity",
        title="Step of each clock",
        columns=(
            Column("isolation"),
            Column("clock"),
            Column("step", is_number=True),
            Column("share of a median iteration", "%", is_number=True),
            Column("judgement"),
        ),
        rows=rows,
        note="Clocks of an imported file cannot be finer than the digits it was written with.",
        file="tables/clock_granularity.csv",
        summary=granularity_message(chosen),
    )


def _trusted(finding: Finding | None) -> Value:
    if finding is None:
        return Value(NOT_AVAILABLE)
    limit = finding.facts["trusted_up_to_workers"]
    note = filled("{estimates.worst}, {facts.shown_workload}", finding)
    if not isinstance(limit, (int, float)) or not limit:
        return Value("none", 0.0, tone="warn", note=note, finding=finding.id)
    return Value(f"{limit:g}", float(limit), note=note, finding=finding.id)


def error_groups_table(findings: FindingSet) -> Table | None:
    """Give the number of cells whose relative error exceeds 5, 10 and 20 %."""
    chosen = findings.of("outside_error_groups")
    if not chosen:
        return None
    rows = tuple(
        (
            *(Value(finding.subject[key]) for key in ("metric", "setup", "isolation")),
            *(fact_value(finding, key) for key in ("cells", "over_5", "over_10", "over_20")),
        )
        for finding in chosen
    )
    counts = tuple(Column(name, is_number=True) for name in ("cells", "over 5 %", "over 10 %", "over 20 %"))
    return Table(
        id="outside_error_groups",
        title="Cells with a relative error above 5, 10 and 20 %",
        columns=(Column("metric"), Column("setup"), Column("isolation"), *counts),
        rows=rows,
        note="The limits are those of the published study.",
        summary=groups_message(chosen),
    )


def parallel_ratio_table(findings: FindingSet, missing: Sequence[Key]) -> Table | None:
    """Give table 5: parallel ratios in ascending order, cells that were not measured last."""
    chosen = findings.of("parallel_ratio")
    if not chosen:
        return None
    measured = {place(finding) for finding in chosen}
    rows = tuple(
        (
            Value(size_of(finding.subject["setup"]), float(size_of(finding.subject["setup"]) or 0)),
            Value(finding.subject["workload"]),
            Value(finding.subject["isolation"]),
            ratio_value(finding),
        )
        for finding in chosen
    ) + tuple(
        (
            Value(size_of(setup), float(size_of(setup) or 0)),
            Value(workload),
            Value(isolation),
            Value(NOT_AVAILABLE),
        )
        for isolation, setup, workload in missing
        if setup.startswith(HOMOGENOUS) and (isolation, setup, workload) not in measured
    )
    return Table(
        id="parallel_ratio",
        title=f"Table {TABLE_NUMBERS['parallel']}. Ratio of the time with all workers running to the "
        f"whole time, ascending",
        columns=(
            Column("setup_size", is_number=True),
            Column("workload_label"),
            Column("isolation"),
            Column("parallel_ratio", "%", is_number=True),
        ),
        rows=rows,
        note="(earliest start of the last iteration - latest start of the first) / (latest start - "
        "earliest start).",
        file="tables/parallel_ratio.csv",
        summary=parallel_message(chosen),
    )
