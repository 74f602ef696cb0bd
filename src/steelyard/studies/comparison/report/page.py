"""The report of a comparison: a page of findings, with every run."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.sequential import Location
from steelyard.report.fills import (
    OPEN_TONES,
    estimate,
    fact,
    limits,
    linked,
    subject,
    subjects,
    verdict,
    word,
)
from steelyard.report.page import Card, CardGroup, Notice, Opening, Pairs, Section, Value
from steelyard.report.sentence import MOST_NAMES, Part, Statement, begun, verdict_of
from steelyard.report.slots import limits_text
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.comparison.claim import percent, signed_percent
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.findings import claim_of_finding
from steelyard.studies.comparison.outcome import labelled
from steelyard.studies.comparison.report.figures import distribution, forest_of, sequence
from steelyard.studies.comparison.terms import MEASURE, planned_terms
from steelyard.studies.comparison.text import ENDS, remaining_text, written
from steelyard.studies.report_blocks import host_differences, present
from steelyard.studies.report_frame import read_reported
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.fills import Fill
    from steelyard.report.page import Block, Page, Table
    from steelyard.studies.comparison.claim import Claim
    from steelyard.studies.comparison.terms import Terms

OF_MODES: Final = ("mode", "overlap", "layout")
_COMPARATIVES: Final = frozenset(("faster", "slower"))
_CARD_TONES: Final = {"faster": "good", "equivalent": "good"}
"""A contender that is slower within the margin is worth a look and no alarm."""


def build(folder: Path) -> Page:
    """Give the report of a comparison."""
    read = read_reported(folder)
    terms, _ = planned_terms(read.plan)
    compared = read.findings.of("comparison")
    claims = tuple(map(claim_of_finding, compared))
    return read.page(
        f"Which command takes more {terms.metric.words}?",
        Opening(
            _answer(compared, claims),
            forest_of(claims),
            (CardGroup("Verdicts", tuple(map(_card, compared, claims))),),
        ),
        about=_about(read.findings, terms, read.provenance),
        notices=_notices(read.findings, read.provenance),
        sections=_sections(folder, read.findings, read.plan, read.provenance),
    )


def _about(findings: FindingSet, terms: Terms, provenance: Provenance | None) -> Iterator[tuple[str, str]]:
    if provenance is not None and provenance.sessions:
        yield "measured", provenance.sessions[0].begun_utc.replace("T", " ")[:16] + " UTC"
        yield "host", provenance.host_id[:12] or "unknown"
    yield "runs", str(sum(int(finding.facts.get("runs") or 0) for finding in findings.of("sample")))
    compared = findings.of("comparison")
    if compared:
        claim = claim_of_finding(compared[0])
        yield "margin", percent(claim.margin)
        yield "level", f"{100 * claim.level:.12g} %"
        end = str(compared[0].facts.get("end"))
        yield "end", ENDS.get(end, end)
    yield "isolation", terms.isolation
    yield "seed", str(terms.seed)
    yield "plan", findings.plan_id[:12]


def _answer(compared: tuple[Finding, ...], claims: tuple[Claim, ...]) -> Iterator[Statement]:
    if len(claims) == 1:
        yield Statement((Part(f"{claims[0].sentence}.", compared[0].id),))
    else:
        groups: dict[str, list[Finding]] = {}
        for finding in compared:
            groups.setdefault(finding.verdict, []).append(finding)
        clauses = [_named(verdict, group) for verdict, group in groups.items()]
        yield verdict_of(begun(clauses[0]), *clauses[1:], findings=compared)
    unsettled = [pair for pair in zip(compared, claims, strict=True) if not pair[1].is_settled]
    for finding, claim in unsettled[:MOST_NAMES]:
        elapsed_s = finding.facts.get("elapsed_s")
        said = remaining_text(claim, elapsed_s if isinstance(elapsed_s, float) else 0.0)
        yield Statement((Part(f"{said}.", finding.id),))


def _named(verdict: str, group: list[Finding]) -> list[Part]:
    """Name the commands of a verdict, or count them."""
    baselines = {finding.subject["first"] for finding in group}
    against = f" than `{short(baselines.pop())}`" if len(baselines) == 1 and verdict in _COMPARATIVES else ""
    parts = [Part(f"{verdict}{against}: ", group[0].id)]
    if len(group) > MOST_NAMES:
        return [*parts, Part(f"{len(group)} commands", group[0].id)]
    names = [f"`{short(finding.subject['second'])}`{claim_of_finding(finding).suffix}" for finding in group]
    for at, (name, finding) in enumerate(zip(names, group, strict=True)):
        ratio = finding.estimates["ratio"].value
        change = "" if ratio is None else f" ({_unbroken(ratio)})"
        parts.append(Part(f"{', ' if at else ''}{name}{change}", finding.id))
    return parts


def _card(finding: Finding, claim: Claim) -> Card:
    has_ratio = math.isfinite(claim.ratio)
    return Card(
        title=f"{short(claim.contender)}{claim.suffix}",
        value=f"{claim.verdict}: {_unbroken(claim.ratio)}" if has_ratio else str(claim.verdict),
        note=f"{_interval(finding)}against {short(claim.baseline)}"
        + (", by the mean" if claim.statistic == Location.MEAN else ""),
        tone="bad" if claim.is_regression else _CARD_TONES.get(str(claim.verdict), "warn"),
        finding=finding.id,
    )


def _interval(finding: Finding) -> str:
    said = limits_text(finding.estimates["ratio"], signed_percent)
    return f"{said}, " if said else ""


def _unbroken(ratio: float) -> str:
    return signed_percent(ratio).replace(" ", "\u00a0")


def _notices(findings: FindingSet, provenance: Provenance | None) -> Iterator[Notice]:
    notes = tuple(map(labelled, provenance.notes)) if provenance is not None else ()
    warnings = tuple(text for finding in findings.findings for text in finding.warnings)
    if notes or warnings:
        yield Notice("What to know about this result", (*notes, *warnings), "warn")


def _sections(
    folder: Path, findings: FindingSet, plan: Plan, provenance: Provenance | None
) -> Iterator[Section]:
    terms, _ = planned_terms(plan)
    yield Section(
        "commands-executed",
        "What was run",
        "",
        (Pairs("Commands", tuple(_executed(plan))),),
    )
    yield Section("ratios", "Differences", "", present(_ratios(findings)))
    if findings.of("on_host"):
        yield Section("hosts", "Hosts", "", present(*_hosts(findings, provenance)))
    if any(map(findings.of, OF_MODES)):
        yield Section("mode", "Mode and layout", "", present(_modes(findings), _layouts(findings)))
    yield Section(
        "runs",
        "Runs",
        "",
        present(
            sequence(folder, plan, terms),
            distribution(folder, plan, terms),
            _table(findings, str(terms.metric)),
        ),
    )


RATIOS: Final = TableSpec(
    "ratios",
    "Differences with their intervals",
    (
        *subjects("first", "second"),
        number("difference", estimate("ratio", signed_percent), "second against first"),
        text("interval", limits("ratio", signed_percent), "of all comparisons together"),
        text("two one-sided tests", limits("equivalence", signed_percent), "equivalent inside the margin"),
        text("verdict", verdict(OPEN_TONES)),
    ),
    file=None,
    is_key=True,
)


HOSTS: Final = TableSpec(
    "on_hosts",
    "What each host says alone",
    (
        *subjects("host", "first", "second"),
        number("difference", estimate("ratio", signed_percent), "second against first"),
        text("interval", limits("ratio", signed_percent), "of this host alone"),
        text("verdict", verdict(OPEN_TONES)),
        number("weight in %", fact("weight_percent"), "in the common answer"),
    ),
    "From three hosts on the answer is about the mean over hosts like these, by Hartung and Knapp; of fewer "
    "it is about these hosts alone.",
    file=None,
)


def _hosts(findings: FindingSet, provenance: Provenance | None) -> Iterator[Block | None]:
    """Say what each host says, and in what hosts differ."""
    yield HOSTS.build(findings.of("on_host"))
    if provenance is not None:
        yield host_differences(provenance)


def _modes(findings: FindingSet) -> Table | None:
    columns = (text("about", _about_mode), prose("what is known", linked(word("sentence"))))
    found = [finding for claim in ("mode", "overlap") for finding in findings.of(claim)]
    return TableSpec("modes", "How the sides were measured", columns, file=None, is_key=True).build(found)


def _about_mode(finding: Finding) -> Value:
    return Value({"mode": "choice of the mode", "overlap": "overlap of the runs"}[finding.claim])


def _layouts(findings: FindingSet) -> Table | None:
    columns = (
        *subjects("first", "second"),
        number("share of layout", estimate("share"), "of the variance of the log ratio"),
        text("interval", limits("share"), "95 %"),
        text("verdict", verdict({"small": "good", "undecided": "inconclusive", "present": "warn"})),
        number("blocks", fact("blocks_own_layout"), "in layouts of their own"),
        number("repeated", fact("blocks_repeated_layout"), "in layouts that came back"),
    )
    note = "Runs lie elsewhere in memory each time; some blocks come back to the same places."
    return TableSpec("layouts", "Layout in memory", columns, note, file=None).build(findings.of("layout"))


def _ratios(findings: FindingSet) -> Table | None:
    """Give the differences; with a column of statistics where not all are of the usual one."""
    compared = findings.of("comparison")
    columns = list(RATIOS.columns)
    if any("statistic" in finding.subject for finding in compared):
        columns.insert(
            2, text("statistic", lambda finding: Value(finding.subject.get("statistic", Location.TYPICAL)))
        )
    return replace(RATIOS, columns=tuple(columns)).build(compared)


def _executed(plan: Plan) -> Iterator[tuple[str, str]]:
    for cell in plan.cells:
        if cell.levels["phase"] == MEASURE and cell.execution is not None:
            yield cell.levels["command"], shlex.join(cell.execution.command)


def _table(findings: FindingSet, metric: str) -> Table | None:
    scale = 1 if metric == "memory" else NS_PER_S

    def measured(role: str) -> Fill:
        return estimate(role, lambda value: written(value * scale, metric))

    columns = (
        text("command", subject("command")),
        number("median", measured("median")),
        number(
            "spread",
            estimate("spread", lambda value: percent(value / 100)),
            "scaled median absolute deviation over the median",
        ),
        number("least", measured("least")),
        number("most", measured("most")),
        number("runs", _count("runs")),
        number("outliers", _count("outliers"), "runs far above the median; they are labelled and count"),
        prose("flags", word("flags")),
    )
    note = "Spread: median absolute deviation, scaled to the sd of normal data, over the median."
    return TableSpec("commands", "Commands", columns, note, is_key=True).build(findings.of("sample"))


def _count(key: str) -> Fill:
    def fill(finding: Finding) -> Value:
        found = int(finding.facts.get(key) or 0)
        return Value(str(found), found, finding=finding.id)

    return fill


def write_report(result: Path) -> Path:
    """Write the report of a result folder with findings; give the page's path.

    Raises
    ------
    DataError
        If a file cannot be read or written.
    """
    from steelyard.report.output import write_report as write_files  # noqa: PLC0415 - start-up time

    return write_files(build(result), result)
