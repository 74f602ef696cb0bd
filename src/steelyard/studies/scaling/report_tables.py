"""Tables of the scaling report, each value made of a finding."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import (
    NOT_AVAILABLE,
    level_text,
    rounded,
    rounded_change,
    rounded_change_interval,
    rounded_interval,
)
from steelyard.studies.report_values import (
    DOUBT,
    DOUBT_NOTE,
    counted,
    number_value,
)
from steelyard.studies.scaling.recommendations import DESCRIPTIVE, UNDECIDED
from steelyard.studies.scaling.recorded import IDENTITY
from steelyard.studies.scaling.strategy_findings import NO_LOCK, contender_of
from steelyard.studies.scaling.tables import CLAIMS, PACKETS_CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.model.finding import Estimate, Finding, FindingSet

    Fill = Callable[[Finding], Value]

FILES: Final = {**CLAIMS, **PACKETS_CLAIMS}
TONES: Final = {
    "ideal": "good",
    "above ideal": "good",
    "kept": "good",
    "lost": "warn",
    "confirmed": "good",
    "contradicted": "warn",
    "agrees": "good",
    "contradicts": "warn",
    "faster": "faster",
    "slower": "slower",
    "equivalent": "equivalent",
}
HEADINGS: Final = {"mean_work": "W", "load": "load", "depth": "depth", "workers": "workers"}


@dataclass(frozen=True, slots=True)
class Filled:
    """A column and how it is filled.

    Parameters
    ----------
    column : Column
        Heading.
    fill : callable
        Gives its value of a finding.
    """

    column: Column
    fill: Fill


def subject_column(name: str) -> Filled:
    """Give the column of a part of the subject, sorted by value where it is a number."""
    heading = HEADINGS.get(name, name.replace("_", " "))
    is_number = name in {"mean_work", "depth", "workers"}

    def fill(finding: Finding) -> Value:
        text = finding.subject.get(name, "")
        return Value(text, float(text) if text.isdecimal() else None)

    return Filled(Column(heading, is_number=is_number), fill)


def contender_column() -> Filled:
    """Give the column of the strategy with its lock."""
    return Filled(
        Column("strategy"), lambda finding: Value(contender_of(finding.subject), finding=finding.id)
    )


def verdict_column(heading: str = "verdict") -> Filled:
    """Give the column of the verdict."""
    return Filled(
        Column(heading),
        lambda finding: Value(finding.verdict, tone=TONES.get(finding.verdict, ""), finding=finding.id),
    )


def estimate_column(role: str, heading: str = "", explanation: str = "") -> Filled:
    """Give the column of an estimate with its unit."""
    column = Column(heading or role.replace("_", " "), is_number=True, explanation=explanation)
    return Filled(column, lambda finding: _rounded_value(finding, role))


def plain_column(role: str, heading: str, explanation: str = "") -> Filled:
    """Give the column of an estimate as a number, of four digits where no interval says how many."""

    def fill(finding: Finding) -> Value:
        estimate = finding.estimates[role]
        has_interval = estimate.low is not None and estimate.unit == "ratio"
        return _rounded_value(finding, role) if has_interval else number_value(finding, role)

    return Filled(Column(heading, is_number=True, explanation=explanation), fill)


def interval_column(role: str) -> Filled:
    """Give the column of an interval."""
    return _limits_column(role, rounded_interval)


def _limits_column(role: str, written: Callable[[Estimate], str]) -> Filled:
    """Give the column of an interval without its level, which stands in the heading."""

    def fill(finding: Finding) -> Value:
        estimate = finding.estimates[role]
        if estimate.low is None or estimate.high is None:
            return Value("none", finding=finding.id)
        doubt = "" if estimate.guaranteed else f" {DOUBT}"
        limits = written(estimate).removeprefix(f"{level_text(estimate)} ").partition(",")[0]
        return Value(f"{limits}{doubt}", finding=finding.id)

    return Filled(Column("95 % interval"), fill)


def _rounded_value(finding: Finding, role: str) -> Value:
    estimate = finding.estimates[role]
    return Value(rounded(estimate), estimate.value, finding=finding.id)


def change_interval_column(role: str) -> Filled:
    """Give the column of an interval of a ratio, as differences from one."""
    return _limits_column(role, rounded_change_interval)


def fact_column(name: str, heading: str = "", *, is_number: bool = False, explanation: str = "") -> Filled:
    """Give the column of a fact."""

    def fill(finding: Finding) -> Value:
        value = finding.facts[name]
        if value is None:
            return Value(NOT_AVAILABLE)
        number = float(value) if isinstance(value, int | float) else None
        return Value(f"{value:.4g}" if isinstance(value, float) else str(value), number)

    title = heading or name.replace("_", " ")
    return Filled(Column(title, is_number=is_number, explanation=explanation), fill)


def identity_columns(chosen: Sequence[Finding]) -> list[Filled]:
    """Give the columns that tell the curves of some findings apart."""
    if not chosen or "strategy" not in chosen[0].subject:
        return [
            subject_column(name)
            for name in IDENTITY
            if len({finding.subject[name] for finding in chosen if name in finding.subject}) > 1
        ]
    return [*(subject_column(name) for name in ("load", "mean_work", "depth")), contender_column()]


def table_of(  # noqa: PLR0913 - a table by its parts
    chosen: Sequence[Finding],
    columns: Sequence[Filled],
    *,
    name: str,
    title: str,
    note: str = "",
    is_key: bool = False,
    summary: str = "",
) -> Table | None:
    """Give a table of findings; nothing where there are none."""
    if not chosen:
        return None
    rows = tuple(tuple(each.fill(finding) for each in columns) for finding in chosen)
    is_doubtful = any(value.text.endswith(f" {DOUBT}") for row in rows for value in row)
    return Table(
        id=name,
        title=title,
        columns=tuple(each.column for each in columns),
        rows=rows,
        note=" ".join(filter(None, (note, DOUBT_NOTE if is_doubtful else ""))),
        file=f"tables/{FILES.get(chosen[0].claim, name)}.csv",
        is_key=is_key,
        summary=summary or counted(finding.verdict for finding in chosen),
    )


def speedup_table(findings: FindingSet, *, is_key: bool) -> Table | None:
    """Give one row per point of each curve."""
    chosen = findings.of("speedup")
    has_rates = bool(chosen) and "rate" in chosen[0].estimates
    columns = [
        *identity_columns(chosen),
        subject_column("workers"),
        estimate_column("speedup", "speed-up"),
        interval_column("speedup"),
        estimate_column("shy", "shy", "how far the speed-up stays below the number of workers"),
        *_where_known(chosen, "cores_used", "cores used", "CPU time over wall time"),
        *_where_known(chosen, "machine", "machine", "speed-up of as many threads that share nothing"),
        *_where_known(chosen, "serial_fraction", "serial fraction", "of this point alone, by Karp and Flatt"),
        *([estimate_column("rate", "rate", "median of the trials")] if has_rates else []),
        Filled(
            Column("crowd"),
            lambda finding: Value("more than cores" if finding.facts["oversubscribed"] else ""),
        ),
        verdict_column(),
    ]
    return table_of(chosen, columns, name="speedup", title="Speed-up by workers", is_key=is_key)


def _where_known(chosen: Sequence[Finding], role: str, heading: str, explanation: str) -> list[Filled]:
    """Give the column of an estimate that at least one finding has."""
    is_known = any(role in each.estimates and each.estimates[role].value is not None for each in chosen)
    return [estimate_column(role, heading, explanation)] if is_known else []


def choice_table(findings: FindingSet) -> Table | None:
    """Give one row per load, work and depth, the fastest contenders by number of workers."""
    most = max(map(_contenders, findings.of("choice")), default=0)
    chosen = [finding for finding in findings.of("choice") if _contenders(finding) == most]
    if not chosen:
        return None
    rows: dict[tuple[str, str, str], dict[str, Finding]] = defaultdict(dict)
    for finding in chosen:
        of = finding.subject
        rows[of["load"], of["mean_work"], of["depth"]][of["workers"]] = finding
    workers = sorted({finding.subject["workers"] for finding in chosen}, key=int)
    shortened = _single_lock(findings)
    crowded = {finding.subject["workers"] for finding in chosen if finding.facts["oversubscribed"]}
    return Table(
        id="choices",
        title="The fastest strategy, by load, work and workers",
        columns=(
            Column("load"),
            Column("W", is_number=True, explanation="mean iterations per packet"),
            Column("depth", is_number=True),
            *(
                Column(
                    f"{count} {'worker' if count == '1' else 'workers'}",
                    unit="more than cores" if count in crowded else "",
                )
                for count in workers
            ),
        ),
        rows=tuple(
            (
                Value(load),
                Value(work, float(work)),
                Value(depth, float(depth)),
                *(_choice(there.get(count), shortened) for count in workers),
            )
            for (load, work, depth), there in rows.items()
        ),
        note="Below the fastest: those that may be as fast, within the margin. Combinations in which not "
        "every "
        "strategy took part are left out.",
        file="tables/choices.csv",
        summary=f"{len(rows)} rows",
    )


_NAMED: Final = 1


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


def recommendation_table(findings: FindingSet) -> Table | None:
    """Give one row per situation: what to use, what is not certainly slower, what comes last."""
    columns = [
        *(subject_column(name) for name in ("load", "depth", "crowd")),
        Filled(Column("use"), _use),
        Filled(Column("not certainly slower", is_prose=True), lambda f: Value(str(f.facts["as_good_text"]))),
        change_column("over_lock_free", "against LockFree"),
        change_interval_column("over_lock_free"),
        fact_column("worst", "lowest score"),
        estimate_column("worst_score", "its share of the highest"),
        interval_column("worst_score"),
    ]
    note = "Score: geometric mean, over all work and workers of the situation, of rate over the best rate."
    return table_of(
        findings.of("recommendation"),
        columns,
        name="recommendations",
        title="What to use in which situation",
        note=note,
    )


def hypothesis_table(findings: FindingSet) -> Table | None:
    """Give one row per hypothesis of the plan."""

    def measured(finding: Finding) -> Value:
        estimate = finding.estimates.get("measured")
        if estimate is None or estimate.value is None:
            return Value(NOT_AVAILABLE)
        note = rounded_interval(estimate) if estimate.low is not None else ""
        return Value(rounded(estimate), estimate.value, note=note, finding=finding.id)

    columns = [
        Filled(Column("expected, and why", is_prose=True), lambda finding: Value(finding.subject["text"])),
        fact_column("expected", "range"),
        Filled(Column("measured", is_number=True), measured),
        verdict_column("answer"),
    ]
    return table_of(
        findings.of("hypothesis"),
        columns,
        name="hypotheses",
        title="Expected before, found after",
        is_key=True,
    )


def claim_table(findings: FindingSet) -> Table | None:
    """Give one row per number of the source's text, those that its data contradict first."""
    chosen = sorted(findings.of("source_claim"), key=lambda finding: finding.verdict == "agrees")
    columns = [
        subject_column("section"),
        Filled(Column("claim", is_prose=True), lambda finding: Value(finding.subject["text"])),
        fact_column("printed", is_number=True),
        fact_column("recomputed_digits", "recomputed", is_number=True),
        verdict_column(),
        Filled(Column("where it comes from", is_prose=True), lambda f: Value(str(f.facts["note"]))),
    ]
    return table_of(chosen, columns, name="source_claims", title="The source's numbers, computed again")


def change_column(role: str, heading: str) -> Filled:
    """Give the column of a ratio as a signed difference from one."""

    def fill(finding: Finding) -> Value:
        estimate = finding.estimates[role]
        return Value(rounded_change(estimate), estimate.value, finding=finding.id)

    return Filled(Column(heading, is_number=True), fill)
