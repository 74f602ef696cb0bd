"""Sections of the stability report, in order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import estimate
from steelyard.report.page import Prose, Section, Value
from steelyard.report.sentence import enumerate_findings, join, plain
from steelyard.report.slots import write
from steelyard.report.table_spec import TableSpec, number, text
from steelyard.studies.report_blocks import listed, present, said
from steelyard.studies.report_repeat import repeat_section
from steelyard.studies.stability.report import clock_tables as clocks
from steelyard.studies.stability.report import figures, hosts, measured, tables
from steelyard.studies.stability.report import load_figures as loads
from steelyard.studies.stability.report import shape_tables as shapes
from steelyard.studies.stability.report.data import missing_cells
from steelyard.studies.stability.report.glossary import GLOSSARY
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import JsonValue

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.page import Block
    from steelyard.report.table_spec import ColumnSpec
    from steelyard.studies.stability.report.data import RecordedTables
    from steelyard.studies.stability.report.subjects import Subjects

NOT_MEASURED: Final = "not measured"

SENTENCES_PER_CLAIM: Final = 6
"""More sentences of one kind tire the reader; the table has all."""


def sections(recorded: RecordedTables, subjects: Subjects) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    findings = recorded.findings
    missing = missing_cells(recorded)
    made = (
        Section(
            "glance",
            "At a glance",
            "",
            present(tables.glance_table(findings)),
        ),
        Section(
            "measured",
            "What was measured",
            "",
            present(
                measured.machine(recorded),
                measured.notes(recorded),
                measured.technologies(recorded, subjects),
                measured.cells(recorded, subjects),
                measured.missing_table(recorded),
            ),
        ),
        Section(
            "trust",
            "Can the machine be trusted?",
            "",
            present(*_machine_trust(recorded)),
        ),
        Section(
            "hosts",
            "What differs between the hosts?",
            "",
            present(*hosts.blocks(recorded)),
        ),
        Section(
            "clocks",
            "Which clock can be trusted?",
            "Each outside clock against the clock of the program itself, iteration by iteration.",
            present(
                clocks.clock_trust_table(findings),
                _say_verdict(findings, "clock_granularity", clocks.COARSE),
                clocks.granularity_table(findings),
                loads.error_load_figure(findings, subjects),
                figures.error_run_figure(recorded, subjects),
                clocks.outside_error_table(findings, missing, "cpu"),
                clocks.outside_error_table(findings, missing, "wall"),
                clocks.ERROR_GROUPS.build(findings.of("outside_error_groups")),
            ),
        ),
        Section(
            "stability",
            "Does the time stay steady under load?",
            "",
            present(
                figures.scatter_figure(recorded, subjects),
                loads.dispersion_figure(findings, subjects),
                shapes.growth_table(findings),
                shapes.steadiness_table(findings),
                figures.box_figure(recorded, subjects),
                _say_remarkable(findings, "warm_up"),
                shapes.WARM_UP.build(findings.of("warm_up")),
                shapes.WORKERS.build(findings.of("worker_difference")),
                _say(findings, "input_dependence"),
                _say(findings, "counter_correlation"),
            ),
        ),
        Section(
            "comparisons",
            "Which isolation is slower, which is less steady?",
            "The published rule, which pools all iterations, beside Steelyard's verdict.",
            present(
                loads.shift_figure(findings),
                _say(findings, "location_shift"),
                tables.shift_table(findings),
                tables.comparison_table(
                    findings,
                    "mean_comparison",
                    "isolation",
                    "Table 3. Means of CPU time compared between isolations",
                ),
                tables.comparison_table(
                    findings,
                    "sd_comparison",
                    "sandbox",
                    "Table 4. Standard deviations of CPU time compared with and without a sandbox inside",
                ),
                tables.disagreement_table(findings),
                figures.class_figure(findings),
            ),
        ),
        Section(
            "parallel",
            "Were the runs parallel?",
            "",
            present(
                figures.ratio_figure(findings, subjects),
                clocks.parallel_ratio_table(findings, missing),
                _overlap(findings),
            ),
        ),
        Section(
            "pinning",
            "Does binding workers to CPUs help?",
            "",
            present(
                _pinning(findings),
                tables.comparison_table(
                    findings,
                    "sd_comparison",
                    "affinity",
                    "Standard deviations compared with and without binding",
                ),
                tables.CLASS_COUNTS.build(findings.of("class_counts")),
            ),
        ),
        repeat_section(recorded.provenance, PHRASING, findings, recorded.plan),
        Section("words", "Words used here", "", (GLOSSARY,)),
    )
    return tuple(section for section in made if section.blocks)


def _say(findings: FindingSet, claim: str) -> Block | None:
    """Say the findings of one claim; the most remarkable first, the rest counted."""
    chosen = sorted(findings.of(claim), key=_is_ordinary)
    if not chosen:
        return None
    statements = PHRASING.say_all(chosen[:SENTENCES_PER_CLAIM])
    rest = len(chosen) - len(statements)
    more = (plain(f"{rest} more of this kind are in the tables and in findings.json."),) if rest > 0 else ()
    return said((*statements, *more), _words(claim) if len(chosen) > 1 else "")


def _say_remarkable(findings: FindingSet, claim: str) -> Block | None:
    """Say the findings of one claim that are not ordinary; the table has all."""
    chosen = [finding for finding in findings.of(claim) if not _is_ordinary(finding)]
    return listed(PHRASING, chosen[:SENTENCES_PER_CLAIM], _words(claim))


def _words(claim: str) -> str:
    return claim.replace("_", " ").capitalize()


def _overlap(findings: FindingSet) -> Block | None:
    """Say in which cell the fewest iterations ran beside all workers; the rest is counted."""

    def share(finding: Finding) -> float:
        overlapping, iterations = finding.facts["overlapping"], finding.facts["iterations"]
        return float(overlapping or 0) / max(float(iterations or 0), 1.0)

    chosen = sorted(findings.of("overlap"), key=share)
    if not chosen:
        return None
    rest = len(chosen) - 1
    more = (plain(f"In {rest} other cells more did; findings.json has all."),) if rest else ()
    return Prose((PHRASING.say(chosen[0]), *more))


def _pinning(findings: FindingSet) -> Block | None:
    """Say whether pinning helps; isolations for which it was not measured are named together."""
    chosen = findings.of("pinning_effect")
    absent = [finding for finding in chosen if finding.verdict == NOT_MEASURED]
    statements = list(PHRASING.say_all(finding for finding in chosen if finding.verdict != NOT_MEASURED))
    if absent:
        names = enumerate_findings(absent, "{subject.isolation}")
        statements.append(join("Pinning was not measured for ", names, "."))
    return Prose(tuple(statements), is_list=True) if statements else None


def _say_verdict(findings: FindingSet, claim: str, verdict: str) -> Block | None:
    """Say the findings of one claim that have a verdict."""
    chosen = [finding for finding in findings.of(claim) if finding.verdict == verdict]
    return listed(PHRASING, chosen, _words(claim))


_ORDINARY: Final = frozenset(
    {
        *("flat", "no growth seen", "no difference", "fine", "not measured"),
        *("no relevant difference", "no relevant dependence on the input"),
    }
)


def _is_ordinary(finding: Finding) -> bool:
    return finding.verdict in _ORDINARY and not finding.warnings


def _machine_trust(recorded: RecordedTables) -> Iterable[Block | None]:
    findings = recorded.findings
    yield _say(findings, "quiet_machine")
    yield from _sessions(recorded)
    yield _say(findings, "a_a")
    yield shapes.contamination_table(findings)
    failed = findings.of("failed_runs")
    yield _say(findings, "failed_runs") if failed else Prose((plain("No run failed."),))
    yield _calibration(findings)


def _sessions(recorded: RecordedTables) -> Iterable[Block | None]:
    """Give what the gate saw and which settings were changed, session by session."""
    for place, session in enumerate(recorded.provenance.sessions if recorded.provenance else (), start=1):
        suffix = f" (session {place})" if place > 1 else ""
        for title, records in (("What the gate saw", session.gate), ("Machine settings", session.tunings)):
            yield _records_table(f"{title}{suffix}", records, _record_message(records))


def _record_message(records: Sequence[dict[str, JsonValue]]) -> str:
    """Count what the gate decided, or which settings were given back."""
    quiet = [record["quiet"] for record in records if "quiet" in record]
    restored = [record["restored"] for record in records if "restored" in record]
    if quiet:
        return f"{sum(map(bool, quiet))} of {len(quiet)} looks at the machine found it quiet"
    return f"{sum(map(bool, restored))} of {len(restored)} settings were restored" if restored else ""


def _records_table(title: str, records: Sequence[dict[str, JsonValue]], message: str) -> Block | None:
    """Give records of any shape as a table: one column per key."""
    if not records:
        return None
    rows = [dict(measured.flattened(record, "")) for record in records]

    def column(key: str) -> ColumnSpec[dict[str, str]]:
        return text(key, lambda row: Value(row.get(key, "")))

    columns = tuple(map(column, dict.fromkeys(key for row in rows for key in row)))
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return TableSpec(name, title, columns, file=None, summary=lambda _: message).build(rows)


def _calibration(findings: FindingSet) -> Block | None:
    chosen = findings.of("calibration")
    if not chosen:
        return None
    finding = chosen[0]
    estimates = [(role, estimate(role)(finding)) for role in finding.estimates]
    facts = [(key, Value(write(value), finding=finding.id)) for key, value in finding.facts.items()]
    spec: TableSpec[tuple[str, Value]] = TableSpec(
        "calibration",
        "Steelyard's own error on this host",
        (
            text("what", lambda row: Value(re.sub(r"[._]", " ", row[0]))),
            number("value", lambda row: row[1]),
        ),
        file=None,
        summary=lambda _: finding.verdict,
    )
    return spec.build([*estimates, *facts])
