"""The report of the replication study: a page of findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.report.evidence import named_findings
from steelyard.report.page import Notice, Page
from steelyard.studies.replication.report_answer import answer, cards
from steelyard.studies.replication.report_figures import shown_of
from steelyard.studies.replication.report_sections import sections
from steelyard.studies.replication.report_sentences import PHRASING
from steelyard.studies.replication.study import STUDY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance


def build(folder: Path) -> Page:
    """Give the report of a result folder.

    Parameters
    ----------
    folder : Path
        With ``findings.json`` and ``tables/``, as ``steelyard analyse`` leaves it.

    Raises
    ------
    DataError
        If findings, plan, tables or provenance are absent or damaged.
    """
    findings = read_findings(folder / "findings.json")
    plan = read_plan(folder / "plan.json")
    provenance = read_provenance(folder) if (folder / PROVENANCE_NAME).exists() else None
    page = Page(
        study=findings.study,
        question=STUDY.question,
        about=tuple(_about(provenance, findings, plan)),
        answer=answer(findings),
        cards=cards(findings),
        notices=tuple(_notices(findings, provenance)),
        sections=sections(findings, plan, provenance, shown_of(folder, findings)),
        findings={finding.id: finding for finding in findings.findings},
    )
    named = set(named_findings(page))
    return replace(page, findings={name: each for name, each in page.findings.items() if name in named})


def _about(provenance: Provenance | None, findings: FindingSet, plan: Plan) -> Iterator[tuple[str, str]]:
    if provenance is not None:
        name = provenance.host.get("hostname") or provenance.host_id
        if name:
            yield "host", str(name)
        if provenance.sessions:
            yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"
    yield "devices", str(len(findings.of("device")))
    yield "repetitions", str(plan.blocks)
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    played = [each.subject["device"] for each in findings.of("device") if each.verdict == "played"]
    if played:
        text = (
            f"{', '.join(played)}: parts of one machine with stated limits. What they differ by says "
            "something about these limits, nothing about other hardware"
        )
        yield Notice("Played devices", (text,), tone="warn")
    failed = findings.of("failed_benchmark")
    if failed:
        texts = tuple(PHRASING.say(each).text for each in failed)
        yield Notice("Benchmarks that fail, which is a result", texts, tone="warn")
    absent = findings.of("availability")
    if absent:
        yield Notice("Unavailable here", tuple(PHRASING.say(each).text for each in absent))
    ended = findings.of("ended_early")
    if ended:
        yield Notice("Runs that ended early", tuple(PHRASING.say(each).text for each in ended), tone="warn")
    noisy = [each for each in findings.of("quiet_machine") if each.verdict == "not quiet"]
    if noisy:
        texts = tuple(PHRASING.say(each).text for each in noisy)
        yield Notice("The machine was not quiet", texts, tone="warn")
    if provenance is not None and provenance.notes:
        yield Notice("Remarks", provenance.notes, tone="warn")
