"""Tables of the colocation report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import estimate, fact, limits, linked, of, subject, subject_number, verdict
from steelyard.report.page import Value
from steelyard.report.table_spec import DOUBT_NOTE, ColumnSpec, TableSpec, number, text
from steelyard.studies.colocation.findings.isolation import BEFORE
from steelyard.studies.colocation.findings.verdicts import Isolation
from steelyard.studies.colocation.report.answer import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.model import Finding, FindingSet
    from steelyard.report.page import Table

_VERDICT: Final = verdict(
    {
        **dict.fromkeys(("isolated", "faster", "kept"), "lesser"),
        **dict.fromkeys(("slower", "drifted", "not isolated", "grown", "starved"), "higher"),
        **dict.fromkeys(("late", "violated", "blocked"), "higher"),
    }
)
_POLICY: Final = text("policy", subject("policy"))
_LOAD: Final = number("load", subject_number("load"), unit="% of CPUs")
_JUDGED: Final = text("verdict", _VERDICT)
_WHO: Final = (_POLICY, _LOAD, _JUDGED)
_INTERVAL: Final = "95 % interval"
_table = partial(TableSpec, doubt_note=DOUBT_NOTE)


def effect_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: latency before and beside the jobs, its changes, work."""
    price = _other(findings, "price")
    lost = "requests beside the jobs without an answer; they count with the time they waited, a lower bound"
    columns = (
        *_WHO,
        _reference(findings, "isolation", of(_unless_best, estimate("before")), "mean latency, "),
        number("beside", estimate("beside"), "mean latency beside the jobs"),
        *_change("mean", "ratio", "the mean latency"),
        *_change("p50", "ratio_p50", "the median latency", in_terminal=False),
        *_change("p99", "ratio_p99", "the 99th percentile"),
        number("work", of(price, estimate("ratio", "signed")), "of the jobs, against the reference policy"),
        number("trials", fact("trials"), in_terminal=False),
        number("lost", fact("unanswered_beside"), lost, in_terminal=False),
    )
    spec = _table("effects", "What the jobs do to the service", columns, is_key=True)
    return spec.build(findings.of("isolation"))


def _change(
    heading: str, role: str, words: str, *, in_terminal: bool = True
) -> tuple[ColumnSpec[Finding], ...]:
    """Give a change of latency and its interval."""
    change, interval = estimate(role, "rounded_change"), limits(role, "rounded_change_interval")
    return (
        number(heading, of(_unless_best, change), f"change of {words}", in_terminal=in_terminal),
        text(_INTERVAL, of(_unless_best, interval), f"of the change of {words}", in_terminal=False),
    )


def _unless_best(finding: Finding) -> Finding | None:
    return None if finding.verdict == Isolation.BEST.value else finding


def _other(findings: FindingSet, claim: str) -> Callable[[Finding], Finding | None]:
    """Pick the finding of another claim about the same policy and load."""
    return lambda finding: same(findings, claim, finding)


def _reference(
    findings: FindingSet, claim: str, fill: Callable[[Finding], Value], explanation: str = ""
) -> ColumnSpec[Finding]:
    """Give the column of what the latency beside the jobs is compared with."""
    references = sorted({str(each.facts["reference"]) for each in findings.of(claim)} - {BEFORE})
    if not references:
        return number(BEFORE, fill, f"{explanation}before the jobs start")
    words = (
        f"{explanation}{' or '.join(references)} beside the jobs; without jobs, of the same stretch before"
    )
    return number("reference", fill, words)


def tail_table(findings: FindingSet) -> Table | None:
    """Give one row per policy, load and quantile."""
    columns = (
        _POLICY,
        _LOAD,
        text("quantile", subject("quantile")),
        _JUDGED,
        _reference(findings, "tail", estimate("before")),
        number("beside", estimate("beside")),
        number("amplification", estimate("ratio"), "beside over the column before it"),
        text(_INTERVAL, limits("ratio")),
    )
    return _table("tails", "The tail", columns).build(findings.of("tail"))


