"""The page of a history of revisions: which benchmarks changed, where, by how much."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.model.finding import Estimate, Finding
from steelyard.report.charts.history import levels_over_results
from steelyard.report.charts.parts import log_note
from steelyard.report.dataset import dataset
from steelyard.report.page import Column, Figure, Page, Section, Table, Value
from steelyard.report.sentence import Phrasing
from steelyard.report.slots import change_interval, signed_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.series.chain import Window
    from steelyard.report.dataset import Scalar
    from steelyard.studies.comparison.revision_history import Followed

MOST_SERIES: Final = 40
MOST_POINTS: Final = 40_000
"""Points of a figure that a browser still draws at once."""
_FARTHEST: Final = 50.0
"""Logarithm of the largest level that is drawn."""
PHRASING: Final = Phrasing(
    {
        "history": {
            "*": "{facts.series} of {facts.all_series} benchmarks over {facts.revisions} revisions changed, "
            "of which {facts.slower} are slower now than the level to hold"
        },
        "change": {
            "*": "{subject.series} became {verdict} {subject.place}: {estimates.ratio:signed}, "
            "{estimates.ratio:change_interval}"
        },
    }
)


def revision_page(found: Sequence[Followed], level: float) -> Page:
    """Give the page of a history of revisions.

    Parameters
    ----------
    found : sequence of Followed
        At least one.
    level : float
        Coverage of all intervals together.
    """
    ordered = sorted(found, key=lambda each: (not each.is_slower, not each.changes))
    changes = [_finding(each, change, level) for each in ordered for change in each.changes]
    facts: dict[str, str | int | float | bool | None] = {
        "series": sum(bool(each.changes) for each in found),
        "all_series": len(found),
        "revisions": max(len(each.series.revisions) for each in found),
        "slower": sum(each.is_slower for each in found),
    }
    summary = Finding("history", "history", {}, "followed", facts=facts)
    lead = "The narrowest windows within which a level changed for sure; their intervals hold together."
    return Page(
        study="history",
        question="Where do the benchmarks of a project change?",
        about=(("revisions", str(facts["revisions"])),),
        answer=(PHRASING.say(summary), *PHRASING.say_all(changes[:6])),
        cards=(),
        notices=(),
        sections=(Section("changes", "Changes", lead, (_table(changes),)),) if changes else (),
        findings={finding.id: finding for finding in (summary, *changes)},
        figure=_figure(ordered),
        has_files=False,
    )


def _finding(each: Followed, change: Window, level: float) -> Finding:
    ratio = Estimate(
        change.ratio,
        "ratio",
        "least squares over the ratios of jobs",
        change.low,
        change.high,
        level,
        len(each.series.links),
        len(each.series.links),
        guaranteed=False,
    )
    place = each.place_of(change)
    return Finding(
        f"change/{each.name}/{change.first}",
        "change",
        {"series": each.name, "place": place},
        each.word_of(change),
        {"ratio": ratio},
    )


def _table(changes: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            Value(finding.subject["series"], finding=finding.id),
            Value(finding.subject["place"].replace("`", "")),
            Value(
                signed_change(finding.estimates["ratio"].value or math.nan), finding.estimates["ratio"].value
            ),
            Value(change_interval(finding.estimates["ratio"])),
            Value(finding.verdict, tone=finding.verdict),
        )
        for finding in changes
    )
    names = ("benchmark", "where", "change", "interval", "verdict")
    columns = tuple(Column(name, is_number=name == "change") for name in names)
    return Table("changes", "Changes", columns, rows, is_key=True, summary=f"{len(changes)} changes")


def _figure(found: Sequence[Followed]) -> Figure:
    """Draw the benchmarks that changed first, as many as a page bears."""
    points: list[dict[str, Scalar]] = []
    levels: list[dict[str, Scalar]] = []
    longest = max(len(each.series.revisions) for each in found)
    for each in found[: min(MOST_SERIES, max(MOST_POINTS // longest, 1))]:
        percent = [100 * math.exp(max(min(value, _FARTHEST), -_FARTHEST)) for value in each.chain.levels]
        for place, (revision, value) in enumerate(zip(each.series.revisions, percent, strict=True)):
            error = min(float(each.own_errors[place]), _FARTHEST)
            points.append(
                {
                    "series": each.name,
                    "order": place + 1,
                    "result": revision.short,
                    "percent": value,
                    "low": value * math.exp(-error),
                    "high": value * math.exp(error),
                }
            )
        ends = [0, *(change.second for change in each.changes), len(percent)]
        for begin, end in pairwise(ends):
            level = math.exp(sum(map(math.log, percent[begin:end])) / (end - begin))
            meaning = f"revisions {begin + 1} to {end}: {level:.4g} %"
            levels.append(
                {"series": each.name, "begin": begin + 1, "end": end, "percent": level, "meaning": meaning}
            )
    names = list(dict.fromkeys(str(row["series"]) for row in points))
    left_out = len(found) - len(names)
    rest = f" {left_out} benchmarks without room here are in the JSON output." if left_out else ""
    views = [
        [float(row[key] or 0) for row in points if row["series"] == name for key in ("low", "high")]
        for name in names
    ]
    return Figure(
        id="history",
        title="Levels by revision, and where they changed",
        caption="One point per revision, the first is 100 %; its bar is the standard error of the step from "
        "the revision before it. A line that ends is a level that ended." + log_note(views) + rest,
        alternative="Points of the level of a chosen benchmark by revision, with a line for each level",
        spec=levels_over_results(names, views, of="revision", base="first revision", has_intervals=True),
        datasets={"points": dataset(points), "levels": dataset(levels)},
    )
