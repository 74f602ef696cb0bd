"""The answer of the replication report: the three research questions, each from verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import MOST_NAMES, Part, begun, fill, plain, verdict_of
from steelyard.report.slots import change_interval, signed_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Statement

QUESTIONS: Final = {
    "RQ1": "Which kinds of experiment replicate elsewhere?",
    "RQ2": "Does a container change what is measured?",
    "RQ3": "What makes response times fluctuate?",
}
NOUNS: Final = {
    "e1": "micro benchmarks",
    "e2": "measurements of monitoring overhead",
    "e3": "benchmarks of a web service",
    "e4": "macro benchmarks",
}
"""Kinds of experiment as the subjects of a sentence."""
SAID: Final = {
    "RQ1": {
        "replicates": "{} replicate elsewhere",
        "does not replicate": "{} do not replicate elsewhere",
        "undecided": "whether {} replicate elsewhere is undecided",
        "no other place": "{} ran in one place only",
        "fails": "{} fail",
    },
    "RQ2": {
        "unchanged": "a container does not change the results of {}",
        "changed": "a container changes the results of {}",
        "undecided": "whether a container changes the results of {} is undecided",
        "no container": "{} did not run in a container",
    },
}
"""What is said of the kinds of experiment that have one answer, by question."""
_NOT_ASKED: Final = frozenset(("no other place", "no container"))
"""Said of a kind only where no other answers the question: its card has it as well."""
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


_SPIKES: Final = {
    "found": "{facts.removed_by} removes the spikes of response time[ ({facts.cause})]",
    "found in part": "{facts.removed_by} reduces the spikes of response time[ ({facts.cause})]",
    "named": "the spikes of response time coincide with {facts.cause}; no intervention surely reduces them",
    "not found": "the cause of the spikes of response time was not found",
    "hardly any fluctuation": "response times hardly fluctuate",
}


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the answers to the three questions in one line."""
    clauses = [*_of_kinds(findings), *_of_spikes(answers(findings, "RQ3"))]
    if not clauses:
        return (plain("No experiment of this result answers one of the questions."),)
    return (verdict_of(begun(clauses[0]), *clauses[1:], findings=findings.of("answer")),)


def _of_kinds(findings: FindingSet) -> Iterator[tuple[Part, ...]]:
    for question, said in SAID.items():
        chosen = answers(findings, question)
        is_answered = any(each.verdict not in _NOT_ASKED for each in chosen)
        for verdict, phrase in said.items():
            alike = [each for each in chosen if each.verdict == verdict]
            if alike and not (is_answered and verdict in _NOT_ASKED):
                before, _, after = phrase.partition("{}")
                yield (*([Part(before)] if before else []), *_nouns(alike), Part(after))


def _nouns(findings: Sequence[Finding]) -> Iterator[Part]:
    for at, each in enumerate(findings):
        joint = "" if at == 0 else " and " if each is findings[-1] else ", "
        yield Part(joint + NOUNS[each.subject["experiment"]], each.id)


def _of_spikes(found: Sequence[Finding]) -> Iterator[tuple[Part, ...]]:
    if len(found) > MOST_NAMES:
        yield (Part(f"{len(found)} programs were searched for what makes their response times fluctuate"),)
    else:
        for each in found:
            yield fill(_SPIKES[each.verdict] + ("[ on {subject.setting}]" if len(found) > 1 else ""), each)


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
