"""Sections of the scaling report, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Pairs, Section
from steelyard.studies.report_blocks import listed, present
from steelyard.studies.report_repeat import repeat_section
from steelyard.studies.scaling.findings.recommendations import FITTING
from steelyard.studies.scaling.packets import UNIFORM
from steelyard.studies.scaling.report import strategy_tables as strategies
from steelyard.studies.scaling.report import tables
from steelyard.studies.scaling.report.answer import recommendations
from steelyard.studies.scaling.report.figures import overhead_figure
from steelyard.studies.scaling.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block

MOST_SENTENCES: Final = 6

_GLOSSARY: Final = Pairs(
    "",
    (
        ("speed-up", "median rate of the parallel program over the median rate of its baseline"),
        ("ideal", "a speed-up equal to the number of workers"),
        ("shy", "how far the speed-up stays below ideal, in percent of ideal"),
        (
            "contention, coherence",
            "in the universal law: the serial share, and the cost of every pair of workers",
        ),
        (
            "serial fraction",
            "serial share of the work, if nothing else cost time; where it grows, something else does",
        ),
        ("machine", "speed-up of threads that share nothing: what they lack, no program can gain"),
        ("trial", "one launch of the program; a block holds one trial of every cell, in an order of its own"),
        ("oversubscribed", "more workers than cores; the dispatcher of the packets program comes on top"),
    ),
)
_PACKETS_GLOSSARY: Final = Pairs(
    "The packets program",
    (
        (
            "packet, W",
            "a checksum of W iterations on average; a dispatcher deals packets to one queue per worker",
        ),
        ("uniform, exponential", "all sources have mean W; or each a mean of its own, W on average"),
        ("LockFree", "one worker per queue, no lock"),
        ("HomeQueue", "the same, with a lock held until a packet was taken"),
        ("leader/followers", "no dispatcher: a worker that is out of packets draws the next ones for itself"),
        ("Awesome", "each worker sweeps all queues from its own on, taking from any whose lock is free"),
        ("overhead", "LockFree rate over HomeQueue rate with one worker: a lock nobody contends for"),
    ),
)


def sections(findings: FindingSet, plan: Plan, provenance: Provenance | None) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    made = (
        Section(
            "choose",
            "Which strategy to use when, and why",
            "Scores over all measured combinations of a situation.",
            present(
                strategies.RECOMMENDATIONS.build(findings.of("recommendation")),
                strategies.choice_table(findings),
                listed(PHRASING, recommendations(findings), "Each situation in words"),
                listed(PHRASING, list(_reasons(findings)), "Why"),
            ),
        ),
        Section(
            "speedup",
            "How far does it scale?",
            "",
            present(
                _speedups(findings),
                tables.PEAKS.build(findings.of("peak")),
                tables.CROWDING.build(findings.of("oversubscription")),
            ),
        ),
        Section(
            "expected",
            "What was expected, and what came",
            "The expectations stand in the plan, written before the first run.",
            present(tables.HYPOTHESES.build(findings.of("hypothesis"))),
        ),
        Section(
            "locks",
            "What does a lock cost?",
            "",
            present(
                overhead_figure(findings),
                strategies.OVERHEADS.build(findings.of("overhead")),
                _contests(findings),
            ),
        ),
        Section(
            "explain",
            "What holds it back?",
            "The rate of the dispatcher, the depth of the queues, and the heaviest source.",
            present(
                strategies.DISPATCHER.build(findings.of("dispatcher")),
                strategies.IMBALANCE.build(findings.of("imbalance")),
                strategies.DEPTH.build(findings.of("depth")),
                tables.WAITS.build(findings.of("held_back_by")),
            ),
        ),
        Section(
            "laws",
            "Which law does it follow?",
            "",
            present(
                tables.REGRESSIONS.build(findings.of("regression")),
                tables.law_table(findings, "amdahl"),
                tables.law_table(findings, "usl"),
                _without_law(findings),
            ),
        ),
        Section(
            "winners",
            "Who wins how often?",
            "The fastest median of each combination; ties count for nobody.",
            present(
                strategies.WINNERS.build(findings.of("winner_count")),
                strategies.GAINS.build(findings.of("gain")),
            ),
        ),
        Section(
            "claims",
            "Do the numbers of the source follow from its data?",
            "Computed again; printed digits may be rounded or cut off.",
            present(_contradictions(findings), _claims(findings)),
        ),
        Section(
            "trust",
            "Can the machine be trusted?",
            "",
            present(
                listed(
                    PHRASING,
                    [
                        *findings.of("quiet_machine"),
                        *findings.of("identical_cells"),
                        *findings.of("failed_runs"),
                    ],
                )
            ),
        ),
        repeat_section(provenance, PHRASING, findings, plan),
        Section(
            "words",
            "Words used here",
            "",
            (_GLOSSARY, *((_PACKETS_GLOSSARY,) if "load" in plan.factors else ())),
        ),
    )
    return tuple(section for section in made if section.blocks)


def _reasons(findings: FindingSet) -> Iterator[Finding]:
    """Give the findings behind the recommendations; nothing where there is no strategy to choose."""
    if not findings.of("recommendation"):
        return
    deepest = max(int(each.subject["depth"]) for each in findings.of("recommendation"))
    heaviest = [
        each
        for each in findings.of("imbalance")
        if each.subject["strategy"] == "LockFree" and int(each.subject["depth"]) == deepest
    ]
    if heaviest:
        yield max(heaviest, key=lambda each: (int(each.subject["workers"]), int(each.subject["mean_work"])))
        best = {
            each.facts["best"]
            for each in recommendations(findings)
            if each.subject["load"] == "exponential" and each.subject["crowd"] == FITTING
        }
        gains = [
            each
            for each in findings.of("gain")
            if each.subject["contender"] in best
            and each.subject["load"] == "exponential"
            and int(each.subject["depth"]) == deepest
            and not each.facts["oversubscribed"]
        ]
        if gains:
            yield max(gains, key=lambda each: (int(each.subject["workers"]), int(each.subject["mean_work"])))
    overheads = sorted(
        (
            each
            for each in findings.of("overhead")
            if each.subject["load"] == UNIFORM and int(each.subject["depth"]) == deepest
        ),
        key=lambda each: int(each.subject["mean_work"]),
    )
    yield from (overheads[:1] + overheads[-1:]) if len(overheads) > 1 else overheads
    yield from [each for each in findings.of("dispatcher") if int(each.subject["depth"]) == deepest][:1]
    kept = [each for each in findings.of("oversubscription") if each.estimates["kept"].value is not None]
    if kept:
        yield min(kept, key=lambda each: each.estimates["kept"].value or 0.0)
        yield max(kept, key=lambda each: each.estimates["kept"].value or 0.0)


def _speedups(findings: FindingSet) -> Block | None:
    """Give every point, in the terminal too where there is nothing to recommend."""
    return replace(tables.SPEEDUP, is_key=not findings.of("recommendation")).build(findings.of("speedup"))


def _contests(findings: FindingSet) -> Block | None:
    """Give the tests of locks by number of workers, the fastest lock first."""

    def place(finding: Finding) -> tuple[str, int, float]:
        rate = finding.estimates["rate"].value or 0.0
        return finding.subject["test"], int(finding.subject["workers"]), -rate

    return strategies.LOCK_CONTESTS.build(sorted(findings.of("lock_contest"), key=place))


def _claims(findings: FindingSet) -> Block | None:
    """Give the numbers of the source's text, those that its data contradict first."""
    chosen = sorted(findings.of("source_claim"), key=lambda each: each.verdict == "agrees")
    return tables.SOURCE_CLAIMS.build(chosen)


def _without_law(findings: FindingSet) -> Block | None:
    """Say once for each set of points that it is too small."""
    sets = {each.facts["point_set"]: each for each in findings.of("no_law")}
    return listed(PHRASING, list(sets.values()))


def _contradictions(findings: FindingSet) -> Block | None:
    chosen = [each for each in findings.of("source_claim") if each.verdict == "contradicts"]
    named = [each for each in chosen if each.facts["note"]]
    return listed(PHRASING, named[:MOST_SENTENCES])