def work_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: what the jobs got done, and when they stood still."""
    price = _other(findings, "price")
    columns = (
        *_WHO,
        number("rate", estimate("rate"), "finished iterations while the jobs are there"),
        number("CPU share", estimate("cpu_share"), "CPU time of the jobs over that of the CPUs"),
        number("against reference", of(price, estimate("ratio", "signed")), "the price of the policy"),
        text(_INTERVAL, of(price, limits("ratio", "change_interval"))),
        number("parked", fact("parked"), "times without an iteration and, where it is known, CPU time"),
        number("longest", fact("longest_parked_s"), "of those times", unit="s"),
    )
    return _table("best_effort", "What the jobs got done", columns).build(findings.of("best_effort"))


def usage_table(findings: FindingSet) -> Table | None:
    """Give one row per policy and load: where the CPUs' time goes, and how long the service drains."""
    drain = _other(findings, "drain")
    columns = (
        _POLICY,
        _LOAD,
        number("service before", estimate("service_before"), "CPU time over that of the CPUs"),
        number("service beside", estimate("service_beside")),
        number("jobs beside", estimate("jobs_beside")),
        number("busy beside", estimate("busy_beside"), "as the kernel counts it, with all that runs"),
        number("drain", of(drain, estimate("time")), "from the last request to the last answer"),
        number("unanswered", of(drain, fact("unanswered")), "requests of the whole trial without an answer"),
    )
    return _table("utilisation", "Where the time of the CPUs goes", columns).build(findings.of("utilisation"))


def _changed(role: str) -> Callable[[Finding], Value]:
    """Fill with a change, its interval below."""
    change, interval = estimate(role, "signed"), limits(role, "change_interval")
    return lambda finding: replace(change(finding), note=interval(finding).text)


CONTESTS: Final = TableSpec(
    "contests",
    "Policies against each other, beside the jobs",
    (
        _POLICY,
        text("against", subject("rival")),
        _LOAD,
        text("verdict", _VERDICT, "by mean, p50 and p99 together"),
        number("mean latency", _changed("mean"), "under the policy over that under the other"),
        number("p50", _changed("p50")),
        number("p99", _changed("p99")),
        number("work", _changed("work"), "of the jobs"),
    ),
    doubt_note=f"Below each change its 95 % interval. {DOUBT_NOTE}",
)
"""One row per pair of policies and load."""

CHECKS: Final = TableSpec(
    "checks",
    "What the scheduler's checks did",
    (
        _POLICY,
        _LOAD,
        text("check", subject("check")),
        text("switch", linked(lambda finding: Value(finding.verdict))),
        number("events", fact("events"), "scheduling events of all trials"),
        number("runs", fact("runs")),
        number("successes", fact("successes")),
        number("success", estimate("success"), "successes over runs"),
        number("cost", estimate("cost"), "median, known by powers of two"),
    ),
)
"""One row per policy, load and check."""

NOT_MEASURED: Final = Value("not measured here")


def _counted_instructions(finding: Finding) -> Value:
    found = finding.estimates["instructions"]
    if found.low is None or found.high is None:
        return NOT_MEASURED
    return Value(f"{found.low:g} to {found.high:g}", found.value, finding=finding.id)


EXIT_COSTS: Final = TableSpec(
    "exit_costs",
    "What the exit check costs",
    (
        _POLICY,
        _LOAD,
        number("runs", fact("runs"), "of all trials"),
        number("per event", estimate("per_event"), "runs over scheduling events"),
        number("rate", estimate("rate", "significant"), "on each CPU while the jobs are there", unit="/s"),
        number("steals", fact("steals"), "threads of the service taken over from another CPU or queue"),
        number("share of runs", estimate("steals"), "runs that took over a thread"),
        text("median", limits("median"), "time of a run"),
        text("p99", limits("p99"), "time of a run"),
        text("instructions", _counted_instructions, "of the median run"),
        text("CPU time", limits("share"), "all runs over the time of the CPUs while the jobs are there"),
    ),
    note="Times are known by powers of two: each lies between the two limits. They run from the begin of a "
    "pick to its decision, with the look into the queue of the own cache and one reading of the clock, so "
    "they are an upper bound of the check itself. What a thread that is taken over loses of its caches is "
    "not in them. Instructions are known where they are the clock of a virtual machine. Its times are not "
    "those of a real processor, and a run in the middle of which another virtual CPU had its turn contains "
    "that turn, as the p99 does.",
)
"""One row per policy with the exit check and load."""

CLIENT_ERRORS: Final = TableSpec(
    "client_error",
    "How late the client sent",
    (
        *_WHO,
        number("median", estimate("p50"), "sent later than due"),
        number("p99", estimate("p99")),
        number("largest", estimate("largest")),
        number("requests", fact("requests")),
        number("never sent", fact("never_sent")),
    ),
)
"""One row per policy and load."""

HEAD_OF_LINE: Final = TableSpec(
    "head_of_line",
    "Short requests where there are long ones",
    (
        *_WHO,
        number("work", estimate("work"), "of a short request"),
        number("short mean", estimate("short_mean")),
        number("short p99", estimate("short_p99")),
        number("long mean", estimate("long_mean")),
    ),
)
"""One row per policy and load."""
