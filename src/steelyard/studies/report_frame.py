"""The frame of a study's report: what every page has, made from the files of a result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.placed.hosts import host_names
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.report.evidence import named_findings
from steelyard.report.page import Figure, Notice, Page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Opening, Section
    from steelyard.report.sentence import Phrasing

_MOST_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """What a report is made from.

    Parameters
    ----------
    findings : FindingSet
        ``findings.json``.
    plan : Plan
        ``plan.json``.
    provenance : Provenance or None
        ``provenance.json``, where there is one.
    """

    findings: FindingSet
    plan: Plan
    provenance: Provenance | None

    def page(
        self,
        question: str,
        opening: Opening,
        *,
        about: Iterable[tuple[str, str]],
        notices: Iterable[Notice],
        sections: Iterable[Section],
    ) -> Page:
        """Give the page, with those findings that it names."""
        return page_of(self.findings, question, opening, about=about, notices=notices, sections=sections)


def page_of(
    findings: FindingSet,
    question: str,
    opening: Opening,
    *,
    about: Iterable[tuple[str, str]],
    notices: Iterable[Notice],
    sections: Iterable[Section],
) -> Page:
    """Give the page of some findings, with those that it names."""
    page = Page(
        study=findings.study,
        question=question,
        about=tuple(about),
        answer=tuple(opening.answer),
        cards=tuple(opening.cards),
        notices=tuple(notices),
        sections=tuple(_without(opening.figure, sections)),
        findings={finding.id: finding for finding in findings.findings},
        figure=opening.figure,
    )
    named = set(named_findings(page))
    return replace(page, findings={name: each for name, each in page.findings.items() if name in named})


def _without(figure: Figure | None, sections: Iterable[Section]) -> Iterator[Section]:
    """Give the sections less the figure that opens the page; one that has nothing else is left out."""
    for section in sections:
        blocks = tuple(
            block
            for block in section.blocks
            if not (isinstance(block, Figure) and figure is not None and block.id == figure.id)
        )
        if blocks:
            yield replace(section, blocks=blocks)


def read_reported(folder: Path) -> ReportedResult:
    """Read what the report of a result folder is made from.

    Raises
    ------
    DataError
        If findings, plan or provenance are absent or damaged.
    """
    findings = read_findings(folder / "findings.json")
    plan = read_plan(folder / "plan.json")
    provenance = read_provenance(folder) if (folder / PROVENANCE_NAME).exists() else None
    return ReportedResult(findings, plan, provenance)


def measuring_hosts(provenance: Provenance) -> Iterator[tuple[str, str]]:
    """Give the host that measured, for the head of a page, or those that the runs were placed on."""
    placed = list(host_names(provenance, provenance.hosts).values())
    name = provenance.host.get("hostname") or provenance.host_id
    if len(placed) > 1:
        more = len(placed) - _MOST_NAMED
        yield "hosts", f"{len(placed)}: {', '.join(placed[:_MOST_NAMED])}{' ...' if more > 0 else ''}"
    elif name := next(iter(placed), name):
        yield "host", str(name)


def where_and_when(provenance: Provenance | None) -> Iterator[tuple[str, str]]:
    """Give the hosts and the begin of the first session, for the head of a page."""
    if provenance is None:
        return
    yield from measuring_hosts(provenance)
    if provenance.sessions:
        yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"


def notice_of(
    title: str, phrasing: Phrasing, found: Sequence[Finding], tone: str = "warn"
) -> Iterator[Notice]:
    """Give a notice with the sentence of each finding, where there are findings."""
    if found:
        yield Notice(title, tuple(phrasing.say(each).text for each in found), tone)


def notices_of_disturbance(
    phrasing: Phrasing, findings: FindingSet, provenance: Provenance | None
) -> Iterator[Notice]:
    """Say where the machine was not quiet, and what was remarked while it measured."""
    noisy = [each for each in findings.of("quiet_machine") if each.verdict == "not quiet"]
    yield from notice_of("The machine was not quiet", phrasing, noisy)
    if provenance is not None and provenance.notes:
        yield Notice("Remarks", provenance.notes, "warn")
