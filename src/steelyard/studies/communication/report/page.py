"""The report of the communication study: a page of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Notice, Opening
from steelyard.studies.communication import STUDY
from steelyard.studies.communication.report.answer import answer, cards
from steelyard.studies.communication.report.data import shown_of
from steelyard.studies.communication.report.figures import curve_figure
from steelyard.studies.communication.report.sections import sections
from steelyard.studies.communication.report.sentences import PHRASING
from steelyard.studies.report_frame import notice_of, notices_of_disturbance, read_reported, where_and_when

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page


NO_NETWORK: Final = frozenset({"one machine", "other nodes"})
"""Verdicts on pairs of nodes whose models are not those of a network between them."""


def build(folder: Path) -> Page:
    """Give the report of a result folder."""
    read = read_reported(folder)
    shown = shown_of(folder, read.plan, read.findings)
    return read.page(
        STUDY.question,
        Opening(answer(read.findings), curve_figure(shown, read.findings), cards(read.findings)),
        about=_about(read.provenance, read.plan),
        notices=_notices(read.findings, read.provenance),
        sections=sections(read.findings, read.plan, read.provenance, shown),
    )


def _about(provenance: Provenance | None, plan: Plan) -> Iterator[tuple[str, str]]:
    origins = () if provenance is None else provenance.origins
    if origins:
        tools = dict.fromkeys(origin.facts.get("tool", origin.importer) for origin in origins)
        yield "recorded by", ", ".join(tools)
        yield "imported from", ", ".join(dict.fromkeys(origin.file_name for origin in origins))
        if date := origins[0].facts.get("date"):
            yield "recorded", date
    else:
        yield from where_and_when(provenance)
    yield "replications", str(plan.blocks)
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    yield from notice_of("Not measured here", PHRASING, findings.of("absent"), "absent")
    apart = [each for each in findings.of("pair") if each.verdict in NO_NETWORK]
    yield from notice_of("Not measured over a network", PHRASING, apart)
    missing = dict.fromkeys(PHRASING.say(each).text for each in findings.of("link_missing"))
    if missing:
        yield Notice("Missing from the link", tuple(missing), tone="warn")
    changed = [each for each in findings.of("host_state") if each.verdict == "one of several"]
    if changed:
        text = (
            "The host was in several states while it measured; each has models of its own, which say "
            "nothing about the others"
        )
        yield Notice("The host changed", (text,), tone="warn")
    yield from notice_of("Runs that ended early", PHRASING, findings.of("ended_early"))
    yield from notices_of_disturbance(PHRASING, findings, provenance)
