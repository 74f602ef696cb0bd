"""The answer of the replication report: the three research questions, each from verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import Part, enumerate_or_count, plain, verdict_of
from steelyard.report.slots import change_interval, signed_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Statement

QUESTIONS: Final = {
    "RQ1": "Which kinds of experiment replicate elsewhere?",
    "RQ2": "Does a container change what is measured?",
    "RQ3": "What makes response times fluctuate?",
}
SHORT: Final = {
    "RQ1": "Elsewhere",
    "RQ2": "In a container",
    "RQ3": "Fluctuation",
}
CARD_TONES: Final = {
    "replicates": "good",
    "unchanged": "good",
    "found": "good",
    "named": "good",
    "found in part": "warn",
    "hardly any fluctuation": "good",
    "does not replicate": "bad",
    "changed": "bad",
    "fails": "bad",
    "not found": "warn",
    "undecided": "warn",
    "no other place": "plain",
    "no container": "plain",
}
"""Colour of an answer; nothing said is no warning."""


def answers(findings: FindingSet, question: str) -> tuple[Finding, ...]:
    """Give the answers to one question."""
    return tuple(each for each in findings.of("answer") if each.subject["question"] == question)


_ABOUT: Final = {"RQ3": "{verdict}[, {facts.removed_by} removes them][ ({facts.cause})]"}
_KIND: Final = "{verdict} ({facts.kind})"


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the answers to the three questions in one line."""
    clauses: list[Sequence[Part]] = []
    for question, short in SHORT.items():
        chosen = answers(findings, question)
        if chosen:
            names = enumerate_or_count(chosen, _ABOUT.get(question, _KIND), "answers")
            lead = f"{short[:1].lower()}{short[1:]}" if clauses else short
            clauses.append((Part(f"{lead}: "), *names))
    if not clauses:
        return (plain("No experiment of this result answers one of the questions."),)
    return (verdict_of(*clauses, findings=findings.of("answer")),)


def cards(findings: FindingSet) -> tuple[CardGroup, ...]:
    """Give the answers at a glance, a group per question."""
    groups = [
        CardGroup(title, tuple(_card(each) for each in answers(findings, question)))
        for question, title in QUESTIONS.items()
    ]
    recording = findings.of("recording_cost")
    if recording:
        groups.append(
            CardGroup("What does our own recording cost?", tuple(_recording_card(each) for each in recording))
        )
    return tuple(group for group in groups if group.cards)


def _card(finding: Finding) -> Card:
    facts = finding.facts
    largest = finding.estimates.get("largest")
    if finding.subject["question"] == "RQ3":
        title = str(facts["removed_by"] or facts["cause"] or finding.subject["setting"])
        note = f"the spikes coincide with {facts['cause']}" if facts["cause"] else ""
    else:
        title = str(facts["kind"])
        note = f"{facts['equivalent']} of {facts['comparisons']} equivalent" if facts["comparisons"] else ""
        if largest is not None and largest.value is not None:
            note += f", most {signed_change(largest.value)}" if facts["different"] else ", widest"
            note += f" ({change_interval(largest)})" if largest.low is not None else ""
        if facts["played"]:
            note += f"; {facts['played']}"
    return Card(
        title, finding.verdict, note, tone=CARD_TONES.get(finding.verdict, "warn"), finding=finding.id
    )


def _recording_card(finding: Finding) -> Card:
    cost = finding.estimates["cost"]
    value = "NA" if cost.value is None else f"{cost.value:.1f} ns per call"
    limits = "" if cost.low is None or cost.high is None else f" ({cost.low:.1f} to {cost.high:.1f} ns)"
    tone = "good" if finding.verdict == "below every framework" else "warn"
    title = f"{finding.subject['language']}, {finding.subject['setting']}"
    return Card(title, finding.verdict, f"{value}{limits}", tone=tone, finding=finding.id)
