"""Tables of the scaling report about strategies and locks: which to use, and what each costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from steelyard.report.fills import pivoted, shared, subject, subject_number
from steelyard.report.page import Table, Value
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.scaling.findings.recommendations import DESCRIPTIVE, UNDECIDED
from steelyard.studies.scaling.findings.strategy import HOME_ONLY, NO_LOCK
from steelyard.studies.scaling.report.tables import (
    CONTENDER,
    JUDGED,
    change,
    factors,
    interval,
    judged_table,
    plain,
    plain_fact,
    rounded_column,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.table_spec import ColumnSpec

_NAMED: Final = 1


def choice_table(findings: FindingSet) -> Table | None:
    """Give one row per load, work and depth, the fastest contenders by number of workers."""
    most = max(map(_contenders, findings.of("choice")), default=0)
    chosen = [finding for finding in findings.of("choice") if _contenders(finding) == most]
    if not chosen:
        return None
    shortened = _single_lock(findings)
    crowded = {finding.subject["workers"] for finding in chosen if finding.facts["oversubscribed"]}

    def fastest(workers: str) -> ColumnSpec[Mapping[str, Finding]]:
        heading = f"{workers} {'worker' if workers == '1' else 'workers'}"
        unit = "more than cores" if workers in crowded else ""
        return text(heading, lambda row: _choice(row.get(workers), shortened), unit=unit)

    return TableSpec(
        "choices",
        "The fastest strategy, by load, work and workers",
        (
            text("load", shared(subject("load"))),
            number("W", shared(subject_number("mean_work")), "mean iterations per packet"),
            number("depth", shared(subject_number("depth"))),
            *map(fastest, sorted({finding.subject["workers"] for finding in chosen}, key=int)),
        ),
        "Below the fastest: those that may be as fast, within the margin. Combinations in which not every "
        "strategy took part are left out.",
        summary=lambda rows: f"{len(rows)} rows",
    ).build(pivoted(chosen, ("load", "mean_work", "depth"), lambda finding: finding.subject["workers"]))


def _contenders(finding: Finding) -> int:
    value = finding.facts["contenders"]
    return value if isinstance(value, int) else 0


def _single_lock(findings: FindingSet) -> str:
    """Give the ending of names that says nothing where all strategies have the same lock."""
    locks = {finding.subject["lock"] for finding in findings.of("speedup")} - {NO_LOCK}
    return f" ({next(iter(locks))})" if len(locks) == 1 else ""


def _choice(finding: Finding | None, shortened: str) -> Value:
    if finding is None:
        return Value("")
    others = [name.removesuffix(shortened) for name in json.loads(str(finding.facts["as_good"]))]
    rest = len(others) - _NAMED
    note = f"or {', '.join(others[:_NAMED])}" + (f" and {rest} more" if rest > 0 else "") if others else ""
    if len(others) + 1 == _contenders(finding):
        note = "all may be as fast"
    return Value(str(finding.facts["best"]).removesuffix(shortened), note=note, finding=finding.id)


def _use(finding: Finding) -> Value:
    if finding.verdict in {UNDECIDED, DESCRIPTIVE}:
        return Value(finding.verdict, note=f"ahead: {finding.facts['best']}", finding=finding.id)
    return Value(finding.verdict, tone="good", finding=finding.id)


RECOMMENDATIONS: Final = judged_table(
    "recommendations",
    "What to use in which situation",
    (
        *factors("load", "depth", "crowd"),
        text("use", _use),
        prose("not certainly slower", lambda finding: Value(str(finding.facts["as_good_text"]))),
        *change("over_lock_free", "against LockFree"),
        text("lowest score", plain_fact("worst")),
        rounded_column("worst_score", "its share of the highest"),
        interval("worst_score"),
    ),
    note="Score: geometric mean, over all work and workers of the situation, of rate over the best rate.",
)


OVERHEADS: Final = judged_table(
    "overheads",
    "Overhead of an idle lock",
    (
        *factors("load", "mean_work", "depth", "lock"),
        rounded_column("overhead", "LockFree / HomeQueue"),
        interval("overhead"),
        rounded_column("lock_free_rate", "LockFree rate"),
        rounded_column("home_queue_rate", "HomeQueue rate"),
        JUDGED,
    ),
    file="overhead_by_lock",
)

LOCK_CONTESTS: Final = judged_table(
    "lock_contests",
    "Threads that contend for one lock",
    (
        *factors("test", "workers", "lock"),
        plain("rate", "sections per s"),
        plain("of_fastest", "of the fastest"),
        interval("of_fastest"),
        plain("unfairness", "unfairness", "sd of the sections per thread over mean; 0 is fair"),
        plain("cores_used", "cores used", "CPU time over wall time"),
        JUDGED,
    ),
    note="counter: each section increments a counter; sleeper: the holder sleeps 1 ms, "
    "so 1000 per s is ideal.",
)


DISPATCHER: Final = judged_table(
    "dispatcher",
    "The dispatcher, LockFree, uniform load",
    (
        *factors("mean_work", "depth"),
        rounded_column("ceiling_rate", "dealt of smaller packets"),
        plain("bound", "bound", "that rate over the serial rate"),
        plain("predicted", "predicted", "the bound, or the workers where they are fewer"),
        plain("speedup", "largest measured"),
        plain("relative", "measured / predicted"),
        JUDGED,
    ),
)


def _met(chosen: Sequence[Finding]) -> str:
    own = [each for each in chosen if each.subject["strategy"] in HOME_ONLY]
    met = sum(each.verdict == "as predicted" for each in own)
    return f"without balancing: {met} of {len(own)} as predicted within 10 %"


IMBALANCE: Final = judged_table(
    "imbalance",
    "The heaviest source, exponential load",
    (
        *factors("mean_work", "depth"),
        CONTENDER,
        *factors("workers"),
        plain("bound", "bound", "sum of the source means over the largest"),
        plain("speedup", "speed-up"),
        plain("relative", "speed-up / bound"),
        JUDGED,
    ),
    summary=_met,
)

DEPTH: Final = judged_table(
    "depth",
    "Deeper queues",
    (
        *factors("load", "mean_work", "workers", "contender"),
        number("depth", plain_fact("deep")),
        number("instead of", plain_fact("shallow")),
        *change("gain", "rate"),
        JUDGED,
    ),
)


WINNERS: Final = judged_table(
    "winner_counts",
    "Wins",
    (
        *factors("load", "depth", "family", "contender"),
        number("wins", plain_fact("wins")),
        number("sure wins", plain_fact("sure_wins")),
        number("ties", plain_fact("ties")),
        number("of", plain_fact("combinations")),
        JUDGED,
    ),
)

GAINS: Final = judged_table(
    "gains",
    "Every strategy against LockFree",
    (
        *factors("load", "mean_work", "depth", "workers", "contender"),
        *change("gain", "rate against LockFree"),
        JUDGED,
    ),
)
