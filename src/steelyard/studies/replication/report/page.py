"""The report of the replication study: a page of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.record.tables import read_runs
from steelyard.report.page import Notice, Opening
from steelyard.studies.replication import STUDY
from steelyard.studies.replication.budget import blocks_of_each
from steelyard.studies.replication.findings.lateness import LATE
from steelyard.studies.replication.report.answer import answer, cards
from steelyard.studies.replication.report.figures import opening_figure, shown_of
from steelyard.studies.replication.report.sections import sections
from steelyard.studies.replication.report.sentences import PHRASING
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
        Opening(answer(read.findings), opening_figure(shown), cards(read.findings)),
        about=_about(read.provenance, read.findings, read.plan),
        notices=_notices(read.findings, read.provenance),
        sections=sections(read, shown, read_runs(folder)),
    )


def _about(provenance: Provenance | None, findings: FindingSet, plan: Plan) -> Iterator[tuple[str, str]]:
    yield from where_and_when(provenance)
    yield "devices", str(len(findings.of("device")))
    yield "repetitions", str(blocks_of_each(plan))
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    played = sorted(each.subject["device"] for each in findings.of("device") if each.verdict == "played")
    if played:
        text = (
            f"{', '.join(played)}: parts of one machine with stated limits. Their differences "
            "describe these limits, not other hardware"
        )
        yield Notice("Played devices", (text,), tone="warn")
    shared = [each for each in findings.of("hosts") if each.facts["sharing"]]
    yield from notice_of("Hosts that are one machine", PHRASING, shared)
    failed = findings.of("failed_benchmark")
    yield from notice_of("Benchmarks that fail, which is a result", PHRASING, failed)
    yield from notice_of("Unavailable here", PHRASING, findings.of("availability"), "absent")
    yield from notice_of("Runs that ended early", PHRASING, findings.of("ended_early"))
    late = [each for each in findings.of("driver_lateness") if each.verdict == LATE]
    yield from notice_of("The load driver was late", PHRASING, late)
    yield from notices_of_disturbance(PHRASING, findings, provenance)
