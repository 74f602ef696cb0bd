"""The answer of the colocation report: per policy whether it protects the service, and the price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import MOST_NAMES, Part, begun, fill, join, plain, verdict_of
from steelyard.report.slots import rounded_change, signed_change
from steelyard.studies.colocation.findings.verdicts import Isolation
from steelyard.studies.colocation.latency_bins import NOT_STATED
from steelyard.studies.colocation.policies import POLICIES
from steelyard.studies.colocation.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Statement

WITHOUT_JOBS: Final = "none"
CARD_TONES: Final = {
    "isolated": "good",
    "not isolated": "bad",
    "inconclusive": "warn",
    "growing queue": "warn",
    "not settled": "warn",
}
OF_JOBS: Final = {
    "starved": "the jobs are starved",
    "parked": "the jobs were parked for up to {facts.longest_parked_s:significant} s, without CPU time, "
    "and went on",
    "paused": "the jobs finished nothing for up to {facts.longest_parked_s:significant} s and went on; "
    "whether they got CPU time then is not recorded",
}
"""What is said of the jobs besides, by verdict."""

WITHOUT_VERDICT: Final = frozenset(("growing queue", "not settled"))
"""Verdicts that need their reason beside them."""

NOT_MEASURED: Final = (
    "simulated",
    "read off a figure",
    "imported",
    "measured in a virtual machine",
    "measured in a virtual machine in real time",
)


def label(finding: Finding) -> str:
    """Name the policy and the load of a finding; what was not measured on this host says so."""
    origin = str(finding.facts.get("origin", ""))
    marked = f", {origin}" if origin in NOT_MEASURED else ""
    load = finding.subject["load"]
    at = f"{load} %" if load.isdecimal() else load
    return f"{finding.subject['policy']} ({at}{marked})"


def judged(findings: FindingSet) -> tuple[Finding, ...]:
    """Give the verdicts about policies that have jobs."""
    return tuple(each for each in findings.of("isolation") if each.subject["policy"] != WITHOUT_JOBS)


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the policies by what is said of them."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in judged(findings):
        groups.setdefault((each.verdict, _heading(each)), []).append(each)
    if not groups:
        return (plain(_why_nothing(findings)), *of_jobs(findings))
    order = sorted(groups, key=lambda key: (key[0] != "isolated", key[0] == "inconclusive"))
    clauses = [(*fill(heading, (group := groups[key, heading])[0]), *_names(group)) for key, heading in order]
    verdict = verdict_of(begun(clauses[0]), *clauses[1:], findings=judged(findings))
    return (verdict, *in_words([each for each in judged(findings) if each.verdict in WITHOUT_VERDICT]))


def _heading(finding: Finding) -> str:
    """Give the begin of a clause: isolated by what could be told, where that is not everything."""
    is_partial = finding.verdict == Isolation.ISOLATED.value and finding.facts.get("untold")
    return "{verdict} by {facts.within}: " if is_partial else "{verdict}: "


def _why_nothing(findings: FindingSet) -> str:
    """Say why nothing is said about protection."""
    works = [each for each in findings.of("availability") if each.verdict == "available"]
    if any(each.subject["policy"] != WITHOUT_JOBS for each in works):
        return (
            "No mean latency above 0 was recorded both before and beside the jobs, "
            "so nothing is said about protection."
        )
    return "No policy with best-effort jobs was measured, so nothing is said about protection."


def in_words(chosen: Sequence[Finding]) -> tuple[Statement, ...]:
    """Say what was found of each policy and load, with all its numbers."""
    return tuple(
        join(f"{label(each)}: ", fill(PHRASING.template(each), each), ".", findings=[each]) for each in chosen
    )


def _names(group: list[Finding]) -> tuple[Part, ...]:
    if len(group) > MOST_NAMES:
        origins = {str(each.facts["origin"]) for each in group} & {*NOT_MEASURED}
        marked = "".join(f", {origin}" for origin in sorted(origins))
        return (Part(f"{len(group)} policies and loads{marked}", group[0].id),)
    return tuple(Part(f"{', ' if at else ''}{label(each)}", each.id) for at, each in enumerate(group))


def of_jobs(findings: FindingSet) -> tuple[Statement, ...]:
    """Say what happened to the jobs, where that is remarkable."""
    return tuple(
        join(f"{label(each)}: ", fill(OF_JOBS[each.verdict], each), ".", findings=[each])
        for each in findings.of("best_effort")
        if each.verdict in OF_JOBS
    )


def same(findings: FindingSet, claim: str, finding: Finding) -> Finding | None:
    """Give the finding of another claim about the same policy and load."""
    for each in findings.of(claim):
        if all(each.subject[name] == finding.subject[name] for name in ("policy", "load")):
            return each
    return None


def cards(findings: FindingSet) -> tuple[CardGroup, ...]:
    """Give the verdicts at a glance, a group per load."""
    groups: dict[str, list[Card]] = {}
    for each in judged(findings):
        groups.setdefault(each.subject["load"], []).append(_card(findings, each))
    return tuple(
        CardGroup(
            f"Is the service protected{_at(load)}?",
            tuple(made),
        )
        for load, made in groups.items()
    )


def _at(load: str) -> str:
    """Say at which load, or in which experiment where only that is known."""
    if load.isdecimal():
        return f" at {load} % load"
    return "" if load == NOT_STATED else f" in {load}"


def _card(findings: FindingSet, finding: Finding) -> Card:
    price = same(findings, "price", finding)
    says_nothing = finding.verdict in {Isolation.OVERLOAD.value, Isolation.BEST.value}
    changes = [
        f"{name} {rounded_change(ratio)}"
        for name, role in (("mean", "ratio"), ("p50", "ratio_p50"), ("p99", "ratio_p99"))
        if not says_nothing and (ratio := finding.estimates[role]).value is not None
    ]
    if changes and finding.facts.get("untold"):
        changes.append(f"{finding.facts['untold']} not known")
    change = f"latency: {', '.join(changes)}" if changes else ""
    work = None if price is None else price.estimates["ratio"].value
    cost = "" if work is None else f"work of the jobs {signed_change(work)}"
    policy = POLICIES.get(finding.subject["policy"])
    title = finding.subject["policy"] + (f": {policy.title}" if policy else "")
    note = "; ".join(text for text in (change, cost) if text)
    return Card(title, finding.verdict, note, tone=CARD_TONES.get(finding.verdict, ""), finding=finding.id)
