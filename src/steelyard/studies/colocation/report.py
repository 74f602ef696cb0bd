"""The report of the colocation study: a page of findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.report.evidence import named_findings
from steelyard.report.page import Notice, Page
from steelyard.studies.colocation.observed import Origin
from steelyard.studies.colocation.report_answer import answer, cards
from steelyard.studies.colocation.report_figures import shown_of
from steelyard.studies.colocation.report_sections import sections
from steelyard.studies.colocation.report_sentences import PHRASING
from steelyard.studies.colocation.study import STUDY

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
    is_imported = plan.options.get("mode") == "import"
    if provenance is not None and not is_imported:
        name = provenance.host.get("hostname") or provenance.host_id
        if name:
            yield "host", str(name)
        if provenance.sessions:
            yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"
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
            "service is slow they ask for less, so that the latencies hide what users would meet"
        )
        yield Notice("A closed loop", (text,), tone="warn")
    if Origin.GUEST in origins:
        text = (
            "Trials were executed in a virtual machine whose time is counted in instructions: they compare "
            "policies with each other, and say nothing about the speed of this host. Its processors share "
            "what it can do, so that jobs slow all down: policies are held against fifo beside the same jobs"
        )
        yield Notice("Measured in a virtual machine", (text,))
    absent = [each for each in findings.of("availability") if each.verdict == "unavailable"]
    if absent:
        yield Notice("Unavailable here", tuple(PHRASING.say(each).text for each in absent))
    ended = findings.of("ended_early")
    if ended:
        yield Notice("Trials that ended early", tuple(PHRASING.say(each).text for each in ended), tone="warn")
    noisy = [each for each in findings.of("quiet_machine") if each.verdict == "not quiet"]
    if noisy:
        yield Notice(
            "The machine was not quiet", tuple(PHRASING.say(each).text for each in noisy), tone="warn"
        )
    if provenance is not None and provenance.notes:
        yield Notice("Remarks", provenance.notes, tone="warn")
