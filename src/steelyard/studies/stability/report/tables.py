"""Tables of the stability report that compare isolations: classes, verdicts, shifts, all at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.fills import (
    OPEN_TONES,
    estimate,
    fact,
    of,
    pivoted,
    shared,
    subject,
    subjects,
    verdict,
    word,
)
from steelyard.report.page import Value
from steelyard.report.slots import NOT_AVAILABLE, change_interval, interval, level_text, signed_change, write
from steelyard.report.table_spec import TableSpec, number, prose, text
from steelyard.studies.stability.report.data import setup_order
from steelyard.studies.stability.report.messages import (
    class_counts_message,
    comparison_message,
    disagreement_message,
    filled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.page import Table
    from steelyard.report.table_spec import ColumnSpec

PAIR_COLUMNS: Final = 6
"""More pairs than this are listed in rows instead of columns."""

_CLASS_NOTE: Final = (
    "Large: the class of the published rule (0.95 percentile bootstrap intervals of all iterations pooled; "
    "first against second). Small: Steelyard's verdict of second against first, which takes the clustering "
    "of iterations in workers and the relevance of the difference into account."
)


def comparison_table(findings: FindingSet, claim: str, family: str, title: str) -> Table | None:
    """Give a table of the published four-way classes with Steelyard's verdict below each.

    It has a column per pair, or a row per pair when there are many; ``None`` without findings.
    """
    chosen = [finding for finding in findings.of(claim) if finding.subject["family"] == family]
    pairs = list(dict.fromkeys(map(_pair, chosen)))
    in_order = sorted(chosen, key=lambda each: (*_place(each), pairs.index(_pair(each))))
    name, said = f"{claim}_{family}", comparison_message(chosen)
    if len(pairs) > PAIR_COLUMNS:
        columns = (*subjects("setup", "workload", "first", "second"), text("class", _class))
        spec = TableSpec(name, title, columns, _CLASS_NOTE, file=claim, summary=lambda _: said)
        return spec.build(in_order)
    keys = ("setup", "workload")
    by_pair = (*(text(key, shared(subject(key))) for key in keys), *map(_class_of, pairs))
    pivot = TableSpec(name, title, by_pair, _CLASS_NOTE, file=claim, summary=lambda _: said)
    return pivot.build(pivoted(in_order, keys, _pair))


def _pair(finding: Finding) -> str:
    return f"{finding.subject['first']} vs {finding.subject['second']}"


def _place(finding: Finding) -> tuple[tuple[bool, str, int], str]:
    return setup_order(finding.subject["setup"]), finding.subject["workload"]


def _class_of(pair: str) -> ColumnSpec[Mapping[str, Finding]]:
    """Give the column of a pair; what was not compared is NA, in the colour of that class."""
    return text(pair, lambda row: _class(row[pair]) if pair in row else Value(NOT_AVAILABLE, tone="na"))


def _class(finding: Finding) -> Value:
    name = str(finding.facts["class_percentile"])
    ratio = finding.estimates.get("ratio")
    size = f", {signed_change(ratio.value)}" if ratio is not None and ratio.value is not None else ""
    # The class is that of the first side, the verdict that of the second.
    second = finding.subject["second"]
    note = "" if finding.verdict == NOT_AVAILABLE else f"{second} {finding.verdict}{size}"
    tone = "differs" if finding.facts.get("disagreement") else ""
    return Value(name, tone=name.lower(), note=note, note_tone=tone, finding=finding.id)


def disagreement_table(findings: FindingSet) -> Table | None:
    """Give the comparisons where the published class and Steelyard's verdict differ, with the reason."""
    claims = ("mean_comparison", "sd_comparison", "median_comparison", "mad_comparison", "cv_comparison")
    compared = [finding for claim in claims for finding in findings.of(claim)]

    def statistic(finding: Finding) -> Value:
        return Value(finding.subject.get("statistic", finding.claim.partition("_")[0]))

    def published(finding: Finding) -> Value:
        name = str(finding.facts["class_percentile"])
        return Value(name, tone=name.lower())

    columns = (
        text("statistic", statistic),
        *subjects("setup", "workload"),
        text("first vs second", lambda finding: Value(_pair(finding))),
        text("published class", published),
        text("verdict", verdict(OPEN_TONES)),
        prose("why they differ", word("disagreement")),
    )
    return TableSpec(
        "disagreements",
        "Where the published rule and Steelyard's verdict disagree",
        columns,
        file=None,
        summary=lambda rows: disagreement_message(rows, len(compared)),
    ).build([finding for finding in compared if finding.facts.get("disagreement")])


