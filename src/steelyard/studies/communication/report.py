"""The report of the communication study: a page of findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.report.evidence import named_findings
from steelyard.report.page import Notice, Page
from steelyard.studies.communication.report_answer import answer, cards
from steelyard.studies.communication.report_data import shown_of
from steelyard.studies.communication.report_sections import sections
from steelyard.studies.communication.report_sentences import PHRASING
from steelyard.studies.communication.study import STUDY

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
        With ``findings.json`` and ``models/``, as ``steelyard analyse`` leaves it.

    Raises
    ------
    DataError
        If findings, plan, models or provenance are absent or damaged.
    """
    findings = read_findings(folder / "findings.json")
    plan = read_plan(folder / "plan.json")
    provenance = read_provenance(folder) if (folder / PROVENANCE_NAME).exists() else None
    page = Page(
        study=findings.study,
        question=STUDY.question,
        about=tuple(_about(provenance, plan)),
        answer=answer(findings),
        cards=cards(findings),
        notices=tuple(_notices(findings, provenance)),
        sections=sections(findings, plan, provenance, shown_of(folder, plan, findings)),
        findings={finding.id: finding for finding in findings.findings},
    )
    named = set(named_findings(page))
    return replace(page, findings={name: each for name, each in page.findings.items() if name in named})


def _about(provenance: Provenance | None, plan: Plan) -> Iterator[tuple[str, str]]:
    if provenance is not None:
        name = provenance.host.get("hostname") or provenance.host_id
        if name:
            yield "host", str(name)
        if provenance.sessions:
            yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"
    yield "replications", str(plan.blocks)
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    absent = findings.of("absent")
    if absent:
        yield Notice("Not measured here", tuple(PHRASING.say(each).text for each in absent))
    missing = dict.fromkeys(PHRASING.say(each).text for each in findings.of("link_missing"))
    if missing:
        yield Notice("Missing from the link", tuple(missing), tone="warn")
    changed = [each for each in findings.of("host_state") if each.verdict == "one of several"]
    if changed:
        text = (
            "The host was in several states while it measured; each has models of its own, and nothing is "
            "said from one about the other"
        )
        yield Notice("The host changed", (text,), tone="warn")
    ended = findings.of("ended_early")
    if ended:
        yield Notice("Runs that ended early", tuple(PHRASING.say(each).text for each in ended), tone="warn")
    noisy = [each for each in findings.of("quiet_machine") if each.verdict == "not quiet"]
    if noisy:
        yield Notice(
            "The machine was not quiet", tuple(PHRASING.say(each).text for each in noisy), tone="warn"
        )
    if provenance is not None and provenance.notes:
        yield Notice("Remarks", provenance.notes, tone="warn")
