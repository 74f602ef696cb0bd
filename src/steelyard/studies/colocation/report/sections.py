"""Sections of the colocation report, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Pairs, Section
from steelyard.studies.colocation.policies import POLICIES
from steelyard.studies.colocation.report import figures, tables
from steelyard.studies.colocation.report.answer import in_words, judged, of_jobs
from steelyard.studies.colocation.report.sentences import PHRASING
from steelyard.studies.report_blocks import listed, present, said
from steelyard.studies.report_repeat import repeat_section

if TYPE_CHECKING:
    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.studies.colocation.report.figures import Shown

GLOSSARY: Final = (
    ("service", "the latency-critical program, whose answers users wait for"),
    ("jobs", "best-effort work that may take any time, and any CPU that the service leaves"),
    ("latency", "from the time a request was due to its answer, whether or not it was sent in time"),
    ("before, beside", "the stretch of a trial before the jobs start, and the one in which they are there"),
    ("isolated", "the whole intervals of the changes of mean, p50 and p99 lie below the tolerance"),
    ("price", "work that the jobs lose under a policy, against the reference policy at the same load"),
    ("parked", "jobs that exist but make no progress: no iteration ends and they use no CPU time"),
    (
        "paused",
        "no iteration of the jobs ends for much longer than usual, and their CPU time is not recorded",
    ),
    ("repetition", "one trial of each policy and load, all with the same arrivals"),
)


def sections(
    findings: FindingSet, plan: Plan, provenance: Provenance | None, shown: Shown
) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    made = (
        Section(
            "protection",
            "Does the policy protect the service?",
            "",
            present(
                figures.timeline_figure(shown),
                tables.effect_table(findings),
                said(in_words(judged(findings)), "Each policy in words"),
                figures.protection_figure(shown),
                tables.CONTESTS.build(findings.of("contest")),
                figures.panels_figure(shown),
            ),
        ),
        Section(
            "tail",
            "And the slowest requests?",
            "A mean hides them; users notice them.",
            present(figures.tail_figure(shown), tables.tail_table(findings)),
        ),
        Section(
            "price",
            "What do the jobs get done?",
            "",
            present(
                tables.work_table(findings),
                said(of_jobs(findings), "What happened to the jobs"),
                tables.usage_table(findings),
                said(in_words(findings.of("throttled")), "Does the kernel throttle the service?"),
                listed(PHRASING, [each for each in findings.of("drain") if each.verdict == "not drained"]),
            ),
        ),
        Section(
            "checks",
            "How does the scheduler keep its rule?",
            "No best-effort thread runs while a thread of the service waits for a CPU that it may use.",
            present(
                tables.CHECKS.build(findings.of("check")),
                tables.EXIT_COSTS.build(findings.of("exit_cost")),
                listed(PHRASING, findings.of("strictness")),
            ),
        ),
        Section(
            "head",
            "Do short requests wait behind long ones?",
            "",
            present(tables.HEAD_OF_LINE.build(findings.of("head_of_line"))),
        ),
        Section(
            "client",
            "Can the latencies be trusted?",
            "A difference as large as that between two equal cells cannot be credited to a policy.",
            present(
                tables.CLIENT_ERRORS.build(findings.of("client_error")),
                listed(PHRASING, [*findings.of("waiting_client"), *findings.of("a_a")]),
            ),
        ),
        Section(
            "limits",
            "What this report cannot say",
            "",
            present(
                listed(
                    PHRASING,
                    [
                        *(each for each in findings.of("availability") if each.verdict == "unavailable"),
                        *findings.of("ended_early"),
                        *findings.of("quiet_machine"),
                    ],
                )
            ),
        ),
        repeat_section(provenance, PHRASING, findings, plan),
        Section("words", "Words used here", "", (Pairs("", (*GLOSSARY, *_policies(shown))),)),
    )
    return tuple(section for section in made if section.blocks)


def _policies(shown: Shown) -> list[tuple[str, str]]:
    return [(name, POLICIES[name].title) for name in shown.policies if name in POLICIES]
