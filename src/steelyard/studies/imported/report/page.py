"""The report of imported results: a page of findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.analyse.series.warm_up import WINDOW
from steelyard.model.finding import read_findings
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.report.page import Notice, Opening, Pairs, Section
from steelyard.report.sentence import Part, Phrasing, Statement, plain, sentence_of
from steelyard.report.shown_text import shortened
from steelyard.studies.imported import STUDY
from steelyard.studies.imported.cells import TOO_SHORT, UNORDERED
from steelyard.studies.imported.report.figures import opening_figure
from steelyard.studies.imported.report.tables import (
    cell_table,
    comparison_table,
    location_table,
    published_table,
)
from steelyard.studies.report_blocks import said
from steelyard.studies.report_frame import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block, Page

PHRASING: Final = Phrasing(
    {
        "comparison": {
            "*": "{subject.second} is {verdict} against {subject.first} ({subject.metric}): "
            "{estimates.ratio:signed}, {estimates.ratio:change_interval}",
            "inconclusive": "{subject.second} against {subject.first} ({subject.metric}) is inconclusive: "
            "{estimates.ratio:signed}, {estimates.ratio:change_interval}"
            "[; {facts.further_units:count} more runs of each would settle it]",
            "descriptive": "{subject.second} against {subject.first} ({subject.metric}): "
            "{estimates.ratio:signed}, but too few runs for a verdict",
        },
    }
)
_ONE_SAMPLE: Final = (
    "the mean {subject.metric} of {subject.workload} is {estimates.mean}, {estimates.mean:interval}"
)
MOST_SENTENCES: Final = 6


def build(folder: Path) -> Page:
    """Give the report of an imported result."""
    findings = read_findings(folder / "findings.json")
    provenance = read_provenance(folder) if (folder / PROVENANCE_NAME).exists() else None
    notes = provenance.notes if provenance is not None else ()
    return page_of(
        findings,
        STUDY.question,
        Opening(_answer(findings), opening_figure(findings)),
        about=_about(provenance),
        notices=(Notice("Remarks of the import", notes, tone="warn"),) if notes else (),
        sections=_sections(findings, provenance),
    )


def _about(provenance: Provenance | None) -> Iterator[tuple[str, str]]:
    if provenance is None or provenance.origin is None:
        return
    files = provenance.origins or (provenance.origin,)
    tool = provenance.origin.facts.get("tool", provenance.origin.importer)
    yield "tool", tool
    yield "files", str(len(files))
    if date := provenance.origin.facts.get("date"):
        yield "measured", date
    yield "plan", provenance.plan_id[:12]


def _answer(findings: FindingSet) -> Iterator[Statement]:
    cells, compared = findings.of("cell"), findings.of("comparison")
    if compared:
        comparisons = f"{len(compared)} comparison{'s' * (len(compared) != 1)}"
        text = f"{comparisons} with the first alternative: {_counted(compared)}."
        yield Statement((Part(text, compared[0].id if len(compared) == 1 else None),))
    yield sentence_of(_ONE_SAMPLE, cells[0]) if len(cells) == 1 else plain(_series_of(cells))
    published = findings.of("published_value")
    if published:
        agreeing = sum(finding.verdict == "agrees" for finding in published)
        yield plain(f"{agreeing} of {len(published)} published numbers follow from the raw values.")


def _series_of(cells: Sequence[Finding]) -> str:
    """Say how many samples there are, and how the series of those run that are long enough."""
    counted = f"{len(cells)} samples (a cell and a metric)"
    told = [each for each in cells if each.verdict not in {TOO_SHORT, UNORDERED}]
    unordered = sum(each.verdict == UNORDERED for each in cells)
    short = len(cells) - len(told) - unordered
    if short == len(cells):
        most = max(int(str(each.facts["n"])) for each in cells)
        values = "one value each" if most == 1 else f"at most {most} values each"
        enough = f"{2 * WINDOW} values"
        return f"{counted} of {values}; no series is long enough ({enough}) to tell whether it drifts."
    if unordered == len(cells):
        return f"{counted}, whose values have no order: nothing is said of drift."
    parts = [_counted(told)] if told else []
    parts += [f"{short} with too few values to tell"] if short else []
    parts += [f"{unordered} without an order"] if unordered else []
    return f"{counted}; their series: {', '.join(parts)}."


def _counted(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _sections(findings: FindingSet, provenance: Provenance | None) -> Iterator[Section]:
    blocks: tuple[Block | None, ...] = (location_table(findings), cell_table(findings))
    yield _section("cells", "Every sample", "", blocks)
    if findings.of("comparison"):
        lead = "Each alternative against the first; p-values are corrected within a factor and metric."
        statements = [_told(each) for each in findings.of("comparison")[:MOST_SENTENCES]]
        words = said(statements, "In words" if len(statements) > 1 else "")
        yield _section("comparisons", "Comparisons", lead, (words, comparison_table(findings)))
    if findings.of("published_value"):
        lead = ""
        yield _section("published", "Published values", lead, (published_table(findings),))
    if provenance is not None and provenance.origin is not None:
        lead = ""
        yield _section("origin", "Where the data come from", lead, tuple(_origins(provenance)))


def _told(comparison: Finding) -> Statement:
    """Give the sentence of a comparison, after the program and what else its sides have in common."""
    common = [
        shortened(level)
        for key, level in comparison.subject.items()
        if level and key not in {"family", "metric", "first", "second"}
    ]
    told = PHRASING.say(comparison)
    head = (Part(f"{', '.join(common)}: ", comparison.id),) if common else ()
    return replace(told, parts=(*head, *told.parts))


def _section(name: str, title: str, lead: str, blocks: tuple[Block | None, ...]) -> Section:
    return Section(name, title, lead, tuple(block for block in blocks if block is not None))


def _origins(provenance: Provenance) -> Iterator[Pairs]:
    files = provenance.origins or ((provenance.origin,) if provenance.origin is not None else ())
    for origin in files:
        facts = tuple(origin.facts.items())
        yield Pairs(
            origin.file_name,
            (
                ("format", f"{origin.importer} {origin.form}".strip()),
                ("SHA-256", origin.sha256),
                ("size", f"{origin.byte_count} bytes"),
                *facts,
            ),
        )
