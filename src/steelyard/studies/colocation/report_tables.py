"""Tables of the colocation report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE
from steelyard.studies.colocation.isolation_findings import BEFORE
from steelyard.studies.colocation.report_answer import same
from steelyard.studies.colocation.verdicts import Isolation
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
    "faster": "lesser",
    "slower": "higher",
    "drifted": "higher",
    "kept": "lesser",
    "not isolated": "higher",
    "grown": "higher",
    "starved": "higher",
    "late": "higher",
    "violated": "higher",
    "blocked": "higher",
}
POLICY: Final = Column("policy")
LOAD: Final = Column("load", "% of CPUs", is_number=True)


def effect_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: latency before and beside the jobs, tail, work."""
    rows = []
    for each in findings.of("isolation"):
        tail = _tail(findings, each, "p99")
        price = same(findings, "price", each)
        is_bound = each.verdict == Isolation.BOUND.value
        rows.append(
            (
                *_who(each),
                verdict_value(each),
                NOTHING if is_bound else estimate_value(each, "before"),
                estimate_value(each, "beside"),
                NOTHING if is_bound else change_value(each, "ratio"),
                NOTHING if is_bound else change_interval_value(each, "ratio"),
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
        _reference_column(findings, "isolation", explanation="mean latency, "),
        Column("beside", is_number=True, explanation="mean latency beside the jobs"),
        Column("change", is_number=True, explanation="of the mean latency"),
        Column("95 % interval", explanation="of the change", in_terminal=False),
        Column("p99", is_number=True, explanation="beside the jobs", in_terminal=False),
        Column("work", is_number=True, explanation="of the jobs, against the reference policy"),
        Column("trials", is_number=True, in_terminal=False),
        Column(
            "lost",
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
        _reference_column(findings, "tail"),
        Column("beside", is_number=True),
        Column("amplification", is_number=True, explanation="beside over the column before it"),
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


def contest_table(findings: FindingSet) -> Table | None:
    """Give one row per pair of policies and load."""
    rows = [
        (
            Value(each.subject["policy"]),
            Value(each.subject["rival"]),
            _who(each)[1],
            verdict_value(each),
            *(_with_limits(each, name) for name in ("mean", "p99", "work")),
        )
        for each in findings.of("contest")
    ]
    columns = (
        POLICY,
        Column("against"),
        LOAD,
        Column("verdict", explanation="by the mean latency"),
        Column("mean latency", is_number=True, explanation="under the policy over that under the other"),
        Column("p99", is_number=True),
        Column("work", is_number=True, explanation="of the jobs"),
    )
    note = f"Below each change its 95 % interval. {DOUBT_NOTE}" if rows else ""
    return _table("contests", "Policies against each other, beside the jobs", columns, rows, note=note)


def _with_limits(finding: Finding, role: str) -> Value:
    """Give a change with its interval below."""
    value = change_value(finding, role)
    return replace(value, note=change_interval_value(finding, role).text)


def usage_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: where the CPUs' time goes, and how long the service drains."""
    rows = []
    for each in findings.of("utilisation"):
        drain = same(findings, "drain", each)
        names = ("service_before", "service_beside", "jobs_beside", "busy_beside")
        rows.append(
            (
                *_who(each),
                *(estimate_value(each, name) for name in names),
                NOTHING if drain is None else estimate_value(drain, "time"),
                NOTHING if drain is None else fact_value(drain, "unanswered"),
            )
        )
    columns = (
        POLICY,
        LOAD,
        Column("service before", is_number=True, explanation="CPU time over that of the CPUs"),
        Column("service beside", is_number=True),
        Column("jobs beside", is_number=True),
        Column("busy beside", is_number=True, explanation="as the kernel counts it, with all that runs"),
        Column("drain", is_number=True, explanation="from the last request to the last answer"),
        Column("unanswered", is_number=True, explanation="requests of the whole trial without an answer"),
    )
    return _table("utilisation", "Where the time of the CPUs goes", columns, rows)


def check_table(findings: FindingSet) -> Table | None:
    """Give one row per policy, load and check."""
    rows = [
        (
            *_who(each),
            Value(each.subject["check"]),
            Value(each.verdict, finding=each.id),
            fact_value(each, "events"),
            fact_value(each, "runs"),
            fact_value(each, "successes"),
            *(
                estimate_value(each, name) if name in each.estimates else NOTHING
                for name in ("success", "cost")
            ),
        )
        for each in findings.of("check")
    ]
    columns = (
        POLICY,
        LOAD,
        Column("check"),
        Column("switch"),
        Column("events", is_number=True, explanation="scheduling events of all trials"),
        Column("runs", is_number=True),
        Column("successes", is_number=True),
        Column("success", is_number=True, explanation="successes over runs"),
        Column("cost", is_number=True, explanation="median, known by powers of two"),
    )
    return _table("checks", "What the scheduler's checks did", columns, rows)


def client_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: how late the client sent."""
    rows = [
        (
            *_who(each),
            verdict_value(each),
            *(estimate_value(each, name) for name in ("p50", "p99", "largest")),
            fact_value(each, "requests"),
            fact_value(each, "never_sent"),
        )
        for each in findings.of("client_error")
    ]
    columns = (
        POLICY,
        LOAD,
        Column("verdict"),
        Column("median", is_number=True, explanation="sent later than due"),
        Column("p99", is_number=True),
        Column("largest", is_number=True),
        Column("requests", is_number=True),
        Column("never sent", is_number=True),
    )
    return _table("client_error", "How late the client sent", columns, rows)


def head_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: short requests where there are long ones."""
    rows = [
        (
            *_who(each),
            verdict_value(each),
            *(estimate_value(each, name) for name in ("work", "short_mean", "short_p99", "long_mean")),
        )
        for each in findings.of("head_of_line")
    ]
    columns = (
        POLICY,
        LOAD,
        Column("verdict"),
        Column("work", is_number=True, explanation="of a short request"),
        Column("short mean", is_number=True),
        Column("short p99", is_number=True),
        Column("long mean", is_number=True),
    )
    return _table("head_of_line", "Short requests where there are long ones", columns, rows)


NOTHING: Final = Value(NOT_AVAILABLE)


def verdict_value(finding: Finding) -> Value:
    """Give a verdict with its colour."""
    return Value(finding.verdict, tone=TONES.get(finding.verdict, ""), finding=finding.id)


def _who(finding: Finding) -> tuple[Value, Value]:
    load = finding.subject["load"]
    return Value(finding.subject["policy"]), Value(load, float(load) if load.isdecimal() else None)


def _reference_column(findings: FindingSet, claim: str, *, explanation: str = "") -> Column:
    """Give the column of what the latency beside the jobs is held against."""
    bounds = {str(each.facts["reference"]) for each in findings.of(claim)} - {BEFORE}
    if not bounds:
        return Column(BEFORE, is_number=True, explanation=f"{explanation}before the jobs start")
    words = f"{explanation}{min(bounds)} beside the jobs; without jobs, of the same stretch before"
    return Column("reference", is_number=True, explanation=words)


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
    doubted = note if any("*" in value.text + value.note for row in rows for value in row) else ""
    return Table(name, title, columns, tuple(rows), note=doubted, file=f"tables/{name}.csv", is_key=is_key)