CLASS_COUNTS: Final = TableSpec(
    "class_counts",
    "Table 6. Workloads per class, for every pair that was compared",
    (
        text("statistic", subject("statistic")),
        text("interval", subject("published")),
        text("setup", subject("setup")),
        text("first vs second", lambda finding: Value(_pair(finding))),
        *(number(name, fact(name)) for name in ("higher", "lesser", "same", "overlap", "NA")),
    ),
    "Pairs with `-taskset` and the like compare workers bound to CPUs with unbound ones.",
    file=None,
    summary=class_counts_message,
)
"""Table 6: how many workloads fall into each class."""


def shift_table(findings: FindingSet) -> Table | None:
    """Give the shift of the mean of each isolation."""
    chosen = findings.of("location_shift")
    levels = (
        level_text(one.estimates["ratio"]) for one in chosen if one.estimates["ratio"].level is not None
    )
    level = next(levels, "interval")

    def limits(finding: Finding) -> Value:
        return Value(change_interval(finding.estimates["ratio"]).replace(f"{level} ", ""))

    columns = (
        *subjects("isolation", "baseline"),
        number("difference", estimate("ratio", "signed")),
        text(level, limits),
        text("verdict", lambda finding: Value(finding.verdict, tone=finding.verdict)),
    )
    title = "Shift of the mean CPU time against the baseline, one worker"
    return TableSpec("location_shift", title, columns, file=None).build(chosen)


def glance_table(findings: FindingSet) -> Table | None:
    """Give workers, least steady cell, shift of the mean and trusted clocks of each isolation."""
    chosen = {finding.subject["isolation"]: finding for finding in findings.of("recommended_workers")}
    if not chosen:
        return None
    shifts = {finding.subject["isolation"]: finding for finding in findings.of("location_shift")}
    trusts = {
        (finding.subject["isolation"], finding.subject["clock"]): finding
        for finding in findings.of("clock_trust")
    }

    def trust(clock: str) -> ColumnSpec[Finding]:
        return number(
            clock,
            of(lambda each: trusts.get((each.subject["isolation"], f"outside-{clock}")), _trust),
            f"workers up to which the outside {'CPU' if clock == 'cpu' else clock} clock is trusted",
        )

    def shift(finding: Finding) -> Value:
        found = shifts.get(finding.subject["isolation"])
        return Value("-") if found is None else _shift(found)

    baseline = next((finding.subject["baseline"] for finding in shifts.values()), "the baseline")
    tolerance = write(next(iter(chosen.values())).facts["tolerance_percent"], "percent")
    return TableSpec(
        "glance",
        f"Each isolation at a glance, tolerance {tolerance}",
        (
            text("isolation", subject("isolation")),
            number("workers", _workers),
            text("least steady there", _steadiness),
            text(f"time vs {baseline}", shift, "mean CPU time of one worker"),
            trust("cpu"),
            trust("wall"),
        ),
        "Workers: the most at which every program scatters by no more than the tolerance, with its "
        "whole interval; undecided where an interval reaches beyond it with one worker already, none where "
        "a whole interval lies beyond. cpu, wall: workers up to which the error of that outside clock "
        "stays within the tolerance.",
        file=None,
        is_key=True,
    ).build(list(chosen.values()))


def _workers(finding: Finding) -> Value:
    workers = finding.estimates["workers"].value
    if not workers:
        tone = "bad" if finding.verdict == "none" else "warn"
        return Value(finding.verdict, 0.0, tone=tone, finding=finding.id)
    return Value(f"{workers:g}", workers, finding=finding.id)


def _steadiness(finding: Finding) -> Value:
    role = "worst" if finding.estimates["workers"].value else "limiting"
    found = finding.estimates[role]
    if found.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    said = filled(f"{{facts.{role}_workload}} {{estimates.{role}}}", finding)
    limits = interval(found).replace(f"{level_text(found)} ", "")
    return Value(said, found.value, note=limits, finding=finding.id)


def _shift(finding: Finding) -> Value:
    ratio = finding.estimates["ratio"]
    if ratio.value is None:
        return Value(NOT_AVAILABLE, finding=finding.id)
    limits = change_interval(ratio).replace(f"{level_text(ratio)} ", "")
    said = f"{signed_change(ratio.value)} {finding.verdict}"
    return Value(said, ratio.value, note=limits, finding=finding.id)


def _trust(finding: Finding) -> Value:
    limit = finding.facts["trusted_up_to_workers"]
    if not isinstance(limit, int | float) or not limit:
        return Value("none", 0.0, tone="warn", finding=finding.id)
    return Value(f"{limit:g}", float(limit), finding=finding.id)
