"""Sections of the communication report, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Pairs, Section
from steelyard.studies.communication.report import figures, tables
from steelyard.studies.communication.report.diagnostics import diagnostic_figure
from steelyard.studies.communication.report.sentences import PHRASING
from steelyard.studies.report_blocks import listed, present
from steelyard.studies.report_repeat import repeat_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.studies.communication.report.data import Shown

NOTABLE_PERCENT: Final = 10.0
"""Carry-over that explains less of the scatter is not told in a sentence."""

GLOSSARY: Final = Pairs(
    "",
    (
        ("half a round trip", "half of the time from a send to its reply: what one way costs"),
        ("piece", "a part of a curve: a constant, a line, or a power law; pieces need not meet"),
        ("switch", "a boundary at which something else begins, such as another protocol of a library"),
        ("bend", "a boundary at which pieces only approximate a curve"),
        ("state of the host", "what everything between two CPUs costs, as long as it stays the same"),
        ("canary", "a cache line sent back and forth between the CPUs of the endpoints, before and between"),
        ("held out", "a replication no model is fitted to: predictions are compared with it"),
        ("carry-over", "what a message costs more or less because of the one before it"),
        ("replication", "one launch of both endpoints, with a list of operations of its own"),
    ),
)


def sections(
    findings: FindingSet, plan: Plan, provenance: Provenance | None, shown: Sequence[Shown]
) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    made = (
        Section(
            "cost",
            "What does a message cost?",
            "",
            present(
                tables.card_table(findings),
                tables.PAIRS.build(findings.of("pair")),
                listed(PHRASING, findings.of("model"), "Each model in words"),
                listed(PHRASING, findings.of("link")),
            ),
        ),
        Section(
            "predict",
            "Does the model predict?",
            "For a replication that no model was fitted to.",
            present(
                figures.error_figure(findings),
                tables.PREDICTIONS.build(findings.of("prediction")),
                listed(PHRASING, [*findings.of("fidelity"), *findings.of("not_simulated")]),
                tables.NOISE_DISTANCES.build(findings.of("noise_distance")),
                tables.CROSSED_PREDICTIONS.build(findings.of("crossed_prediction")),
            ),
        ),
        Section(
            "switches",
            "Where does it change?",
            "",
            present(
                tables.boundary_table(findings),
                tables.THRESHOLDS.build(findings.of("threshold")),
                tables.COEFFICIENTS.build(findings.of("coefficient")),
            ),
        ),
        Section(
            "noise",
            "How much does it scatter?",
            "",
            present(
                figures.noise_figure(shown),
                tables.NOISE.build(findings.of("noise")),
                listed(PHRASING, _notable(findings)),
                tables.CARRY_OVER.build(findings.of("carry_over_class")),
                listed(PHRASING, [each for each in findings.of("outliers") if each.facts["count"]]),
            ),
        ),
        Section(
            "host",
            "Did the host stay the same, and can the curves be trusted?",
            "",
            present(
                figures.sequence_figure(shown),
                listed(
                    PHRASING,
                    [
                        *findings.of("host_state"),
                        *findings.of("replications"),
                        *findings.of("mixed_run"),
                        *findings.of("disturbed"),
                        *findings.of("quiet_machine"),
                    ],
                ),
                diagnostic_figure(shown),
            ),
        ),
        Section(
            "calls",
            "What do calls and clocks cost?",
            "",
            present(tables.CALLS.build(findings.of("call")), tables.CLOCKS.build(findings.of("clock"))),
        ),
        Section(
            "limits",
            "What this report cannot say",
            "",
            present(
                listed(
                    PHRASING,
                    [
                        *findings.of("recording"),
                        *findings.of("coverage"),
                        *findings.of("absent"),
                        *findings.of("link_missing"),
                        *findings.of("ended_early"),
                    ],
                )
            ),
        ),
        repeat_section(provenance, PHRASING, findings, plan),
        Section("words", "Words used here", "", (GLOSSARY,)),
    )
    return tuple(section for section in made if section.blocks)


def _notable(findings: FindingSet) -> list[Finding]:
    return [
        each
        for each in findings.of("carry_over")
        if (each.estimates["explained"].value or 0.0) >= NOTABLE_PERCENT
    ]
