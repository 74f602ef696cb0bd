"""Figures of the report of imported results: differences, or means, with their intervals."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.charts.forest import (
    MOST_ROWS,
    as_percent,
    forest,
    forest_row,
    found_tones,
    labelled_rows,
    more_rows,
    percents,
)
from steelyard.report.charts.parts import WIDE_SPAN, difference, is_wide, numeric
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.units import SECONDS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet

RATIO_TONES: Final = {"slower": "bad", "faster": "better", "equivalent": "good", "inconclusive": "open"}
DECISIVE: Final = ("slower", "faster", "different")
SMALL_PERCENT: Final = 1.0


def opening_figure(findings: FindingSet) -> Figure | None:
    """Give the differences of alternatives; where none are compared, the means."""
    return _differences(findings.of("comparison")) or _means(findings.of("cell"))


def _differences(compared: Sequence[Finding]) -> Figure | None:
    chosen = [each for each in compared if each.estimates["ratio"].value is not None]
    if not chosen:
        return None
    chosen.sort(key=lambda each: each.verdict not in DECISIVE)
    rows = labelled_rows(
        [
            forest_row(
                _pair(each, chosen),
                each.verdict,
                as_percent(each.estimates["ratio"].value),
                percents(each.estimates["ratio"]),
            )
            for each in chosen
        ]
    )
    sizes = [abs(float(row["value"] or 0)) for row in rows]
    is_log = max(sizes) > WIDE_SPAN * max(min(sizes), SMALL_PERCENT)
    return Figure(
        id="differences",
        title="Each alternative against the first",
        caption="A line is the interval of a difference; one that does not reach zero is a difference."
        + (" The axis is logarithmic beyond one percent." if is_log else "")
        + more_rows(len(chosen)),
        alternative="Differences with their intervals, a row per comparison",
        spec=forest(
            rows,
            found_tones(RATIO_TONES, rows),
            difference("value", "difference to the first [%]", SMALL_PERCENT if is_log else None),
        ),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _pair(finding: Finding, all_of_them: Sequence[Finding]) -> str:
    """Name a comparison by its sides and by what tells it from others."""
    subject = finding.subject
    others = [
        value
        for key, value in subject.items()
        if key not in {"first", "second", "family"}
        and len({each.subject.get(key) for each in all_of_them}) > 1
    ]
    return ", ".join([f"{subject['second']} / {subject['first']}", *filter(None, others)])


def _means(cells: Sequence[Finding]) -> Figure | None:
    """Give the means of the metric that most cells have, in its unit."""
    measured = [each for each in cells if each.estimates["mean"].value is not None]
    if not measured:
        return None
    kinds = Counter((each.subject.get("metric", ""), each.estimates["mean"].unit) for each in measured)
    (metric, unit), _ = kinds.most_common(1)[0]
    chosen = [
        each
        for each in measured
        if each.subject.get("metric", "") == metric and each.estimates["mean"].unit == unit
    ]
    varied = [
        key
        for key in chosen[0].subject
        if key == "workload" or len({each.subject.get(key) for each in chosen}) > 1
    ]
    shown_unit, factor = _unit_of_axis(unit, [each.estimates["mean"].value or 0.0 for each in chosen])
    rows = labelled_rows(
        [
            forest_row(
                ", ".join(filter(None, (each.subject.get(key, "") for key in varied))),
                each.verdict,
                factor * mean.value,
                (
                    None if mean.low is None else factor * mean.low,
                    None if mean.high is None else factor * mean.high,
                ),
            )
            for each in chosen
            if (mean := each.estimates["mean"]).value is not None
        ]
    )
    values = [
        float(str(row[key])) for row in rows for key in ("value", "low", "high") if row[key] is not None
    ]
    scale: dict[str, str | bool] = {"type": "log"} if is_wide(values) else {"zero": False}
    tones = dict.fromkeys(dict.fromkeys(str(row["verdict"]) for row in rows), "plain")
    return Figure(
        id="means",
        title=f"Mean {metric} of each cell",
        caption="A point is a mean, a line its interval."
        + (" The axis is logarithmic." if "type" in scale else "")
        + more_rows(len(chosen)),
        alternative="Means with their intervals, a row per cell",
        spec=forest(rows, tones, numeric("value", f"mean {metric} [{shown_unit}]", "x", **scale), at=None),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _unit_of_axis(unit: str, values: Sequence[float]) -> tuple[str, float]:
    """Give the unit in which times are short numbers, and what they are multiplied by for it."""
    if unit not in SECONDS_PER_UNIT:
        return unit, 1.0
    largest_s = max(map(abs, values), default=0.0) * SECONDS_PER_UNIT[unit]
    shown = next((name for name in ("s", "ms", "us") if largest_s >= SECONDS_PER_UNIT[name]), "ns")
    return shown, SECONDS_PER_UNIT[unit] / SECONDS_PER_UNIT[shown]
