"""The report of the scaling study: a page of findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from steelyard.report.page import Notice, Opening
from steelyard.studies.report_frame import read_reported, where_and_when
from steelyard.studies.scaling import STUDY
from steelyard.studies.scaling.findings.strategy import WITHOUT_DISPATCHER
from steelyard.studies.scaling.report.answer import answer, cards
from steelyard.studies.scaling.report.figures import speedup_figure
from steelyard.studies.scaling.report.sections import sections
from steelyard.studies.scaling.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page


def build(folder: Path) -> Page:
    """Give the report of a result folder."""
    read = read_reported(folder)
    return read.page(
        STUDY.question,
        Opening(answer(read.findings), speedup_figure(read.findings), cards(read.findings)),
        about=_about(read.provenance, read.plan),
        notices=_notices(read.findings, read.provenance),
        sections=sections(read.findings, read.plan, read.provenance),
    )


def _about(provenance: Provenance | None, plan: Plan) -> Iterator[tuple[str, str]]:
    if provenance is not None and provenance.origins:
        yield "imported from", ", ".join(origin.file_name for origin in provenance.origins)
    elif provenance is not None:
        yield from where_and_when(provenance)
        yield "trials", str(plan.blocks)
        command = json.loads(str(plan.options.get("request") or "{}")).get("command")
        if command is not None:
            yield "program", str(command)
    cores = plan.options.get("core_count")
    if cores is not None:
        yield "cores", str(cores)
    yield "plan", plan.id[:12]


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    noisy = [each for each in findings.of("quiet_machine") if each.verdict == "not quiet"]
    if noisy:
        told = "; measure again before acting on what is inconclusive"
        yield Notice("The machine was not quiet", (PHRASING.say(noisy[0]).text + told,), tone="warn")
    short = findings.of("short_runs")
    if short:
        yield Notice("Runs that are too short", tuple(PHRASING.say(each).text for each in short), tone="warn")
    failed = findings.of("failed_runs")
    if failed:
        yield Notice("Runs that failed", tuple(PHRASING.say(each).text for each in failed), tone="warn")
    cores = findings.of("settings")[0].facts["cores"]
    measured = {each.facts["workers"] for each in findings.of("held_back_by") if "workers" in each.facts}
    if cores in measured:
        text = (
            f"The dispatcher is a thread of its own: with {cores} workers it shares the {cores} cores with "
            f"them, and the ideal is out of reach. Under {WITHOUT_DISPATCHER} there is none."
        )
        yield Notice("What to know about these cores", (text,), tone="absent")
    if cores is None:
        text = (
            "The number of cores of the machine is not known, so nothing is said about workers that share "
            "cores, nor of bounds and ceilings. `steelyard import packets ... --cores N` states it."
        )
        yield Notice("What is not known", (text,), tone="absent")
    if provenance is not None and provenance.notes:
        yield Notice("Remarks", provenance.notes, tone="warn")
