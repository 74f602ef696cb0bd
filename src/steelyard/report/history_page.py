"""The page of a history of results: which series changed, where, by how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.analyse.history import segments_of
from steelyard.model.finding import Estimate, Finding
from steelyard.report.charts.history import levels_over_results
from steelyard.report.dataset import dataset
from steelyard.report.page import Column, Figure, Page, Section, Table, Value
from steelyard.report.sentence import Phrasing
from steelyard.report.slots import change_interval, signed_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.history import Change, SeriesHistory
    from steelyard.analyse.result_series import ResultSeries
    from steelyard.report.dataset import Scalar

    Followed = tuple[ResultSeries, SeriesHistory]

MOST_SERIES: Final = 40
MOST_POINTS: Final = 5000
PHRASING: Final = Phrasing(
    {
        "history": {
            "*": "{facts.series} of {facts.all_series} series over {facts.results} results changed, of which "
            "{facts.slower} are slower now than before"
        },
        "change": {
            "*": "{subject.series} became {verdict} at {subject.result}: {estimates.ratio:signed}, "
            "{estimates.ratio:change_interval}"
        },
    }
)


def history_page(followed: Sequence[Followed], margin: float) -> Page:
    """Give the page of a history.

    Parameters
    ----------
    followed : sequence of (ResultSeries, SeriesHistory)
        At least one.
    margin : float
        Largest relative difference that counts as none.
    """
    ordered = sorted(followed, key=lambda each: not each[1].changes)
    changes = [_finding(series, change) for series, found in ordered for change in found.changes]
    summary = _summary(ordered)
    blocks = (_figure(ordered), *((_table(changes),) if changes else ()))
    lead = (
        f"Changes of more than {100 * margin:g} % between neighbouring levels; the orange lines are levels."
    )
    findings = {finding.id: finding for finding in (summary, *changes)}
    return Page(
        study="history",
        question="Where does a history of results change?",
        about=(("results", str(max(series.values.size for series, _ in followed))),),
        answer=(PHRASING.say(summary), *PHRASING.say_all(changes[:6])),
        cards=(),
        notices=(),
        sections=(Section("series", "Series", lead, blocks),),
        findings=findings,
    )


def name_of(series: ResultSeries) -> str:
    """Give the name of a series: its levels and its metric."""
    levels = ", ".join(value for key, value in series.subject.items() if key != "metric" and value)
    return f"{levels} {series.subject['metric']}".strip()


def direction_of(series: ResultSeries, change: Change) -> str:
    """Give ``slower`` or ``faster``; for rates, less is slower."""
    return "slower" if (change.ratio > 1) is not series.is_rate else "faster"


def is_newest_slower(followed: Followed) -> bool:
    """Tell whether the newest level is slower than the one before; changes inside the margin are none."""
    series, found = followed
    return bool(found.changes) and direction_of(series, found.changes[-1]) == "slower"


def _summary(followed: Sequence[Followed]) -> Finding:
    facts: dict[str, str | int | float | bool | None] = {
        "series": sum(bool(found.changes) for _, found in followed),
        "all_series": len(followed),
        "results": max(series.values.size for series, _ in followed),
        "slower": sum(map(is_newest_slower, followed)),
    }
    return Finding("history", "history", {}, "followed", facts=facts)


def _finding(series: ResultSeries, change: Change) -> Finding:
    has_interval = math.isfinite(change.low) and math.isfinite(change.high)
    ratio = Estimate(
        change.ratio,
        "ratio",
        "geometric means of neighbouring levels, given the place of the change",
        change.low if has_interval else None,
        change.high if has_interval else None,
        0.95 if has_interval else None,
        series.values.size,
        series.values.size,
        guaranteed=False,
    )
    name, label = name_of(series), series.labels[change.position]
    return Finding(
        f"change/{name}/{change.position}",
        "change",
        {"series": name, "result": label},
        direction_of(series, change),
        {"ratio": ratio},
        {"position": change.position + 1, "p_value": change.p_value},
    )


def _table(changes: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            Value(finding.subject["series"], finding=finding.id),
            Value(finding.subject["result"]),
            Value(
                signed_change(finding.estimates["ratio"].value or math.nan), finding.estimates["ratio"].value
            ),
            Value(change_interval(finding.estimates["ratio"]).removeprefix("95 % interval ")),
            Value(finding.verdict, tone=finding.verdict),
            Value(f"{finding.facts['p_value']:.2g}", float(finding.facts["p_value"] or 0)),
        )
        for finding in changes
    )
    numbers = {"change": True, "p": True}
    names = ("series", "result", "change", "95 % interval", "verdict", "p")
    columns = tuple(Column(name, is_number=numbers.get(name, False)) for name in names)
    return Table("changes", "Changes", columns, rows, is_key=True, summary=f"{len(changes)} changes")


def _figure(followed: Sequence[Followed]) -> Figure:
    """Draw the series that changed first, as many as a page bears."""
    points: list[dict[str, Scalar]] = []
    levels: list[dict[str, Scalar]] = []
    names: list[str] = []
    for series, found in followed[:MOST_SERIES]:
        if names and len(points) + series.values.size > MOST_POINTS:
            break
        segments = segments_of(found, series.values.size)
        first = float(series.values[slice(*segments[0])].mean())
        percent = 100 * series.values / first
        name = name_of(series)
        names.append(name)
        points += [
            {"series": name, "order": place + 1, "result": label, "percent": float(value)}
            for place, (label, value) in enumerate(zip(series.labels, percent, strict=True))
        ]
        for begin, end in segments:
            level = float(percent[begin:end].mean())
            meaning = f"results {begin + 1} to {end}: {level:.4g} %"
            levels.append(
                {"series": name, "begin": begin + 1, "end": end, "percent": level, "meaning": meaning}
            )
    left_out = len(followed) - len(names)
    rest = f" {left_out} series without room here are in the JSON output." if left_out else ""
    return Figure(
        id="history",
        title="Values by result, and the levels between changes",
        caption=f"How to read it: one point per result; a line that ends is a level that ended.{rest}",
        alternative="Points of the values of a chosen series by result, with a line for each level",
        spec=levels_over_results(names),
        datasets={"points": dataset(points), "levels": dataset(levels)},
    )
