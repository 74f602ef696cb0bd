"""The answer of the scaling report: a few sentences, and cards to see at a glance."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import Part, fill, join, plain, sentence_of, verdict_of
from steelyard.report.slots import (
    rounded,
    rounded_change,
    rounded_change_interval,
    rounded_interval,
)
from steelyard.studies.scaling.findings.program import IGNORED
from steelyard.studies.scaling.findings.recommendations import CROWDED, DESCRIPTIVE, FITTING, UNDECIDED
from steelyard.studies.scaling.findings.strategy import contender_of
from steelyard.studies.scaling.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Estimate, Finding, FindingSet
    from steelyard.report.sentence import Statement

MOST_RECOMMENDATIONS: Final = 4


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the verdict: which strategy when, or how far it scales; then what was expected."""
    chosen = recommendations(findings)
    verdict = _strategies(chosen) if chosen else _reached_most(findings)
    ignored = [each for each in findings.of("thread_count") if each.verdict == IGNORED]
    return (verdict, *(sentence_of(PHRASING.template(each), each) for each in ignored), *_counts(findings))


def _strategies(chosen: list[Finding]) -> Statement:
    """Say which strategy to use how often; what rests on medians alone, or is not certain, says so."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in chosen:
        state = each.verdict if each.verdict in {DESCRIPTIVE, UNDECIDED} else "use"
        best = each.verdict if state == "use" else str(each.facts["best"])
        groups.setdefault((state, best), []).append(each)
    clauses: list[Sequence[Part]] = []
    for state, lead in _LEADS.items():
        of_state = [(best, group) for (found, best), group in groups.items() if found == state]
        if of_state:
            clauses.append([Part(lead), *(part for pair in enumerate(of_state) for part in _counted(*pair))])
    return verdict_of(*clauses, findings=chosen)


_LEADS: Final = {
    "use": "Use ",
    UNDECIDED: "Undecided, with the highest score: ",
    DESCRIPTIVE: "By medians alone, with the highest score: ",
}


def _counted(at: int, group: tuple[str, list[Finding]]) -> tuple[Part, ...]:
    """Name a strategy with the situations that it is best in, or their number."""
    best, chosen = group
    between = Part(", " if at else "")
    if len(chosen) > 1:
        return (between, Part(f"{best} in {len(chosen)} situations", chosen[0].id))
    where = "{subject.load} load, {subject.crowd}"
    return (between, Part(f"{best} (", chosen[0].id), *fill(where, chosen[0]), Part(")", chosen[0].id))


def recommendations(findings: FindingSet) -> list[Finding]:
    """Give the recommendations of the deepest queues, for several workers."""
    several = [each for each in findings.of("recommendation") if each.subject["crowd"] in {FITTING, CROWDED}]
    deepest = max((int(each.subject["depth"]) for each in several), default=0)
    return [each for each in several if int(each.subject["depth"]) == deepest][:MOST_RECOMMENDATIONS]


def _reached_most(findings: FindingSet) -> Statement:
    """Say what the most workers that have a core each reach."""
    points = [each for each in findings.of("speedup") if each.estimates["speedup"].value is not None]
    if not points:
        return plain("No speed-up follows from these runs: too few numbers of workers finished.")
    fitting = [each for each in points if not each.facts["oversubscribed"]] or points
    most = fitting[-1]
    if "strategy" not in most.subject:
        return sentence_of(PHRASING.template(most), most)
    return join(f"{_case(most)}: ", fill(PHRASING.template(most), most), ".", findings=[most])


def _case(finding: Finding) -> str:
    """Name a strategy and what it was measured with."""
    of = finding.subject
    return f"{contender_of(of)}, {of['load']} load, W = {of['mean_work']}, depth {of['depth']}"


def _counts(findings: FindingSet) -> Iterator[Statement]:
    expected = findings.of("hypothesis")
    if expected:
        verdicts = Counter(each.verdict for each in expected)
        listed = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        counted = "1 expectation was" if len(expected) == 1 else f"{len(expected)} expectations were"
        yield plain(f"{counted} written down before: {listed}.")
    claims = findings.of("source_claim")
    if claims:
        wrong = sum(each.verdict == "contradicts" for each in claims)
        yield plain(
            f"{len(claims) - wrong} of {len(claims)} numbers that the source's text draws from these data "
            f"follow "
            f"from them; {wrong} do not."
        )


def cards(findings: FindingSet) -> tuple[CardGroup, ...]:
    """Give the recommendations, or the speed-ups of a program, as cards."""
    chosen = recommendations(findings)
    if chosen:
        return (CardGroup("Which strategy", tuple(map(_recommended, chosen))),)
    points = [each for each in findings.of("speedup") if each.facts["workers"] != 1]
    if not points:
        return ()
    if "strategy" in points[0].subject:
        return (CardGroup("Largest speed-up of each strategy", tuple(map(_peak, _peaks(findings)))),)
    return (CardGroup("Speed-up", tuple(map(_reached, points))),)


def _peaks(findings: FindingSet) -> Iterator[Finding]:
    """Give the peaks of the largest packets at the deepest queues."""
    peaks = list(findings.of("peak"))
    for name in ("depth", "mean_work"):
        largest = max((int(each.subject[name]) for each in peaks), default=0)
        peaks = [each for each in peaks if int(each.subject[name]) == largest]
    yield from peaks


def _peak(finding: Finding) -> Card:
    estimate = finding.estimates["speedup"]
    return Card(
        _case(finding),
        rounded(estimate),
        f"with {finding.facts['workers']} workers; {rounded_interval(estimate)}",
        finding=finding.id,
    )


def _recommended(finding: Finding) -> Card:
    is_certain = finding.verdict not in {UNDECIDED, DESCRIPTIVE}
    note = _over_lock_free(finding.estimates["over_lock_free"])
    if not is_certain:
        note = f"{finding.facts['best']} has the highest score"
    return Card(
        f"{finding.subject['load']} load, depth {finding.subject['depth']}, {finding.subject['crowd']}",
        finding.verdict,
        note,
        tone="good" if is_certain else "plain",
        finding=finding.id,
    )


def _over_lock_free(gain: Estimate) -> str:
    """Say what a recommended strategy gains, claiming no more than the interval does."""
    if gain.value is None or gain.low is None or gain.high is None:
        return "LockFree itself"
    certain = "" if gain.low > 1 or gain.high < 1 else "not certainly faster than LockFree: "
    against = " against LockFree" if not certain else ""
    return f"{certain}{rounded_change(gain)}{against}, {rounded_change_interval(gain)}"


def _reached(finding: Finding) -> Card:
    estimate = finding.estimates["speedup"]
    crowd = ", more than cores" if finding.facts["oversubscribed"] else ""
    tone = {"ideal": "good", "above ideal": "good", "shy of ideal": "warn"}.get(finding.verdict, "plain")
    is_lost = estimate.value is None
    return Card(
        f"{finding.subject['workers']} workers{crowd}",
        finding.verdict if is_lost else rounded(estimate),
        "no run was completed" if is_lost else f"{finding.verdict}; {rounded_interval(estimate)}",
        tone="bad" if is_lost else "plain" if finding.facts["oversubscribed"] else tone,
        finding=finding.id,
    )
