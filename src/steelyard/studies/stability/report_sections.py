"""Sections of the stability report, in order."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Commands, Notice, Pairs, Prose, Section, Table, Value
from steelyard.report.sentence import plain
from steelyard.report.slots import write
from steelyard.studies.stability import report_clock_tables as clocks
from steelyard.studies.stability import report_figures as figures
from steelyard.studies.stability import report_shape_tables as shapes
from steelyard.studies.stability import report_tables as tables
from steelyard.studies.stability.report_data import missing_cells, setup_label
from steelyard.studies.stability.report_glance import glance_table
from steelyard.studies.stability.report_glossary import GLOSSARY
from steelyard.studies.stability.report_sentences import PHRASING
from steelyard.studies.stability.report_values import estimate_value
from steelyard.units import format_bytes, format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import JsonValue

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.page import Block
    from steelyard.studies.stability.report_data import Recorded
    from steelyard.studies.stability.report_subjects import Subjects

IDENTIFIERS: Final = frozenset({"host_id", "machine_id_hash"})
"""Facts of a host that tell a reader nothing."""

RECORDED_DIGITS: Final = 3
"""Digits of recorded fractions: what the gate saw is no measurement of the study."""

SENTENCES_PER_CLAIM: Final = 6
"""More sentences of one kind tire the reader; the table has all."""


def sections(recorded: Recorded, subjects: Subjects) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    findings = recorded.findings
    missing = missing_cells(recorded)
    made = (
        Section(
            "glance",
            "At a glance",
            "One row per isolation; every value leads to its interval and method.",
            _blocks(glance_table(findings)),
        ),
        Section(
            "measured",
            "What was measured",
            "The machine, the technologies and the combinations that were executed, and those that are "
            "missing.",
            _blocks(
                _machine(recorded),
                _notes(recorded),
                _technologies(recorded, subjects),
                _cells(recorded, subjects),
                _missing(recorded),
            ),
        ),
        Section(
            "trust",
            "Can the machine be trusted?",
            "What disturbed the runs, whether identical cells look identical, and how large Steelyard's "
            "own error is.",
            _blocks(*_machine_trust(recorded)),
        ),
        Section(
            "clocks",
            "Which clock can be trusted?",
            "The outside clock is compared with the clock of the program itself, iteration by iteration.",
            _blocks(
                clocks.clock_trust_table(findings),
                _say_verdict(findings, "clock_granularity", clocks.COARSE),
                clocks.granularity_table(findings),
                figures.error_load_figure(findings, subjects),
                figures.error_run_figure(recorded, subjects),
                clocks.outside_error_table(findings, missing, "cpu"),
                clocks.outside_error_table(findings, missing, "wall"),
                clocks.error_groups_table(findings),
            ),
        ),
        Section(
            "stability",
            "Does the time stay steady under load?",
            "The same program, alone and beside others, in each isolation.",
            _blocks(
                figures.scatter_figure(recorded, subjects),
                figures.dispersion_figure(findings, subjects),
                shapes.growth_table(findings),
                shapes.steadiness_table(findings),
                figures.box_figure(recorded, subjects),
                _say_remarkable(findings, "warm_up"),
                shapes.warm_up_table(findings),
                shapes.worker_table(findings),
                _say(findings, "input_dependence"),
                _say(findings, "counter_correlation"),
            ),
        ),
        Section(
            "comparisons",
            "Which isolation is slower, which is less steady?",
            "The published rule compares intervals of all iterations pooled; Steelyard's verdict stands "
            "beside it.",
            _blocks(
                figures.shift_figure(findings, subjects),
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
            "Workers that do not overlap are not under load; the start stamps show how much they did.",
            _blocks(
                figures.ratio_figure(findings, subjects),
                clocks.parallel_ratio_table(findings, missing),
                _say(findings, "overlap"),
            ),
        ),
        Section(
            "pinning",
            "Does binding workers to CPUs help?",
            "",
            _blocks(
                _say(findings, "pinning_effect"),
                tables.comparison_table(
                    findings,
                    "sd_comparison",
                    "affinity",
                    "Standard deviations compared with and without binding",
                ),
                tables.class_count_table(findings),
            ),
        ),
        Section(
            "repeat",
            "How to repeat this",
            "",
            _blocks(_repeat(recorded), _say(findings, "settings"), _identity(recorded)),
        ),
        Section("words", "Words used here", "", (GLOSSARY,)),
    )
    return tuple(section for section in made if section.blocks)


def _blocks(*blocks: Block | None) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block is not None)


def _say(findings: FindingSet, claim: str) -> Block | None:
    """Say the findings of one claim; the most remarkable first, the rest counted."""
    chosen = sorted(findings.of(claim), key=_is_ordinary)
    if not chosen:
        return None
    statements = PHRASING.say_all(chosen[:SENTENCES_PER_CLAIM])
    rest = len(chosen) - len(statements)
    more = (plain(f"{rest} more of this kind stand in the tables and in findings.json."),) if rest > 0 else ()
    return Prose((*statements, *more), is_list=True)


def _say_remarkable(findings: FindingSet, claim: str) -> Block | None:
    """Say the findings of one claim that are not ordinary; the table has all."""
    chosen = [finding for finding in findings.of(claim) if not _is_ordinary(finding)]
    return Prose(PHRASING.say_all(chosen[:SENTENCES_PER_CLAIM]), is_list=True) if chosen else None


def _say_verdict(findings: FindingSet, claim: str, verdict: str) -> Block | None:
    """Say the findings of one claim that have a verdict."""
    chosen = [finding for finding in findings.of(claim) if finding.verdict == verdict]
    return Prose(PHRASING.say_all(chosen), is_list=True) if chosen else None


_ORDINARY: Final = frozenset(
    {
        *("flat", "no growth seen", "no difference", "fine", "not measured"),
        *("no relevant difference", "no relevant dependence on the input"),
    }
)


def _is_ordinary(finding: Finding) -> bool:
    return finding.verdict in _ORDINARY and not finding.warnings


def _machine(recorded: Recorded) -> Block | None:
    provenance = recorded.provenance
    if provenance is None or not (provenance.host or provenance.origin):
        return Notice("Host", ("The machine was not recorded with these data.",))
    if provenance.origin is not None:
        origin = provenance.origin
        return Pairs(
            "Imported data",
            (
                ("file", origin.file_name),
                ("format", f"{origin.importer} {origin.form}".strip()),
                ("SHA-256", origin.sha256),
                ("machine", "not recorded in the file"),
            ),
        )
    host = {key: value for key, value in provenance.host.items() if key not in IDENTIFIERS}
    return Pairs("Host", tuple(flattened(host, "")))


def _notes(recorded: Recorded) -> Block | None:
    notes = recorded.provenance.notes if recorded.provenance else ()
    return Notice("Remarks", notes, tone="warn") if notes else None


def flattened(value: JsonValue, name: str) -> Iterable[tuple[str, str]]:
    """Give the leaves of nested JSON with readable names; long lists are counted.

    Examples
    --------
    >>> list(flattened({"cpu": {"model": "X", "cores": 4}, "flags": []}, ""))
    [('cpu model', 'X'), ('cpu cores', '4')]
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flattened(item, f"{name} {key}".strip().replace("_", " "))
    elif isinstance(value, list):
        texts = [str(item) for item in value if not isinstance(item, (dict, list))]
        if texts:
            yield name, ", ".join(texts)
    elif value is not None and value != "":
        yield name.removesuffix(" bytes"), _leaf(name, value)


