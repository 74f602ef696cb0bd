"""The verdict cards on the front of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import fill
from steelyard.report.slots import write
from steelyard.studies.stability.report.answer import is_most_measured, weakest_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.studies.stability.report.subjects import Subjects

LOW_PARALLEL_RATIO: Final = 0.75
"""SOURCE: the published study saw no ratio below 75 %."""


_LIMIT: Final = (
    "[{facts.limiting_workload} scatters by {estimates.limiting} ({estimates.limiting:interval}) with "
    "{facts.limiting_workers:workers} already]"
)
_NOT_EXCLUDED: Final = "[; {facts.possible_workers:workers} are not excluded]"
_WORKERS: Final[dict[str, tuple[str, str, str]]] = {
    "recommended": (
        "{estimates.workers}",
        "[least steady there: {facts.worst_workload}, {estimates.worst}]" + _NOT_EXCLUDED,
        "plain",
    ),
    "undecided": ("undecided", _LIMIT, "warn"),
    "none": ("none", _LIMIT, "bad"),
}
"""Value, note and tone of the card by verdict."""


def cards(findings: FindingSet, subjects: Subjects) -> tuple[CardGroup, ...]:
    """Give the verdict cards: workers per isolation, then what makes the rest believable."""
    groups = (
        CardGroup(
            _workers_title(findings),
            tuple(_worker_card(one, subjects) for one in findings.of("recommended_workers")),
        ),
        CardGroup(
            "Can this report be trusted?",
            (
                *_quiet_cards(findings.of("quiet_machine")),
                *_parallel_cards(findings),
                *_control_cards(findings.of("a_a")),
            ),
        ),
    )
    return tuple(group for group in groups if group.cards)


def _workers_title(findings: FindingSet) -> str:
    chosen = findings.of("recommended_workers")
    if not chosen:
        return ""
    tolerance = write(chosen[0].facts["tolerance_percent"], "percent")
    return f"Recommended maximum number of parallel workers, for a dispersion of at most {tolerance}"


def _parallel_cards(findings: FindingSet) -> tuple[Card, ...]:
    weakest = weakest_ratio(findings)
    if weakest is None:
        return ()
    ratio = weakest.estimates["ratio"]
    is_low = (ratio.value or 0.0) < LOW_PARALLEL_RATIO
    return (
        Card(
            title="workers side by side",
            value=write(ratio, "ratio_percent"),
            note="of each batch at least, in every cell",
            tone="warn" if is_low else "good",
            finding=weakest.id,
        ),
    )


def _worker_card(finding: Finding, subjects: Subjects) -> Card:
    name = finding.subject["isolation"]
    value, note, tone = _WORKERS[finding.verdict]
    if is_most_measured(finding):
        value += ", the most that was measured"
    return Card(
        title=name,
        value="".join(part.text for part in fill(value, finding)),
        note="".join(part.text for part in fill(note, finding)),
        tone=tone,
        finding=finding.id,
        colour=subjects.colours.get(name, ""),
    )


def _quiet_cards(findings: Sequence[Finding]) -> Iterable[Card]:
    """Give the card of the machine's state."""
    tones = {"quiet": "good", "mostly quiet": "warn", "not quiet": "bad"}
    for finding in findings:
        note = "".join(
            part.text
            for part in fill(
                "{facts.noisy_batches:count} of {facts.batches:count} batches beside other load"
                "[; {facts.stolen_percent:percent} taken by the hypervisor]",
                finding,
            )
        )
        tone = tones.get(finding.verdict, "plain")
        yield Card("the machine was", finding.verdict, note, tone, finding.id)


def _control_cards(findings: Sequence[Finding]) -> tuple[Card, ...]:
    bad = [finding for finding in findings if finding.verdict != "no difference"]
    if not findings:
        return ()
    chosen = bad[0] if bad else findings[0]
    return (
        Card(
            title="two identical cells",
            value=chosen.verdict,
            note="as it must be" if not bad else "do not believe differences of this size",
            tone="bad" if bad else "good",
            finding=chosen.id,
        ),
    )
