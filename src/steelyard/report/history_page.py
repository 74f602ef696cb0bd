"""The page of a history of results: which series changed, where, by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from steelyard.analyse.series.held_level import seen_before, slowdown
from steelyard.analyse.series.history import segments_of
from steelyard.model.finding import Estimate, Finding
from steelyard.report.charts.history import levels_over_results
from steelyard.report.charts.parts import log_note
from steelyard.report.dataset import dataset
from steelyard.report.page import Column, Figure, Page, Section, Table, Value
from steelyard.report.sentence import Phrasing
from steelyard.report.slots import change_interval, signed_change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.series.history import Change, SeriesHistory
    from steelyard.analyse.series.result_series import ResultSeries
    from steelyard.record.accepted_levels import AcceptedLevel
    from steelyard.report.dataset import Scalar

MOST_SERIES: Final = 40
MOST_POINTS: Final = 5000
PHRASING: Final = Phrasing(
    {
        "history": {
            "*": "{facts.series} of {facts.all_series} series over {facts.results} results changed, of which "
            "{facts.slower} are slower now than the level to hold"
        },
        "change": {
            "*": "{subject.series} became {verdict} at {subject.result}: {estimates.ratio:signed}, "
            "{estimates.ratio:change_interval}"
        },
        "seen-before": {
            "*": "the newest level of {subject.series} is slower than the level to hold, but {facts.level}"
        },
        "suspect": {
            "*": "{subject.series} is suspect from {subject.result} on, which is not settled: "
            "{estimates.ratio:signed}, {estimates.ratio:change_interval}"
        },
    }
)


@dataclass(frozen=True, slots=True)
class Followed:
    """A series, what it does, and what that means.

    Parameters
    ----------
    series : ResultSeries
        The series.
    found : SeriesHistory
        Its changes.
    accepted : tuple of int
        Results whose level is accepted, from 0.
    slowdown : float or None
        Newest level over the one to hold, where it is slower by more than the margin.
    seen : tuple of int or None
        First and last result that were at that level before, from 0, where it came and went.
    """

    series: ResultSeries
    found: SeriesHistory
    accepted: tuple[int, ...]
    slowdown: float | None
    seen: tuple[int, int] | None = None

    @property
    def is_slower(self) -> bool:
        """Whether the newest level is slower, and new."""
        return self.slowdown is not None and self.seen is None

    @property
    def verdict(self) -> str:
        """Say whether it changes: ``changed``, ``suspect``, ``undecided`` or ``no change``."""
        if self.found.changes:
            return "changed"
        if self.found.suspect is not None:
            return "suspect"
        return "undecided" if self.found.is_undecidable else "no change"

    @property
    def seen_text(self) -> str:
        """Say which results were at the newest level before."""
        if self.seen is None:
            return ""
        first, last = self.seen
        labels = self.series.labels
        names = f"`{labels[first]}` to `{labels[last]}`"
        return f"a level that was seen before (results {first + 1} to {last + 1}, {names})"

    @classmethod
    def of(cls, series: ResultSeries, found: SeriesHistory, accepted: Sequence[int], margin: float) -> Self:
        """Judge a series."""
        slower = slowdown(found, accepted, is_rate=series.is_rate, margin=margin)
        seen = None
        if slower is not None:
            seen = seen_before(series.values, found, slower, accepted, is_rate=series.is_rate, margin=margin)
        return cls(series, found, tuple(accepted), slower, seen)


def history_page(followed: Sequence[Followed], margin: float) -> Page:
    """Give the page of a history.

    Parameters
    ----------
    followed : sequence of Followed
        At least one.
    margin : float
        Largest relative difference that counts as none.
    """
    ordered = sorted(followed, key=lambda each: (not each.found.changes, each.found.suspect is None))
    changes = [_finding("change", each.series, change) for each in ordered for change in each.found.changes]
    changes += [
        _finding("suspect", each.series, each.found.suspect)
        for each in ordered
        if each.found.suspect is not None
    ]
    summary = _summary(ordered)
    lead = (
        f"Changes of more than {100 * margin:g} % between neighbouring levels; the orange lines are levels."
    )
    seen = [_seen(each) for each in ordered if each.seen is not None]
    findings = {finding.id: finding for finding in (summary, *changes, *seen)}
    return Page(
        study="history",
        question="Where does a history of results change?",
        about=(("results", str(max(each.series.values.size for each in followed))),),
        answer=(PHRASING.say(summary), *PHRASING.say_all(changes[:6]), *PHRASING.say_all(seen[:6])),
        cards=(),
        notices=(),
        sections=(Section("series", "Series", lead, (_table(changes),)),) if changes else (),
        findings=findings,
        figure=_figure(ordered),
        has_files=False,
    )


def name_of(series: ResultSeries) -> str:
    """Give the name of a series: its levels and its metric."""
    levels = ", ".join(value for key, value in series.subject.items() if key != "metric" and value)
    return f"{levels} {series.subject['metric']}".strip()


def called(series: ResultSeries) -> tuple[str, ...]:
    """Give what people may call a series: its levels, and these with its metric, as it is printed."""
    name = name_of(series)
    return name.removesuffix(series.subject["metric"]).strip(), name


def places_of(accepted: Sequence[AcceptedLevel], series: ResultSeries) -> list[int]:
    """Give the results of a series whose level is accepted."""
    metric = series.subject["metric"]
    names = {level.result for level in accepted if level.is_for(metric, *called(series))}
    return [place for place, label in enumerate(series.labels) if label in names]


def direction_of(series: ResultSeries, change: Change) -> str:
    """Give ``slower`` or ``faster``; for rates, less is slower."""
    return "slower" if (change.ratio > 1) is not series.is_rate else "faster"


def _summary(followed: Sequence[Followed]) -> Finding:
    facts: dict[str, str | int | float | bool | None] = {
        "series": sum(bool(each.found.changes) for each in followed),
        "all_series": len(followed),
        "results": max(each.series.values.size for each in followed),
        "slower": sum(each.is_slower for each in followed),
    }
    return Finding("history", "history", {}, "followed", facts=facts)


def _seen(followed: Followed) -> Finding:
    name = name_of(followed.series)
    return Finding(
        f"seen-before/{name}", "seen-before", {"series": name}, "recurs", facts={"level": followed.seen_text}
    )


def _finding(kind: str, series: ResultSeries, change: Change) -> Finding:
    has_interval = math.isfinite(change.low) and math.isfinite(change.high)
    ratio = Estimate(
        change.ratio,
        "ratio",
        "new level over old one, over all places that the change may have",
        change.low if has_interval else None,
        change.high if has_interval else None,
        0.95 if has_interval else None,
        series.values.size,
        series.values.size,
        guaranteed=False,
    )
    name, label = name_of(series), series.labels[change.position]
    return Finding(
        f"{kind}/{name}/{change.position}",
        kind,
        {"series": name, "result": label},
        "suspect" if kind == "suspect" else direction_of(series, change),
        {"ratio": ratio},
        {
            "position": change.position + 1,
            "between": " to ".join(dict.fromkeys(series.labels[place] for place in change.places)),
            "p_value": change.p_value if math.isfinite(change.p_value) else None,
        },
    )


def _table(changes: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            Value(finding.subject["series"], finding=finding.id),
            Value(finding.subject["result"]),
            Value(str(finding.facts["between"])),
            Value(
                signed_change(finding.estimates["ratio"].value or math.nan), finding.estimates["ratio"].value
            ),
            Value(change_interval(finding.estimates["ratio"]).removeprefix("95 % interval ")),
            Value(finding.verdict, tone=finding.verdict),
            _p_value(finding.facts["p_value"]),
        )
        for finding in changes
    )
    numbers = {"change": True, "p": True}
    names = ("series", "result", "95 % place", "change", "95 % interval", "verdict", "p")
    columns = tuple(Column(name, is_number=numbers.get(name, False)) for name in names)
    return Table("changes", "Changes", columns, rows, is_key=True, summary=f"{len(changes)} changes")


def _p_value(value: object) -> Value:
    return Value(f"{value:.2g}", value) if isinstance(value, float) else Value("")


def _figure(followed: Sequence[Followed]) -> Figure:
    """Draw the series that changed first, as many as a page bears."""
    points: list[dict[str, Scalar]] = []
    levels: list[dict[str, Scalar]] = []
    names: list[str] = []
    for each in followed[:MOST_SERIES]:
        series, found = each.series, each.found
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
    views = [[float(row["percent"] or 0) for row in points if row["series"] == name] for name in names]
    return Figure(
        id="history",
        title="Values by result, and the levels between changes",
        caption="One point per result; a line that ends is a level that ended." + log_note(views) + rest,
        alternative="Points of the values of a chosen series by result, with a line for each level",
        spec=levels_over_results(names, views),
        datasets={"points": dataset(points), "levels": dataset(levels)},
    )
