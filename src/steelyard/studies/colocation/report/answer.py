"""The answer of the colocation report: per policy whether it protects the service, and the price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import fill, join, plain
from steelyard.report.slots import signed_change
from steelyard.studies.colocation.findings.verdicts import Isolation
from steelyard.studies.colocation.policies import POLICIES
from steelyard.studies.colocation.report.sentences import PHRASING

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Part, Statement

WITHOUT_JOBS: Final = "none"
CARD_TONES: Final = {
    "isolated": "good",
    "not isolated": "bad",
    "inconclusive": "warn",
    "growing queue": "warn",
    "not settled": "warn",
}
NOT_MEASURED: Final = ("simulated", "read off a figure", "measured in a virtual machine")


def label(finding: Finding) -> str:
    """Name the policy and the load of a finding; what was not measured on this host says so."""
    origin = str(finding.facts.get("origin", ""))
    marked = f", {origin}" if origin in NOT_MEASURED else ""
    load = finding.subject["load"]
    at = f"{load} %" if load.isdecimal() else f"load {load}"
    return f"{finding.subject['policy']} ({at}{marked})"


def judged(findings: FindingSet) -> tuple[Finding, ...]:
    """Give the verdicts about policies that have jobs."""
    return tuple(each for each in findings.of("isolation") if each.subject["policy"] != WITHOUT_JOBS)


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give a sentence per policy and load: whether the service is protected, and what the jobs lose."""
    chosen = judged(findings)
    if not chosen:
        return (plain("No policy with best-effort jobs was measured, so nothing is said about protection."),)
    return tuple(_of_policy(findings, each) for each in chosen)


def _of_policy(findings: FindingSet, finding: Finding) -> Statement:
    parts: list[str | tuple[Part, ...]] = [f"{label(finding)}: ", fill(PHRASING.template(finding), finding)]
    used = [finding]
    for claim in ("price", "best_effort"):
        other = same(findings, claim, finding)
        if other is not None and (claim == "price" or other.verdict == "starved"):
            words = "the jobs are starved" if claim == "best_effort" else PHRASING.template(other)
            parts += ["; ", fill(words, other)]
            used.append(other)
    return join(*parts, ".", findings=used)


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
            f"Is the service protected at {load} % load?"
            if load.isdecimal()
            else "Is the service protected?",
            tuple(made),
        )
        for load, made in groups.items()
    )


def _card(findings: FindingSet, finding: Finding) -> Card:
    ratio = finding.estimates["ratio"].value
    price = same(findings, "price", finding)
    says_nothing = finding.verdict in {Isolation.OVERLOAD.value, Isolation.BOUND.value}
    change = "" if ratio is None or says_nothing else f"mean latency {signed_change(ratio)}"
    work = None if price is None else price.estimates["ratio"].value
    cost = "" if work is None else f"work of the jobs {signed_change(work)}"
    policy = POLICIES.get(finding.subject["policy"])
    title = finding.subject["policy"] + (f": {policy.title}" if policy else "")
    note = "; ".join(text for text in (change, cost) if text)
    return Card(title, finding.verdict, note, tone=CARD_TONES.get(finding.verdict, ""), finding=finding.id)
