"""The answer of the communication report: a sentence and a card per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import Part, fill, plain, verdict_of
from steelyard.report.slots import percent, with_unit
from steelyard.studies.communication.labels import labelled

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Statement

GOOD_PERCENT: Final = 8.0
"""Error of a prediction up to which a card is good: what replications of one state differ by at most."""

FAIR_PERCENT: Final = 20.0


_COST: Final = (
    "{estimates.smallest} for {facts.smallest_bytes:count} B, {estimates.largest} for "
    "{facts.largest_bytes:count} B, {facts.way}"
)
MOST_MODELS: Final = 2
"""Models that the verdict names one by one."""


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give what a message costs; of many models the cheapest and the dearest."""
    models = findings.of("model")
    if not models:
        return (plain("No model follows from these runs."),)
    if len(models) <= MOST_MODELS:
        clauses = [[Part(f"{labelled(each)}: ", each.id), *fill(_COST, each)] for each in models]
        return (verdict_of(*clauses, findings=models),)
    ordered = sorted(models, key=lambda each: each.estimates["smallest"].value or 0.0)
    clauses = [
        [Part(f"{word} of {len(models)} for small messages, {labelled(each)}: ", each.id), *fill(_COST, each)]
        for word, each in (("cheapest", ordered[0]), ("dearest", ordered[-1]))
    ]
    return (verdict_of(*clauses, findings=models),)


def prediction_of(findings: FindingSet, card: Finding, predictor: str) -> Finding | None:
    """Give the prediction of half a round trip that goes with a model card."""
    for each in findings.of("prediction"):
        is_meant = each.subject["predictor"] == predictor and each.subject["response"] == "half_round_trip"
        if is_meant and card.subject.items() <= each.subject.items():
            return each
    return None


def cards(findings: FindingSet) -> tuple[CardGroup, ...]:
    """Give the models at a glance."""
    made = tuple(_card(findings, card) for card in findings.of("model"))
    return (CardGroup("What a message costs, one way", made),) if made else ()


def _card(findings: FindingSet, card: Finding) -> Card:
    smallest, bandwidth = card.estimates["smallest"].value, card.estimates["bandwidth"].value
    value = f"{with_unit(smallest or 0.0, 's')}, {with_unit(bandwidth or 0.0, 'bytes/s')}"
    own = prediction_of(findings, card, "model")
    error = None if own is None else own.estimates["median"].value
    if error is None:
        return Card(labelled(card), value, "no replication left to predict", finding=card.id)
    tone = "good" if error <= GOOD_PERCENT else "warn" if error <= FAIR_PERCENT else "bad"
    return Card(labelled(card), value, f"predicted within {percent(error)}", tone=tone, finding=card.id)
