"""The report of the stability study: a page of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Opening
from steelyard.studies.report_frame import measuring_hosts, page_of
from steelyard.studies.stability.report.absences import absences
from steelyard.studies.stability.report.answer import answer, no_answer
from steelyard.studies.stability.report.cards import cards
from steelyard.studies.stability.report.data import read_recorded
from steelyard.studies.stability.report.load_figures import shift_figure, workers_figure
from steelyard.studies.stability.report.sections import sections
from steelyard.studies.stability.report.subjects import subjects_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.report.page import Page
    from steelyard.studies.stability.report.data import RecordedTables

QUESTION: Final = (
    "Which isolation technology, and how many parallel workers, before timings stop being trustworthy?"
)


def build(folder: Path) -> Page:
    """Give the report of a result folder."""
    recorded = read_recorded(folder)
    subjects = subjects_of(recorded)
    findings = recorded.findings
    return page_of(
        findings,
        QUESTION,
        Opening(
            answer(findings) or (no_answer(),),
            workers_figure(findings) or shift_figure(findings),
            cards(findings, subjects),
        ),
        about=_about(recorded),
        notices=absences(findings, subjects, recorded.provenance),
        sections=sections(recorded, subjects),
    )


def _about(recorded: RecordedTables) -> Iterable[tuple[str, str]]:
    if (provenance := recorded.provenance) is not None:
        yield from measuring_hosts(provenance)
        if provenance.origin is not None:
            yield "imported from", provenance.origin.file_name
        elif provenance.sessions:
            yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"
    yield "runs", f"{recorded.runs.num_rows:,}".replace(",", " ")
    if recorded.plan is not None:
        yield "blocks", str(recorded.plan.blocks)
    if recorded.findings.plan_id:
        yield "plan", recorded.findings.plan_id[:12]
