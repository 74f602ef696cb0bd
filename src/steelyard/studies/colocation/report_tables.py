"""Tables of the colocation report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE
from steelyard.studies.colocation.report_answer import same
from steelyard.studies.report_values import (
    DOUBT_NOTE,
    change_interval_value,
    change_value,
    estimate_value,
    fact_value,
    interval_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding, FindingSet

TONES: Final = {
    "isolated": "lesser",
    "kept": "lesser",
    "not isolated": "higher",
    "grown": "higher",
    "starved": "higher",
    "late": "higher",
    "violated": "higher",
}
POLICY: Final = Column("policy")
LOAD: Final = Column("load", "% of CPUs", is_number=True)


def effect_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: latency before and beside the jobs, tail, work."""
    rows = []
    for each in findings.of("isolation"):
        tail = _tail(findings, each, "p99")
        price = same(findings, "price", each)
        rows.append(
            (
                *_who(each),
                verdict_value(each),
                estimate_value(each, "before"),
                estimate_value(each, "beside"),
                change_value(each, "ratio"),
                change_interval_value(each, "ratio"),
                NOTHING if tail is None else estimate_value(tail, "before"),
                NOTHING if tail is None else estimate_value(tail, "beside"),
                NOTHING if price is None else change_value(price, "ratio"),
                fact_value(each, "trials"),
                fact_value(each, "unanswered_beside"),
            )
        )
    columns = (
        POLICY,
        LOAD,
        Column("verdict"),
        Column("before", is_number=True, explanation="mean latency before the jobs start"),
        Column("beside", is_number=True, explanation="mean latency beside the jobs"),
        Column("change", is_number=True, explanation="of the mean latency"),
        Column("95 % interval", explanation="of the change", in_terminal=False),
        Column("p99 before", is_number=True, in_terminal=False),
        Column("p99 beside", is_number=True, in_terminal=False),
        Column("work", is_number=True, explanation="of the jobs, against the reference policy"),
        Column("trials", is_number=True, in_terminal=False),
        Column(
            "unanswered",
            is_number=True,
            explanation="requests beside the jobs without an answer; they count with the time they waited, "
            "a lower bound",
            in_terminal=False,
        ),
    )
    return _table("effects", "What the jobs do to the service", columns, rows, note=DOUBT_NOTE, is_key=True)


def tail_table(findings: FindingSet) -> Table | None:
    """Give one row per policy, load and quantile."""
    rows = [
        (
            *_who(each),
            Value(each.subject["quantile"]),
            verdict_value(each),
            estimate_value(each, "before"),
            estimate_value(each, "beside"),
            estimate_value(each, "ratio"),
            interval_value(each, "ratio"),
        )
        for each in findings.of("tail")
    ]
    columns = (
        POLICY,
        LOAD,
        Column("quantile"),
        Column("verdict"),
        Column("before", is_number=True),
        Column("beside", is_number=True),
        Column("amplification", is_number=True, explanation="beside over before"),
        Column("95 % interval"),
    )
    return _table("tails", "The tail", columns, rows, note=DOUBT_NOTE)


def work_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: what the jobs got done, and when they stood still."""
    rows = []
    for each in findings.of("best_effort"):
        price = same(findings, "price", each)
        rows.append(
            (
                *_who(each),
                verdict_value(each),
                estimate_value(each, "rate"),
                estimate_value(each, "cpu_share"),
                NOTHING if price is None else change_value(price, "ratio"),
                NOTHING if price is None else change_interval_value(price, "ratio"),
                fact_value(each, "parked"),
                fact_value(each, "longest_parked_s"),
            )
        )
    columns = (
        POLICY,
        LOAD,
        Column("verdict"),
        Column("rate", is_number=True, explanation="finished iterations while the jobs are there"),
        Column("CPU share", is_number=True, explanation="CPU time of the jobs over that of the CPUs"),
        Column("against reference", is_number=True, explanation="the price of the policy"),
        Column("95 % interval"),
        Column("parked", is_number=True, explanation="times without an iteration and without CPU time"),
        Column("longest", "s", is_number=True, explanation="of those times"),
    )
    return _table("best_effort", "What the jobs got done", columns, rows, note=DOUBT_NOTE)


NOTHING: Final = Value(NOT_AVAILABLE)


def verdict_value(finding: Finding) -> Value:
    """Give a verdict with its colour."""
    return Value(finding.verdict, tone=TONES.get(finding.verdict, ""), finding=finding.id)


def _who(finding: Finding) -> tuple[Value, Value]:
    load = finding.subject["load"]
    return Value(finding.subject["policy"]), Value(load, float(load) if load.isdecimal() else None)


def _tail(findings: FindingSet, finding: Finding, quantile: str) -> Finding | None:
    for each in findings.of("tail"):
        if finding.subject.items() <= each.subject.items() and each.subject["quantile"] == quantile:
            return each
    return None


def _table(
    name: str,
    title: str,
    columns: tuple[Column, ...],
    rows: Sequence[tuple[Value, ...]],
    *,
    note: str = "",
    is_key: bool = False,
) -> Table | None:
    if not rows:
        return None
    doubted = note if any("*" in value.text for row in rows for value in row) else ""
    return Table(name, title, columns, tuple(rows), note=doubted, file=f"tables/{name}.csv", is_key=is_key)
