"""The answer of the communication report: a sentence and a card per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup
from steelyard.report.sentence import fill, join, plain
from steelyard.report.slots import percent, with_unit
from steelyard.studies.communication.labels import labelled
from steelyard.studies.communication.model.rivals import MEASURED_ENDS
from steelyard.studies.communication.report.sentences import PHRASING

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet
    from steelyard.report.sentence import Part, Statement

GOOD_PERCENT: Final = 8.0
"""Error of a prediction up to which a card is good: what replications of one state differ by at most."""

FAIR_PERCENT: Final = 20.0


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give a sentence per model: cost, switches, error of its prediction."""
    cards = findings.of("model")
    if not cards:
        return (plain("No model follows from these runs."),)
    return tuple(_of_model(findings, card) for card in cards)


def _of_model(findings: FindingSet, card: Finding) -> Statement:
    parts: list[str | tuple[Part, ...]] = [f"{labelled(card)}: ", fill(PHRASING.template(card), card)]
    used = [card]
    own, rival = (prediction_of(findings, card, name) for name in ("model", MEASURED_ENDS))
    if own is not None and rival is not None:
        parts += [
            "; it predicts a replication that it was not fitted to with a median error of ",
            fill("{estimates.median}", own),
            " (what was measured there is itself uncertain by ",
            fill("{estimates.floor}", own),
            f"; {MEASURED_ENDS}: ",
            fill("{estimates.median}", rival),
            ")",
        ]
        used += [own, rival]
    return join(*parts, ".", findings=used)


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
