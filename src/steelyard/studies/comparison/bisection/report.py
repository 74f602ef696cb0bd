"""The report of a bisection: the commit, its probability, and what every measured commit takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.report.charts.forest import as_percent
from steelyard.report.charts.parts import SCHEMA, WHOLE_NUMBERS, coloured, numeric, shaped, tip
from steelyard.report.charts.theme import MUTED
from steelyard.report.dataset import dataset
from steelyard.report.fills import OPEN_TONES, estimate, fact, limits, subject, subject_number, verdict, word
from steelyard.report.page import Card, CardGroup, Figure, Notice, Opening, Pairs, Section
from steelyard.report.sentence import Part, Statement, begun
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.comparison.bisection.outcome import MOST_NAMED
from steelyard.studies.comparison.bisection.terms import asked_of
from steelyard.studies.comparison.claim import signed_percent
from steelyard.studies.report_blocks import present
from steelyard.studies.report_frame import read_reported, where_and_when

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.dataset import Json
    from steelyard.report.page import Page

    Row = dict[str, str | int | float | bool | None]

_LOOKS: Final = {
    "culprit": ("#C93F12", "diamond"),
    "with the change": ("#B98C00", "triangle-up"),
    "without the change": ("#0072B2", "circle"),
    "good end": ("#009E73", "square"),
    "bad end": ("#C76B9C", "square"),
}
"""Colour and shape of a measured commit by what is known of it, so that none is told by colour alone."""
_OTHER_LOOK: Final = ("#6B7280", "cross")
_TABLE_TONES: Final = {**OPEN_TONES, "culprit": "slower", "with the change": "warn", "open": "inconclusive"}
_ANSWER_TONES: Final = {"found": "good", "several": "warn", "undecided": "warn", "equivalent": "plain"}
_HEIGHT: Final = 300


def build(folder: Path) -> Page:
    """Give the report of a bisection."""
    read = read_reported(folder)
    (answer,) = read.findings.of("culprit")
    asked = asked_of(read.plan)
    return read.page(
        f"Which commit changed the {asked.metric.words} of {asked.command}?",
        Opening(
            _answer(answer),
            _figure(read.findings, answer),
            (CardGroup("Answer", tuple(_cards(answer, read.findings.of("change")))),),
        ),
        about=_about(answer, read.findings, read.provenance),
        notices=_notices(answer),
        sections=_sections(read.findings, read.plan),
    )


def _answer(answer: Finding) -> Iterator[Statement]:
    for key in ("sentence", "advice", "measured"):
        if said := answer.facts.get(key):
            yield Statement(begun([Part(f"{said}.", answer.id)]))


def _cards(answer: Finding, changes: Sequence[Finding]) -> Iterator[Card]:
    ratio, chance = answer.estimates.get("ratio"), answer.estimates.get("probability")
    for change in changes[:MOST_NAMED]:
        step = change.estimates["ratio"]
        name = change.subject["after"]
        yield Card(
            title=name if change.facts["commits"] == 1 else f"between {change.subject['before']} and {name}",
            value=signed_percent(step.value or 1.0).replace(" ", "\u00a0"),
            note=_span(step.low, step.high),
            tone="warn",
            finding=change.id,
        )
    if chance is not None and chance.value is not None and (not changes or answer.verdict == "found"):
        commit = str(answer.facts.get("commit") or "")[:9]
        count = int(answer.facts.get("suspects") or 0)
        yield Card(
            title=commit if count == 1 else f"{count} commits from {commit}",
            value=f"{chance.value:.1f} %",
            note=f"probability; asked for {100 * float(answer.facts['confidence'] or 0):.12g} %",
            tone=_ANSWER_TONES.get(answer.verdict, "plain"),
            finding=answer.id,
        )
    if ratio is not None and ratio.value is not None:
        yield Card(
            title="bad against good",
            value=signed_percent(ratio.value).replace(" ", "\u00a0"),
            note=_span(ratio.low, ratio.high),
            finding=answer.id,
        )


def _span(low: float | None, high: float | None) -> str:
    return (
        "no interval" if low is None or high is None else f"{signed_percent(low)} to {signed_percent(high)}"
    )


def _about(answer: Finding, findings: FindingSet, provenance: Provenance | None) -> Iterator[tuple[str, str]]:
    yield from where_and_when(provenance)
    yield "commits", str(answer.facts["commits"])
    yield "blocks", str(answer.facts["blocks"])
    yield "runs", str(answer.facts["runs"])
    yield "end", str(answer.facts["end"])
    yield "plan", findings.plan_id[:12]


def _notices(answer: Finding) -> Iterator[Notice]:
    if answer.warnings:
        yield Notice("What to know about this result", answer.warnings, "warn")


def _figure(findings: FindingSet, answer: Finding) -> Figure | None:
    """Draw what the measured commits take, over the history, and behind it how probable each commit is."""
    ratio = answer.estimates.get("ratio")
    commits = findings.of("commit")
    if ratio is None or ratio.value is None or not commits:
        return None
    last = int(answer.facts["commits"] or 0)
    whole = as_percent(ratio.value) or 0.0
    rows = [
        _row(answer.subject["good"], "", "good end", 0, 0.0, (None, None)),
        *(
            _row(
                each.subject["commit"],
                each.subject["subject"],
                each.verdict,
                int(each.facts["place"] or 0),
                *at,
            )
            for each in commits
            if (at := _level(each)) is not None
        ),
        _row(
            answer.subject["bad"], "", "bad end", last, whole, (as_percent(ratio.low), as_percent(ratio.high))
        ),
    ]
    bars: list[Row] = [
        {
            "name": each.subject["commit"],
            "subject": each.subject["subject"],
            "place": each.facts["place"],
            "probability": chance,
        }
        for each in commits
        if (chance := each.estimates["probability"].value)
        and (answer.verdict == "found" or not findings.of("change"))
    ]
    told = " Bars are the probabilities that a commit made the change, on the right axis." if bars else ""
    return Figure(
        "history",
        "What each measured commit takes"
        + (", and how probable it is that it made the change" if bars else ""),
        "Points are measured commits with their intervals, over the history from the good to the bad end; "
        f"dashed lines are both ends.{told}",
        str(answer.facts["sentence"]),
        _chart(rows, last, whole, has_bars=bool(bars)),
        {"levels": dataset(rows), "chances": dataset(bars)},
    )


def _level(finding: Finding) -> tuple[float, tuple[float | None, float | None]] | None:
    ratio = finding.estimates.get("ratio")
    if ratio is None or ratio.value is None:
        return None
    return as_percent(ratio.value) or 0.0, (as_percent(ratio.low), as_percent(ratio.high))


def _row(
    name: str,
    subject: str,
    said: str,
    place: int,
    value: float,
    interval: tuple[float | None, float | None],
) -> Row:
    low, high = (None if each is None or not math.isfinite(each) else each for each in interval)
    found: Row = {"name": name, "subject": subject, "verdict": said, "place": place}
    return found | {"value": value, "low": low, "high": high}


def _chart(rows: Sequence[Row], last: int, whole: float, *, has_bars: bool) -> dict[str, Json]:
    said = {str(row["verdict"]) for row in rows}
    looks = {name: look for name, look in _LOOKS.items() if name in said}
    looks |= dict.fromkeys(sorted(said - looks.keys()), _OTHER_LOOK)
    place = numeric("place", "commit, in the order of the history", "x", domain=[0, last + 1])
    x: dict[str, Json] = place | {"axis": WHOLE_NUMBERS}
    y = numeric("value", "against good [%]")
    shape = shaped("verdict", list(looks))
    shape["scale"] = {"domain": list(looks), "range": [look[1] for look in looks.values()]}
    colour = coloured("verdict", {name: look[0] for name, look in looks.items()})
    told = [tip("name", "commit"), tip("subject", "subject")]
    lines: dict[str, Json] = {
        "data": {"values": [{"value": 0.0}, {"value": whole}]},
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [4, 4]},
        "encoding": {"y": y},
    }
    intervals: dict[str, Json] = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    points: dict[str, Json] = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "color": colour,
            "shape": shape,
            "tooltip": [*told, tip("value", "against good [%]", ".3~g"), tip("verdict", "verdict")],
        },
    }
    bars: dict[str, Json] = {
        "data": {"name": "chances"},
        "mark": {"type": "bar", "width": 4, "color": MUTED, "opacity": 0.45, "cornerRadius": 0},
        "encoding": {
            "x": x,
            "y": numeric("probability", "probability [%]", domain=[0, 100])
            | {"axis": {"orient": "right", "grid": False}},
            "tooltip": [*told, tip("probability", "probability [%]", ".3~g")],
        },
    }
    return {
        "$schema": SCHEMA,
        "data": {"name": "levels"},
        "height": _HEIGHT,
        "width": 820,
        "layer": [*([bars] if has_bars else []), {"layer": [lines, intervals, points]}],
        "resolve": {"scale": {"y": "independent"}},
    }


_COMMITS: Final = TableSpec(
    "commits",
    "Commits that were measured, could not be measured, or are suspected",
    (
        text("commit", subject("commit")),
        number("place", fact("place"), "in the order of the history, from 1"),
        number(
            "probability [%]",
            estimate("probability", lambda value: f"{value:.2f}"),
            "that it made the change",
        ),
        number("difference", estimate("ratio", signed_percent), "against the good end"),
        text("interval", limits("ratio", signed_percent)),
        number("blocks", fact("blocks"), "blocks it was measured in"),
        text("verdict", verdict(_TABLE_TONES)),
        prose("subject", subject("subject")),
        prose(
            "failure",
            word("failure"),
        ),
    ),
    is_key=True,
)

_CHANGES: Final = TableSpec(
    "changes",
    "Steps between the measured commits",
    (
        text("last before", subject("before")),
        text("first behind", subject("after")),
        number("commits", fact("commits"), "commits that may have made it"),
        number("step", estimate("ratio", signed_percent)),
        text("interval", limits("ratio", signed_percent)),
        prose("subject", subject("subject")),
    ),
    is_key=True,
)

_DECISIONS: Final = TableSpec(
    "decisions",
    "What was known on the way",
    (
        number("number", subject_number("number")),
        text("measured", subject("commit")),
        number("blocks", fact("blocks"), "all blocks until then"),
        text("most probable", subject("favourite")),
        number("probability [%]", estimate("probability", lambda value: f"{value:.1f}")),
    ),
)


def _sections(findings: FindingSet, plan: Plan) -> Iterator[Section]:
    yield Section(
        "history-section",
        "Commits",
        "",
        present(_CHANGES.build(findings.of("change")), _COMMITS.build(findings.of("commit"))),
    )
    yield Section("course", "Course", "", present(_DECISIONS.build(findings.of("decision")), _asked(plan)))


def _asked(plan: Plan) -> Pairs:
    names = {
        "good_name": "good",
        "bad_name": "bad",
        "command": "command",
        "build": "build",
        "isolation": "isolation",
    }
    said = ((shown, str(plan.options.get(key) or "")) for key, shown in names.items())
    return Pairs("What was asked", tuple((name, value) for name, value in said if value))
