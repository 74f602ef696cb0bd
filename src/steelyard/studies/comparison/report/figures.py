"""Figures of a comparison: ratios with the margin, runs in their order, distributions."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.report.charts.forest import (
    MOST_ROWS,
    as_percent,
    forest,
    forest_row,
    found_tones,
    labelled_rows,
    more_rows,
)
from steelyard.report.charts.parts import WIDE_SPAN, difference, log_note
from steelyard.report.charts.theme import assign_colours
from steelyard.report.charts.thin import MARKS_PER_CHART, envelope
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.analysis_parts import finite
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.replay import recorded_runs
from steelyard.studies.comparison.report.charts import distributions, run_sequence
from steelyard.studies.comparison.sample import REPORTED, is_outlier, values_of
from steelyard.studies.comparison.terms import MEASURE, Mode
from steelyard.units import NS_PER_S, SECONDS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.report.charts.forest import Row
    from steelyard.report.dataset import Scalar
    from steelyard.studies.comparison.claim import Claim
    from steelyard.studies.comparison.sample import Run
    from steelyard.studies.comparison.terms import Terms

MOST_SAID: Final = 6
"""Comparisons that the description of a picture names."""

_SHARES: Final = 512
_MIB: Final = 1 << 20
_MS: Final = 1e6


RATIO_TONES: Final = {"slower": "bad", "faster": "better", "equivalent": "good", "inconclusive": "open"}


def forest_of(claims: tuple[Claim, ...]) -> Figure | None:
    """Give the differences with their intervals."""
    if not claims:
        return None
    baselines = {claim.baseline for claim in claims}
    rows = labelled_rows([_forest_row(claim, is_alone=len(baselines) == 1) for claim in claims])
    margin, level = claims[0].margin, claims[0].level
    ends = [abs(float(row[key] or 0)) for row in rows for key in ("value", "low", "high")]
    is_wide = max(ends) > WIDE_SPAN * 100 * margin
    against = short(baselines.pop()) if len(baselines) == 1 else "the baseline"
    return Figure(
        "ratios-forest",
        "Differences with their intervals",
        f"Thin lines are {100 * level:.12g} % intervals: an interval that excludes 0 is a difference. Thick "
        "lines are those of the two one-sided tests: an interval inside the green band is equivalent."
        + (
            " Beside the band the axis is logarithmic, because differences are so much larger."
            if is_wide
            else ""
        )
        + more_rows(len(claims)),
        "; ".join(claim.sentence for claim in claims[:MOST_SAID]),
        forest(
            rows,
            found_tones(RATIO_TONES, rows),
            difference("value", f"difference to {against} [%]", 100 * margin if is_wide else None),
        ),
        {"intervals": dataset(rows, MOST_ROWS)},
    )


def _forest_row(claim: Claim, *, is_alone: bool) -> Row:
    name = f"{short(claim.contender)}{claim.suffix}"

    def ends(low: float, high: float) -> tuple[float | None, float | None]:
        return (as_percent(low), as_percent(high)) if low > 0 and math.isfinite(high) else (None, None)

    return forest_row(
        name if is_alone else f"{name} / {short(claim.baseline)}",
        str(claim.verdict),
        finite(100 * (claim.ratio - 1)),
        ends(claim.low, claim.high),
        narrow=ends(*claim.narrow),
        band=(100 * (1 / (1 + claim.margin) - 1), 100 * claim.margin),
    )


def _unit(terms: Terms, runs: Sequence[Run]) -> tuple[str, float]:
    """Give the unit of the axis and its size; what a harness reports may be nanoseconds or minutes."""
    if terms.metric == "memory":
        return "MiB", _MIB
    if terms.metric != REPORTED:
        return "ms", _MS
    values = [run.reported_ns for run in runs if run.reported_ns]
    typical = statistics.median(values) if values else _MS
    unit = next((each for each in ("s", "ms", "us") if typical >= SECONDS_PER_UNIT[each] * NS_PER_S), "ns")
    return unit, SECONDS_PER_UNIT[unit] * NS_PER_S


def sequence(folder: Path, plan: Plan, terms: Terms) -> Figure:
    """Give every run in the order of execution."""
    runs = recorded_runs(folder, plan, terms)
    names = _names(plan)
    quantity = terms.metric.quantity
    unit, scale = _unit(terms, runs)
    limits: dict[int, float] = {}
    for number in range(len(names)):
        values, _ = values_of(runs, number, quantity)
        outside = values[is_outlier(values)] if values.size else values
        limits[number] = float(outside.min()) if outside.size else math.inf
    rows: list[dict[str, Scalar]] = []
    for order, run in enumerate(runs):
        value = getattr(run, quantity)
        if value is None:
            continue
        is_high = value >= limits[run.contender]
        rows.append(
            {
                "command": names[run.contender],
                "position": order,
                "value": value / scale,
                "kind": "warm-up" if run.phase != MEASURE else "outlier" if is_high else "measured",
                "flags": ", ".join(run.flags),
            }
        )
    shown = np.array([row["value"] for row in rows], dtype=np.float64)
    how = "run at the same time" if terms.mode is Mode.DUET else "take turns"
    kept = envelope(shown, MARKS_PER_CHART)
    return Figure(
        "run-sequence",
        "Runs in their order",
        f"A drift or a jump hits all commands alike, since they {how}. Outliers are labelled and count."
        + log_note([shown.tolist()]),
        f"{len(rows)} runs of {len(names)} commands in the order of measuring",
        run_sequence(assign_colours(names, {}), f"{terms.metric.words} [{unit}]", shown.tolist()),
        {"sequence": dataset([rows[at] for at in kept])},
    )


def distribution(folder: Path, plan: Plan, terms: Terms) -> Figure:
    """Give the distribution of each command."""
    runs = recorded_runs(folder, plan, terms)
    names = _names(plan)
    unit, scale = _unit(terms, runs)
    rows: list[dict[str, Scalar]] = []
    for number, name in enumerate(names):
        values, _ = values_of(runs, number, terms.metric.quantity)
        ascending = np.sort(values[values > 0]) / scale
        if not ascending.size:
            continue
        places = np.unique(np.linspace(0, ascending.size - 1, min(ascending.size, _SHARES)).astype(int))
        steps = [(0, 0.0), *((int(at), 100 * (int(at) + 1) / ascending.size) for at in places)]
        rows += [
            {"command": name, "value": float(ascending[at]), "percent": percent} for at, percent in steps
        ]
    shown = [float(row["value"] or 0) for row in rows]
    return Figure(
        "distribution",
        "Distributions",
        "A curve further right is slower (or larger). Steps are modes, a long end to the right are outliers."
        + log_note([shown]),
        "share of runs that took at most so much, one curve per command",
        distributions(assign_colours(names, {}), f"{terms.metric.words} [{unit}]", shown),
        {"shares": dataset(rows)},
    )


def _names(plan: Plan) -> list[str]:
    return [short(cell.levels["command"]) for cell in plan.cells if cell.levels["phase"] == MEASURE]
