"""Tables of the stability report that compare: published classes, verdicts, shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.page import Column, Table, Value
from steelyard.report.slots import NOT_AVAILABLE, change_interval, level_text, signed_change
from steelyard.studies.report_values import change_value, fact_value
from steelyard.studies.stability.report_data import setup_order
from steelyard.studies.stability.report_messages import (
    class_counts_message,
    comparison_message,
    disagreement_message,
)
from steelyard.studies.stability.report_values import TABLE_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet

PAIR_COLUMNS: Final = 6
"""More pairs than this are listed in rows instead of columns."""


def comparison_table(findings: FindingSet, claim: str, family: str, title: str) -> Table | None:
    """Give a table of the published four-way classes with Steelyard's verdict below each.

    Parameters
    ----------
    findings : FindingSet
        All findings.
    claim : str
        ``mean_comparison`` or ``sd_comparison``.
    family : str
        ``isolation``, ``sandbox`` or ``affinity``.
    title : str
        Caption.

    Returns
    -------
    Table or None
        One column per pair, or one row per pair when there are many; ``None`` without findings.
    """
    chosen = [finding for finding in findings.of(claim) if finding.subject["family"] == family]
    if not chosen:
        return None
    pairs = list(dict.fromkeys((finding.subject["first"], finding.subject["second"]) for finding in chosen))
    build = _by_pair_columns if len(pairs) <= PAIR_COLUMNS else _by_pair_rows
    columns, rows = build(chosen, pairs)
    return Table(
        id=f"{claim}_{family}",
        title=title,
        columns=columns,
        rows=rows,
        note="Large: the class of the published rule (0.95 percentile bootstrap intervals of all "
        "iterations pooled; "
        "first against second). Small: Steelyard's verdict of second against first, which takes the "
        "clustering of "
        "iterations in workers and the relevance of the difference into account.",
        file=f"tables/{claim}.csv",
        summary=comparison_message(chosen),
    )


_Built = tuple[tuple[Column, ...], tuple[tuple[Value, ...], ...]]


def _by_pair_columns(chosen: Sequence[Finding], pairs: Sequence[tuple[str, str]]) -> _Built:
    cells: dict[tuple[str, str], dict[tuple[str, str], Finding]] = {}
    for finding in chosen:
        row = cells.setdefault((finding.subject["setup"], finding.subject["workload"]), {})
        row[finding.subject["first"], finding.subject["second"]] = finding
    ordered = sorted(cells, key=lambda key: (setup_order(key[0]), key[1]))
    rows = tuple(
        (Value(setup), Value(workload), *(_class_value(cells[setup, workload].get(pair)) for pair in pairs))
        for setup, workload in ordered
    )
    return (
        Column("setup"),
        Column("workload"),
        *(Column(f"{first} vs {second}") for first, second in pairs),
    ), rows


def _by_pair_rows(chosen: Sequence[Finding], pairs: Sequence[tuple[str, str]]) -> _Built:
    ordered = sorted(
        chosen,
        key=lambda finding: (
            setup_order(finding.subject["setup"]),
            finding.subject["workload"],
            pairs.index((finding.subject["first"], finding.subject["second"])),
        ),
    )
    rows = tuple(
        (
            Value(finding.subject["setup"]),
            Value(finding.subject["workload"]),
            Value(finding.subject["first"]),
            Value(finding.subject["second"]),
            _class_value(finding),
        )
        for finding in ordered
    )
    return tuple(Column(name) for name in ("setup", "workload", "first", "second", "class")), rows


def _class_value(finding: Finding | None) -> Value:
    if finding is None:
        return Value(NOT_AVAILABLE, tone="na")
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
    chosen = [
        finding for claim in claims for finding in findings.of(claim) if finding.facts.get("disagreement")
    ]
    if not chosen:
        return None
    rows = tuple(
        (
            Value(finding.subject.get("statistic", finding.claim.partition("_")[0])),
            Value(finding.subject["setup"]),
            Value(finding.subject["workload"]),
            Value(f"{finding.subject['first']} vs {finding.subject['second']}"),
            Value(
                str(finding.facts["class_percentile"]), tone=str(finding.facts["class_percentile"]).lower()
            ),
            Value(finding.verdict, tone=finding.verdict, finding=finding.id),
            Value(str(finding.facts["disagreement"])),
        )
        for finding in chosen
    )
    names = (
        "statistic",
        "setup",
        "workload",
        "first vs second",
        "published class",
        "verdict",
        "why they differ",
    )
    return Table(
        id="disagreements",
        title="Where the published rule and Steelyard's verdict disagree",
        columns=tuple(Column(name, is_prose=name == names[-1]) for name in names),
        rows=rows,
        summary=disagreement_message(chosen, sum(len(findings.of(claim)) for claim in claims)),
    )


def class_count_table(findings: FindingSet) -> Table | None:
    """Give table 6: how many workloads fall into each class, for every pair that was compared."""
    chosen = findings.of("class_counts")
    if not chosen:
        return None
    names = ("higher", "lesser", "same", "overlap", "NA")
    rows = tuple(
        (
            *(Value(finding.subject[key]) for key in ("statistic", "published", "setup")),
            Value(f"{finding.subject['first']} vs {finding.subject['second']}"),
            *(fact_value(finding, name) for name in names),
        )
        for finding in chosen
    )
    return Table(
        id="class_counts",
        title=f"Table {TABLE_NUMBERS['classes']}. Workloads per class, for every pair that was compared",
        columns=(
            *(Column(name) for name in ("statistic", "interval", "setup", "first vs second")),
            *(Column(name, is_number=True) for name in names),
        ),
        rows=rows,
        note="Pairs with `-taskset` and the like compare workers bound to CPUs with unbound ones.",
        summary=class_counts_message(chosen),
    )


def shift_table(findings: FindingSet) -> Table | None:
    """Give the shift of the mean of each isolation."""
    chosen = findings.of("location_shift")
    if not chosen:
        return None
    level = next(
        (level_text(one.estimates["ratio"]) for one in chosen if one.estimates["ratio"].level is not None),
        "interval",
    )
    rows = tuple(
        (
            Value(finding.subject["isolation"]),
            Value(finding.subject["baseline"]),
            change_value(finding, "ratio"),
            Value(change_interval(finding.estimates["ratio"]).replace(f"{level} ", "")),
            Value(finding.verdict, tone=finding.verdict),
        )
        for finding in chosen
    )
    return Table(
        id="location_shift",
        title="Shift of the mean CPU time against the baseline, one worker",
        columns=(
            Column("isolation"),
            Column("baseline"),
            Column("difference", is_number=True),
            Column(level),
            Column("verdict"),
        ),
        rows=rows,
    )
