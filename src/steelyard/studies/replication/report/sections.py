"""Sections of the replication report, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Pairs, Section
from steelyard.studies.placed.host_report import host_blocks
from steelyard.studies.replication.findings.effects import BY_CONTAINER
from steelyard.studies.replication.findings.questions import ELSEWHERE
from steelyard.studies.replication.report import figures, tables
from steelyard.studies.replication.report.answer import answers
from steelyard.studies.replication.report.sentences import PHRASING
from steelyard.studies.report_blocks import listed, present
from steelyard.studies.report_repeat import repeat_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from steelyard.model import Finding, FindingSet
    from steelyard.report.page import Block
    from steelyard.studies.replication.report.figures import Shown
    from steelyard.studies.report_frame import ReportedResult

GLOSSARY: Final = (
    ("setting", "where an experiment lives: on which device, on which storage, natively or in a container"),
    (
        "launch, run",
        "one fork of JMH, one loop of calls, one deployment under load; the unit of every interval",
    ),
    ("equivalent", "two one-sided tests over blocks of launches place the ratio inside the margin"),
    ("different", "the interval of the ratio lies outside the margin"),
    ("published relation", "position of the source's own intervals, which pool all single values"),
    ("played device", "a part of one machine with stated limits; no other hardware"),
    ("spike", "a call, or several in a row, far above the median of its run; the rule stands at the table"),
    ("explained", "time of the spikes during which an event lasted, such as a garbage collection"),
)
TITLES: Final = {
    "e1": "Micro benchmarks (e1)",
    "e2": "What monitoring costs (e2)",
    "e3": "A web service with its database (e3)",
    "e4": "A macro benchmark that may fail (e4)",
}


def sections(read: ReportedResult, shown: Shown, runs: pa.Table) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    findings, provenance = read.findings, read.provenance
    made = (
        Section(
            "elsewhere",
            "Does it hold elsewhere?",
            "Other devices, roles swapped, storages swapped; each against a margin that the plan fixed.",
            present(
                tables.answer_table(findings, "RQ1"),
                listed(PHRASING, answers(findings, "RQ1"), "Each answer in words"),
                tables.comparison_table(
                    findings,
                    ELSEWHERE,
                    "elsewhere",
                    "Elsewhere, one by one",
                ),
                tables.DEVICE_SCATTER.build(findings.of("devices")),
            ),
        ),
        Section(
            "container",
            "What does a container change?",
            "",
            present(
                tables.answer_table(findings, "RQ2"),
                listed(PHRASING, answers(findings, "RQ2"), "Each answer in words"),
                tables.comparison_table(findings, (BY_CONTAINER,), "container", "In a container, one by one"),
            ),
        ),
        *_fluctuation(findings, shown),
        *(_experiment(findings, shown, experiment) for experiment in TITLES),
        Section(
            "source",
            "What the source of this study printed",
            "The same rules, applied to the intervals and rows of the published slides.",
            present(
                tables.SOURCE_COMPARISONS.build(findings.of("source_comparison")),
                tables.SOURCE_ROWS.build(findings.of("source_row")),
                listed(PHRASING, findings.of("source_statement")),
            ),
        ),
        Section(
            "devices",
            "Where it was measured",
            "",
            present(
                tables.DEVICES.build(findings.of("device")),
                tables.SOFTWARE.build(findings.of("software")),
                *(host_blocks(PHRASING, findings, provenance, runs) if findings.of("hosts") else ()),
            ),
        ),
        Section(
            "limits",
            "Can it be trusted, and what it cannot say",
            "",
            present(
                listed(
                    PHRASING,
                    [
                        *findings.of("a_a"),
                        *findings.of("quiet_machine"),
                        *findings.of("failed_benchmark"),
                        *findings.of("ended_early"),
                        *findings.of("availability"),
                        *findings.of("not_had"),
                    ],
                )
            ),
        ),
        *_remarks(findings),
        repeat_section(provenance, PHRASING, findings, read.plan),
        Section("words", "Words used here", "", (Pairs("", GLOSSARY),)),
    )
    return tuple(section for section in made if section.blocks)


def _fluctuation(findings: FindingSet, shown: Shown) -> Iterator[Section]:
    """Give one section per setting that a tree of causes was measured in."""
    for tree in findings.of("cause_tree"):
        setting = tree.subject["setting"]
        yield Section(
            f"causes-{setting}",
            "What makes it fluctuate?" if len(findings.of("cause_tree")) == 1 else f"Causes on {setting}",
            "Each intervention changes one thing of the program; where spikes vanish, it caused them.",
            present(
                listed(
                    PHRASING,
                    [tree, *_of(findings, "spike_period", setting), *_of(findings, "answer", setting)],
                ),
                figures.tree_figure(shown, setting),
                tables.tree_table(findings, setting),
                tables.beside_table(findings, setting),
                figures.series_figure(shown, "causes"),
            ),
        )


def _experiment(findings: FindingSet, shown: Shown, experiment: str) -> Section:
    blocks: tuple[Block | None, ...] = (tables.cell_table(findings, experiment),)
    if experiment == "e1":
        blocks = (listed(PHRASING, findings.of("harness_floor")), *blocks)
    if experiment == "e2":
        blocks = (
            listed(PHRASING, findings.of("recording_cost")),
            figures.cost_figure(shown),
            tables.cost_table(findings),
            figures.series_figure(shown, "e2"),
            *blocks,
        )
    if experiment in {"e3", "e4"}:
        lateness = tables.lateness_table(findings, experiment)
        blocks = (figures.latency_figure(shown, experiment), *blocks, lateness)
    failed = [each for each in findings.of("failed_benchmark") if each.subject["experiment"] == experiment]
    return Section(experiment, TITLES[experiment], "", present(listed(PHRASING, failed), *blocks))


def _remarks(findings: FindingSet) -> Iterator[Section]:
    """Give lessons and notes on licences as the study file states them."""
    for kind, title in (("lessons", "Lessons learned"), ("licences", "Licences")):
        chosen = [each for each in findings.of("remark") if each.subject["kind"] == kind]
        yield Section(kind, title, "As the study file states it.", present(listed(PHRASING, chosen)))


def _of(findings: FindingSet, claim: str, setting: str) -> list[Finding]:
    return [each for each in findings.of(claim) if each.subject.get("setting") == setting]