def _leaf(name: str, value: str | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith(" bytes"):
        return format_bytes(value)
    return format_significant(value, RECORDED_DIGITS) if isinstance(value, float) else str(value)


def _technologies(recorded: Recorded, subjects: Subjects) -> Block | None:
    described = recorded.provenance.technologies if recorded.provenance else {}
    names = list(dict.fromkeys([*subjects.isolations, *described]))
    rows = tuple(_technology(name, described.get(name), name in subjects.isolations) for name in names)
    columns = (
        *(Column(key) for key in ("isolation", "measured")),
        *(Column(key, is_prose=True) for key in ("version", "reason or remark")),
    )
    return Table("technologies", "Isolation technologies", columns, rows) if rows else None


def _technology(name: str, described: JsonValue, is_measured: bool) -> tuple[Value, ...]:  # noqa: FBT001 - private
    facts = described if isinstance(described, dict) else {}
    version = str(facts.get("version") or "")
    remarks = [str(facts[key]) for key in ("reason", "repair", "remark") if facts.get(key)]
    if not is_measured and facts.get("available"):
        remarks.append("works here, but is not part of this study's plan")
    remark = "; ".join(remarks)
    measured = Value("yes", tone="good") if is_measured else Value("no", tone="na")
    return Value(name), measured, Value(version), Value(remark)


def _cells(recorded: Recorded, subjects: Subjects) -> Block:
    keys = ["isolation", "setup_type", "setup_size", "affinity"]
    counts = Counter((row["isolation"], setup_label(row)) for row in recorded.runs.select(keys).to_pylist())
    rows = tuple(
        (Value(setup), *(_runs(counts.get((isolation, setup))) for isolation in subjects.isolations))
        for setup in subjects.setups
    )
    columns = (Column("setup"), *(Column(name, "runs", is_number=True) for name in subjects.isolations))
    workloads = ", ".join(subjects.workloads)
    return Table("cells", "Runs per setup and isolation", columns, rows, note=f"Workloads: {workloads}.")


def _runs(count: int | None) -> Value:
    return Value("NA") if count is None else Value(f"{count}", float(count))


def _missing(recorded: Recorded) -> Block | None:
    """Give the missing cells, counted by what is missing and why."""
    missing = [cell for cell in (recorded.plan.cells if recorded.plan else ()) if cell.missing]
    groups = Counter(
        (
            cell.levels.get("isolation", ""),
            setup_label({"setup_type": "", "setup_size": "", **cell.levels}),
            cell.missing or "",
        )
        for cell in missing
    )
    rows = tuple(
        (Value(isolation), Value(setup), Value(f"{count}", float(count)), Value(reason))
        for (isolation, setup, reason), count in groups.items()
    )
    columns = (
        Column("isolation"),
        Column("setup"),
        Column("cells", is_number=True),
        Column("why", is_prose=True),
    )
    reasons = Counter(cell.missing for cell in missing)
    most = reasons.most_common(1)
    said = f"{len(missing)} cells, most often ({most[0][1]}): {most[0][0]}" if most else ""
    title = "Missing cells (NA everywhere)"
    return Table("missing_cells", title, columns, rows, summary=said) if rows else None


def _machine_trust(recorded: Recorded) -> Iterable[Block | None]:
    findings = recorded.findings
    yield _say(findings, "quiet_machine")
    yield from _sessions(recorded)
    yield _say(findings, "a_a")
    yield shapes.contamination_table(findings)
    failed = findings.of("failed_runs")
    yield _say(findings, "failed_runs") if failed else Prose((plain("No run failed."),))
    yield _calibration(findings)


def _sessions(recorded: Recorded) -> Iterable[Block | None]:
    """Give what the gate saw and which settings were changed, session by session."""
    for number, session in enumerate(recorded.provenance.sessions if recorded.provenance else (), start=1):
        suffix = f" (session {number})" if number > 1 else ""
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
    rows = [dict(flattened(record, "")) for record in records]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = tuple(Column(key) for key in keys)
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    values = tuple(tuple(Value(row.get(key, "")) for key in keys) for row in rows)
    return Table(name, title, columns, values, summary=message)


def _calibration(findings: FindingSet) -> Block | None:
    chosen = findings.of("calibration")
    if not chosen:
        return None
    finding = chosen[0]
    estimates = [(role, estimate_value(finding, role)) for role in finding.estimates]
    facts = [(key, Value(write(value), finding=finding.id)) for key, value in finding.facts.items()]
    rows = tuple((Value(re.sub(r"[._]", " ", name)), value) for name, value in (*estimates, *facts))
    columns = (Column("what"), Column("value", is_number=True))
    return Table("calibration", "Steelyard's own error on this host", columns, rows, summary=finding.verdict)


def _repeat(recorded: Recorded) -> Block:
    # The folder is not named: a result that was moved still renders to the same page.
    sessions = recorded.provenance.sessions if recorded.provenance else ()
    words = shlex.join(sessions[0].command_line) if sessions and sessions[0].command_line else ""
    again = ((words, "What was executed; the same seed gives the same plan"),) if words else ()
    return Commands(
        (
            *again,
            (
                "steelyard verify .",
                "In the folder of this page: compute every finding again from the raw data",
            ),
            ("steelyard compare-results . OTHER", "Lay another result over this one"),
        )
    )


def _identity(recorded: Recorded) -> Block:
    items = [("plan", recorded.findings.plan_id or "none")]
    if recorded.plan is not None:
        items += [("seed", str(recorded.plan.seed)), ("blocks", str(recorded.plan.blocks))]
    items += [("method version", str(recorded.findings.method_version))]
    items += [(f"SHA-256 of {name}", digest) for name, digest in recorded.findings.inputs.items()]
    return Pairs("Identity", tuple(items))
