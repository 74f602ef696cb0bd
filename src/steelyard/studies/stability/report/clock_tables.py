"""Tables of the stability report about clocks and stamps: outside errors, trust, parallel ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model.finding import Finding
from steelyard.report.fills import at, estimate, fact, pivoted, shared, subject, subjects, verdict
from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE, write
from steelyard.report.table_spec import TableSpec, number, text
from steelyard.studies.stability.report.messages import (
    errors_message,
    filled,
    granularity_message,
    groups_message,
    parallel_message,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import FindingSet
    from steelyard.report.fills import Fill
    from steelyard.report.page import Table
    from steelyard.studies.stability.report.data import Key

TABLE_NUMBERS: Final = {"cpu": 1, "wall": 2}
"""Numbers of the tables of the published study."""

SECONDS_DECIMALS: Final = 7
"""SOURCE: digits of the published tables."""

HOMOGENOUS: Final = "parallel-homogenous,"
"""Start of the label of a setup in which all workers run the same workload, unbound."""

COARSE: Final = "coarse"


def _seconds(role: str) -> Fill:
    return estimate(role, f"{{:.{SECONDS_DECIMALS}f}}".format)


def _unmeasured(chosen: Sequence[Finding], missing: Sequence[Key]) -> list[Finding]:
    """Give a finding without estimates for each cell that was not measured."""
    keys = ("isolation", "setup", "workload")
    measured = {tuple(finding.subject[key] for key in keys) for finding in chosen}
    return [
        Finding("", "missing", dict(zip(keys, place, strict=True)), NOT_AVAILABLE)
        for place in missing
        if place not in measured
    ]


def outside_error_table(findings: FindingSet, missing: Sequence[Key], metric: str) -> Table | None:
    """Give table 1 (CPU) or 2 (wall-clock): error of the outside clock; cells without values stand last."""
    chosen = [finding for finding in findings.of("outside_error") if finding.subject["metric"] == metric]
    if not chosen:
        return None
    error = f"{metric}_err"
    columns = (
        *subjects("setup", "isolation", "workload"),
        number(f"{error}_mean", _seconds("mean"), "mean of |outside - own|", unit="s"),
        number(f"{error}_sd", _seconds("sd"), "standard deviation of |outside - own|", unit="s"),
        number(
            f"{error}_cv", estimate("cv", "significant"), "100 x sd of the error / mean own time", unit="%"
        ),
    )
    return TableSpec(
        f"outside_error_{metric}",
        f"Table {TABLE_NUMBERS[metric]}. Error of the outside {metric} clock, sorted by relative error",
        columns,
        "Error = |outside - own| of each iteration; cells without CPU binding. NA: not measured.",
        file="outside_error",
        summary=lambda _: errors_message(chosen),
    ).build([*chosen, *_unmeasured(chosen, missing)])


def clock_trust_table(findings: FindingSet) -> Table | None:
    """Give up to how many workers each clock can be trusted, one row per isolation."""
    chosen = findings.of("clock_trust")
    if not chosen:
        return None
    clocks = dict.fromkeys(finding.subject["clock"] for finding in chosen)
    columns = (
        text("isolation", shared(subject("isolation"))),
        *(number(clock, at(clock, _trusted), unit="workers") for clock in clocks),
    )
    tolerance = write(chosen[0].facts["tolerance_percent"], "percent")
    return TableSpec(
        "clock_trust",
        "Clocks trusted up to this number of workers",
        columns,
        f"Trusted: the standard deviation of the error stays below {tolerance} of the run time for "
        f"every workload. Small: the largest error, or the one that ends the trust.",
        file=None,
    ).build(pivoted(chosen, ("isolation",), lambda finding: finding.subject["clock"]))


def _trusted(finding: Finding) -> Value:
    limit = finding.facts["trusted_up_to_workers"]
    note = filled("{estimates.worst}, {facts.shown_workload}", finding)
    if not isinstance(limit, (int, float)) or not limit:
        return Value("none", 0.0, tone="warn", note=note, finding=finding.id)
    return Value(f"{limit:g}", float(limit), note=note, finding=finding.id)


def _judgement(finding: Finding) -> Value:
    return verdict({finding.verdict: "warn" if finding.verdict == COARSE else "good"})(finding)


GRANULARITY: Final = TableSpec(
    "clock_granularity",
    "Step of each clock",
    (
        *subjects("isolation", "clock"),
        number("step", estimate("step")),
        number("share of a median iteration", fact("share_of_iteration_percent"), unit="%"),
        text("judgement", _judgement),
    ),
    "Clocks of an imported file cannot be finer than the digits it was written with.",
    summary=granularity_message,
)


def granularity_table(findings: FindingSet) -> Table | None:
    """Give the step of every clock, coarse ones first."""
    return GRANULARITY.build(
        sorted(findings.of("clock_granularity"), key=lambda each: each.verdict != COARSE)
    )


ERROR_GROUPS: Final = TableSpec(
    "outside_error_groups",
    "Cells with a relative error above 5, 10 and 20 %",
    (
        *subjects("metric", "setup", "isolation"),
        number("cells", fact("cells")),
        *(number(f"over {limit} %", fact(f"over_{limit}")) for limit in (5, 10, 20)),
    ),
    "The limits are those of the published study.",
    file=None,
    summary=groups_message,
)


def _workers(finding: Finding) -> Value:
    """Give the number of workers of a setup; nothing when it states none."""
    size = finding.subject["setup"].rpartition(",")[2]
    return Value(size, float(size)) if size.isdigit() else Value("", 0.0)


def parallel_ratio_table(findings: FindingSet, missing: Sequence[Key]) -> Table | None:
    """Give table 5: parallel ratios in ascending order, cells that were not measured last."""
    chosen = findings.of("parallel_ratio")
    if not chosen:
        return None
    homogenous = [place for place in missing if place[1].startswith(HOMOGENOUS)]
    columns = (
        number("setup_size", _workers),
        text("workload_label", subject("workload")),
        text("isolation", subject("isolation")),
        number("parallel_ratio", estimate("ratio", lambda value: f"{value * 100:.2f}"), unit="%"),
    )
    return TableSpec(
        "parallel_ratio",
        "Table 5. Ratio of the time with all workers running to the whole time, ascending",
        columns,
        "(earliest start of the last iteration - latest start of the first) / (latest start - "
        "earliest start).",
        summary=lambda _: parallel_message(chosen),
    ).build([*chosen, *_unmeasured(chosen, homogenous)])
