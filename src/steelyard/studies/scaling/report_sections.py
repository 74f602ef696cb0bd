"""Sections of the scaling report, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Section
from steelyard.studies.report_blocks import listed, present
from steelyard.studies.report_repeat import repeat_section
from steelyard.studies.scaling import report_tables as tables
from steelyard.studies.scaling.packets import UNIFORM
from steelyard.studies.scaling.recommendations import FITTING
from steelyard.studies.scaling.report_answer import recommendations
from steelyard.studies.scaling.report_figures import overhead_figure, speedup_figure
from steelyard.studies.scaling.report_sentences import PHRASING
from steelyard.studies.scaling.report_tables import table_of
from steelyard.studies.scaling.report_words import GLOSSARY, PACKETS_GLOSSARY
from steelyard.studies.scaling.strategy_findings import HOME_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block

MOST_SENTENCES: Final = 6


def sections(findings: FindingSet, plan: Plan, provenance: Provenance | None) -> tuple[Section, ...]:
    """Give all sections that have something to show."""
    made = (
        Section(
            "choose",
            "Which strategy to use when, and why",
            "Scores over all measured combinations of a situation; below, the reasons, as far as they "
            "were tested.",
            present(
                tables.recommendation_table(findings),
                tables.choice_table(findings),
                listed(PHRASING, list(_reasons(findings))),
            ),
        ),
        Section(
            "speedup",
            "How far does it scale?",
            "",
            present(
                speedup_figure(findings),
                tables.speedup_table(findings, is_key=not findings.of("recommendation")),
                _peaks(findings),
                _crowding(findings),
            ),
        ),
        Section(
            "expected",
            "What was expected, and what came",
            "The expectations stand in the plan, written before the first run.",
            present(tables.hypothesis_table(findings)),
        ),
        Section(
            "locks",
            "What does a lock cost?",
            "First with one worker, so that nobody contends: the pure price of taking and giving back a "
            "lock; "
            "then with threads that do nothing but contend for one lock.",
            present(overhead_figure(findings), _overheads(findings), _contests(findings)),
        ),
        Section(
            "explain",
            "What holds it back?",
            "Three explanations, each a number that can be wrong: a dispatcher deals only so many packets; a "
            "queue holds only so many; the heaviest source ends last.",
            present(_dispatcher(findings), _imbalance(findings), _depth(findings), _waits(findings)),
        ),
        Section(
            "laws",
            "Which law does it follow?",
            "The points each fit rests on are named: workers up to the cores, and the same without the last.",
            present(
                _regressions(findings),
                _laws(findings, "amdahl"),
                _laws(findings, "usl"),
                _without_law(findings),
            ),
        ),
        Section(
            "winners",
            "Who wins how often?",
            "The fastest median of each combination; equal medians are ties and count for nobody.",
            present(_winners(findings), _gains(findings)),
        ),
        Section(
            "claims",
            "Does the source say what its data say?",
            "Every number the text draws from these data, computed again; it agrees where the printed digits "
            "are the computed ones, rounded or cut off.",
            present(_contradictions(findings), tables.claim_table(findings)),
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
            (GLOSSARY, *((PACKETS_GLOSSARY,) if "load" in plan.factors else ())),
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


def _peaks(findings: FindingSet) -> Block | None:
    chosen = findings.of("peak")
    columns = [
        *tables.identity_columns(chosen),
        tables.estimate_column("speedup", "largest speed-up"),
        tables.interval_column("speedup"),
        tables.plain_column("workers", "at workers"),
        tables.verdict_column("where"),
    ]
    return table_of(chosen, columns, name="peaks", title="Largest speed-up of each curve")


def _crowding(findings: FindingSet) -> Block | None:
    chosen = findings.of("oversubscription")
    columns = [
        *tables.identity_columns(chosen),
        tables.subject_column("workers"),
        tables.fact_column("full_workers", "against workers", is_number=True),
        tables.estimate_column("kept", "rate kept"),
        tables.interval_column("kept"),
        tables.estimate_column("drop", "drop"),
        tables.verdict_column(),
    ]
    return table_of(chosen, columns, name="oversubscription", title="What more workers than cores cost")


def _overheads(findings: FindingSet) -> Block | None:
    columns = [
        *(tables.subject_column(name) for name in ("load", "mean_work", "depth", "lock")),
        tables.estimate_column("overhead", "LockFree / HomeQueue"),
        tables.interval_column("overhead"),
        tables.estimate_column("lock_free_rate", "LockFree rate"),
        tables.estimate_column("home_queue_rate", "HomeQueue rate"),
        tables.verdict_column(),
    ]
    return table_of(findings.of("overhead"), columns, name="overheads", title="Overhead of an idle lock")


def _contests(findings: FindingSet) -> Block | None:
    chosen = sorted(
        findings.of("lock_contest"),
        key=lambda each: (
            each.subject["test"],
            int(each.subject["workers"]),
            -(each.estimates["rate"].value or 0.0),
        ),
    )
    columns = [
        *(tables.subject_column(name) for name in ("test", "workers", "lock")),
        tables.plain_column("rate", "sections per s"),
        tables.plain_column("of_fastest", "of the fastest"),
        tables.interval_column("of_fastest"),
        tables.plain_column("unfairness", "unfairness", "sd of the sections per thread over mean; 0 is fair"),
        tables.plain_column("cores_used", "cores used", "CPU time over wall time"),
        tables.verdict_column(),
    ]
    note = (
        "counter: each section increments a counter; sleeper: the holder sleeps 1 ms, so 1000 per s is ideal."
    )
    return table_of(
        chosen, columns, name="lock_contests", title="Threads that contend for one lock", note=note
    )


def _dispatcher(findings: FindingSet) -> Block | None:
    columns = [
        *(tables.subject_column(name) for name in ("mean_work", "depth")),
        tables.estimate_column("ceiling_rate", "dealt of smaller packets"),
        tables.plain_column("bound", "bound", "that rate over the serial rate"),
        tables.plain_column("predicted", "predicted", "the bound, or the workers where they are fewer"),
        tables.plain_column("speedup", "largest measured"),
        tables.plain_column("relative", "measured / predicted"),
        tables.verdict_column(),
    ]
    return table_of(
        findings.of("dispatcher"), columns, name="dispatcher", title="The dispatcher, LockFree, uniform load"
    )


def _imbalance(findings: FindingSet) -> Block | None:
    chosen = findings.of("imbalance")
    columns = [
        *(tables.subject_column(name) for name in ("mean_work", "depth")),
        tables.contender_column(),
        tables.subject_column("workers"),
        tables.plain_column("bound", "bound", "sum of the source means over the largest"),
        tables.plain_column("speedup", "speed-up"),
        tables.plain_column("relative", "speed-up / bound"),
        tables.verdict_column(),
    ]
    own = [each for each in chosen if each.subject["strategy"] in HOME_ONLY]
    met = sum(each.verdict == "as predicted" for each in own)
    return table_of(
        chosen,
        columns,
        name="imbalance",
        title="The heaviest source, exponential load",
        summary=f"without balancing: {met} of {len(own)} as predicted within 10 %",
    )


def _depth(findings: FindingSet) -> Block | None:
    chosen = findings.of("depth")
    columns = [
        *(tables.subject_column(name) for name in ("load", "mean_work", "workers", "contender")),
        tables.fact_column("deep", "depth", is_number=True),
        tables.fact_column("shallow", "instead of", is_number=True),
        tables.change_column("gain", "rate"),
        tables.change_interval_column("gain"),
        tables.verdict_column(),
    ]
    return table_of(chosen, columns, name="depth", title="Deeper queues")


def _waits(findings: FindingSet) -> Block | None:
    chosen = findings.of("held_back_by")
    name, text = "worker_packets_cv", "sd of the packets per worker over their mean; 0 is fair"
    has_shares = all(name in each.facts for each in chosen)
    unfair = [tables.fact_column(name, "unfairness", is_number=True, explanation=text)] if has_shares else []
    possible = "times as fast the pipeline could be without this alone, by how long its parts waited"
    columns = [
        *tables.identity_columns(chosen),
        tables.subject_column("workers"),
        tables.estimate_column("dispatcher_idle", "dispatcher idle", "time it had a packet and no room"),
        tables.estimate_column("worker_idle", "workers idle", "time without a packet, mean of the workers"),
        tables.estimate_column("least_idle", "least", "the worker that waited least"),
        tables.estimate_column("most_idle", "most", "the worker that waited most"),
        tables.plain_column("queues", "queues", possible),
        tables.plain_column("imbalance", "imbalance", possible),
        tables.plain_column("dispatcher", "dispatcher", possible),
        *unfair,
        tables.verdict_column("held back by"),
    ]
    note = (
        "workers: they lose less than a tenth of their time; cores: more threads want one than there are; "
        "hand-over: a packet's way from the dispatcher to a worker, waking included."
    )
    return table_of(chosen, columns, name="held_back_by", title="Who waited for whom", note=note)


def _regressions(findings: FindingSet) -> Block | None:
    chosen = findings.of("regression")
    columns = [
        *tables.identity_columns(chosen),
        tables.fact_column("point_set", "points: workers"),
        tables.plain_column("slope", "slope"),
        tables.interval_column("slope"),
        tables.fact_column("p_slope_one_hc3", "p of slope 1 (HC3)", is_number=True),
        tables.plain_column("r_squared", "R2"),
        tables.verdict_column(),
    ]
    return table_of(chosen, columns, name="regressions", title="Lines of speed-up on workers")


def _laws(findings: FindingSet, law: str) -> Block | None:
    chosen = findings.of(law)
    last = (
        tables.plain_column("ceiling", "ceiling", "speed-up that no number of workers exceeds")
        if law == "amdahl"
        else tables.plain_column("peak_workers", "peak at workers")
    )
    coherence = [tables.plain_column("coherence", "coherence"), tables.interval_column("coherence")]
    columns = [
        *tables.identity_columns(chosen),
        tables.fact_column("point_set", "points: workers"),
        tables.plain_column("efficiency", "efficiency", "speed-up of one worker"),
        tables.plain_column("contention", "contention"),
        tables.interval_column("contention"),
        *(coherence if law == "usl" else []),
        last,
        tables.interval_column("ceiling" if law == "amdahl" else "peak_workers"),
        tables.fact_column("largest_error_percent", "largest error [%]", is_number=True),
        tables.verdict_column("beyond the points"),
    ]
    title = "Amdahl's law" if law == "amdahl" else "The universal scalability law"
    is_own = bool(chosen) and all(each.facts["is_own_share"] for each in chosen)
    note = "Of the program's own share: what the machine lets threads that share nothing lose is taken off."
    return table_of(chosen, columns, name=law, title=title, note=note if is_own else "")


def _without_law(findings: FindingSet) -> Block | None:
    """Say once for each set of points that it is too small."""
    sets = {each.facts["point_set"]: each for each in findings.of("no_law")}
    return listed(PHRASING, list(sets.values()))


def _winners(findings: FindingSet) -> Block | None:
    columns = [
        *(tables.subject_column(name) for name in ("load", "depth", "family", "contender")),
        tables.fact_column("wins", is_number=True),
        tables.fact_column("sure_wins", "sure wins", is_number=True),
        tables.fact_column("ties", is_number=True),
        tables.fact_column("combinations", "of", is_number=True),
        tables.verdict_column(),
    ]
    return table_of(findings.of("winner_count"), columns, name="winner_counts", title="Wins")


def _gains(findings: FindingSet) -> Block | None:
    chosen = findings.of("gain")
    columns = [
        *(tables.subject_column(name) for name in ("load", "mean_work", "depth", "workers", "contender")),
        tables.change_column("gain", "rate against LockFree"),
        tables.change_interval_column("gain"),
        tables.verdict_column(),
    ]
    return table_of(chosen, columns, name="gains", title="Every strategy against LockFree")


def _contradictions(findings: FindingSet) -> Block | None:
    chosen = [each for each in findings.of("source_claim") if each.verdict == "contradicts"]
    named = [each for each in chosen if each.facts["note"]]
    return listed(PHRASING, named[:MOST_SENTENCES])
