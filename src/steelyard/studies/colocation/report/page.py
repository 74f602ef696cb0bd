"""The report of the colocation study: a page of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Notice, Opening
from steelyard.studies.colocation import STUDY
from steelyard.studies.colocation.observed import Origin
from steelyard.studies.colocation.report.answer import answer, cards
from steelyard.studies.colocation.report.figures import changes_figure, shown_of, timeline_figure
from steelyard.studies.colocation.report.sections import sections
from steelyard.studies.colocation.report.sentences import PHRASING
from steelyard.studies.report_frame import notice_of, notices_of_disturbance, read_reported, where_and_when

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page


def build(folder: Path) -> Page:
    """Give the report of a result folder."""
    read = read_reported(folder)
    shown = shown_of(folder, read.findings)
    return read.page(
        STUDY.question,
        Opening(answer(read.findings), changes_figure(shown) or timeline_figure(shown), cards(read.findings)),
        about=_about(read.provenance, read.findings, read.plan),
        notices=_notices(read.findings, read.provenance),
        sections=sections(read.findings, read.plan, read.provenance, shown),
    )


def _about(provenance: Provenance | None, findings: FindingSet, plan: Plan) -> Iterator[tuple[str, str]]:
    is_imported = plan.options.get("mode") == "import"
    if not is_imported:
        yield from where_and_when(provenance)
    if provenance is not None and is_imported:
        yield "files", ", ".join(origin.file_name for origin in provenance.origins)
    yield "repetitions", str(findings.of("settings")[0].facts["repetitions"])
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    origins = {str(each.facts["origin"]) for each in findings.of("isolation")}
    if Origin.SIMULATED in origins:
        text = "Trials marked as simulated were computed by a model of a scheduler; no service was measured"
        yield Notice("Simulated", (text,), tone="warn")
    if findings.of("settings")[0].facts["closed_loop"]:
        text = (
            "Requests were sent by clients that wait for each answer before they send again: while the "
            "service is slow they send fewer requests, so the latencies hide what users would see"
        )
        yield Notice("A closed loop", (text,), tone="warn")
    if Origin.GUEST in origins:
        text = (
            "Trials ran in a virtual machine whose time is counted in instructions: they compare policies "
            "with each other, and say nothing about the speed of this host. Its virtual CPUs share one "
            "budget, so jobs slow everything down: policies are compared with the best "
            "one beside the same jobs"
        )
        yield Notice("Measured in a virtual machine", (text,))
    if Origin.REAL_GUEST in origins:
        text = (
            "Trials ran in a virtual machine in real time: its processors are threads of this host, from "
            "which whatever else the host does takes time"
        )
        yield Notice("Measured in a virtual machine", (text,))
    absent = [each for each in findings.of("availability") if each.verdict == "unavailable"]
    yield from notice_of("Unavailable here", PHRASING, absent, "absent")
    yield from notice_of("Trials that ended early", PHRASING, findings.of("ended_early"))
    yield from notices_of_disturbance(PHRASING, findings, provenance)
