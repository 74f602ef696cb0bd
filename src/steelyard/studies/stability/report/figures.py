"""Figures of the stability report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.report.charts.bars import stacked_classes
from steelyard.report.charts.boxes import boxes_by_load
from steelyard.report.charts.histogram import histogram_of_ratios
from steelyard.report.charts.parts import log_note
from steelyard.report.charts.points import error_of_runs
from steelyard.report.charts.scatter import PANEL_WIDTH, scatter_by_iteration
from steelyard.report.charts.thin import MARKS_PER_CHART, envelope
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.stability.report.data import pairs_of, series_of, setup_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model.finding import FindingSet
    from steelyard.studies.stability.report.data import RecordedTables, Series
    from steelyard.studies.stability.report.subjects import Subjects

    Row = dict[str, str | int | float | bool | None]

POINTS_PER_FIGURE: Final = 40_000
"""Points of all choices of a figure together; about 12 bytes each in the page."""

FEWEST_LOADS: Final = 2
"""A line over load needs two loads."""

_CLASS_ORDER: Final = ("higher", "lesser", "same", "overlap", "NA")


def scatter_figure(recorded: RecordedTables, subjects: Subjects) -> Figure | None:
    """Give the scatter of CPU time by iteration."""
    series = [one for one in series_of(recorded, "cpu") if one.time_ms.size]
    if not series:
        return None
    limit = min(
        MARKS_PER_CHART // max(len(subjects.isolations), 1), max(POINTS_PER_FIGURE // len(series), 40)
    )
    total = sum(one.time_ms.size for one in series)
    rows = [row for one in series for row in _points(one, limit)]
    workers = sorted({str(row["worker"]) for row in rows}, key=int)
    setups = sorted({one.setup for one in series}, key=setup_order)
    workloads = least_steady_first(recorded.findings, {one.workload for one in series})
    thinned = (
        f" {len(rows)} of {total} points are drawn: of each stretch the lowest and the highest."
        if len(rows) < total
        else ""
    )
    views = _by_view(series, "workload", "setup")
    return Figure(
        id="scatter",
        title="CPU time of every iteration, by isolation",
        caption="One panel per isolation, one vertical axis. A panel that lies higher is "
        "slower, a wider band is less steady, a step or a slope is a disturbance that stayed; an empty panel "
        "was not measured. Iterations are numbered through all blocks. Choose workload, setup, and a worker "
        "to follow." + log_note(views) + thinned,
        alternative="Scatter of CPU time in milliseconds by iteration, one panel per isolation technology",
        spec=scatter_by_iteration(subjects.isolations, workloads, setups, workers, views),
        datasets={"points": dataset([*rows, *_empty_panels(series, subjects)])},
        panel_width=PANEL_WIDTH,
    )


def least_steady_first(findings: FindingSet, workloads: Iterable[str]) -> tuple[str, ...]:
    """Give workloads in the order of menus: what limits most stands first, the rest by name."""
    highest: dict[str, float] = {}
    for finding in findings.of("dispersion_by_load"):
        name = finding.subject["workload"]
        values = [estimate.value or 0.0 for estimate in finding.estimates.values()]
        highest[name] = max([highest.get(name, 0.0), *values])
    names = sorted(workloads)
    first = max(names, key=lambda name: highest.get(name, 0.0), default=None)
    return tuple(dict.fromkeys([first, *names] if first is not None else names))


def _by_view(series: Sequence[Series], *menus: str) -> list[list[float]]:
    """Give the extremes of the values that each choice of the menus shows at once."""
    views: dict[tuple[str, ...], list[float]] = {}
    for one in series:
        view = views.setdefault(tuple(getattr(one, menu) for menu in menus), [])
        view += [float(one.time_ms.min()), float(one.time_ms.max())]
    return list(views.values())


def _empty_panels(series: Sequence[Series], subjects: Subjects) -> list[Row]:
    """Give a row without a value for each combination that was not measured: its panel stays, empty."""
    measured = {(one.isolation, one.setup, one.workload) for one in series}
    shown = {(one.setup, one.workload) for one in series}
    return [
        {
            "isolation": isolation,
            "workload": workload,
            "setup": setup,
            "worker": "0",
            "order": None,
            "time_ms": None,
        }
        for isolation in subjects.isolations
        for setup, workload in sorted(shown)
        if (isolation, setup, workload) not in measured
    ]


def _points(series: Series, limit: int) -> list[Row]:
    by_order = np.argsort(series.order, kind="stable")
    kept = by_order[envelope(series.time_ms[by_order], limit)]
    return [
        {
            "isolation": series.isolation,
            "workload": series.workload,
            "setup": series.setup,
            "worker": str(series.workers[index]),
            "order": int(series.order[index]),
            "time_ms": float(series.time_ms[index]),
        }
        for index in kept
    ]


def box_figure(recorded: RecordedTables, subjects: Subjects) -> Figure | None:
    """Give boxes of CPU time by load."""
    series = [one for one in series_of(recorded, "cpu") if one.time_ms.size]
    if not series:
        return None
    rows: list[Row] = []
    for one in series:
        p05, p25, p50, p75, p95 = (
            float(value) for value in np.quantile(one.time_ms, (0.05, 0.25, 0.5, 0.75, 0.95))
        )
        labels = {"isolation": one.isolation, "workload": one.workload, "setup": one.setup}
        quantiles = {"p05": p05, "p25": p25, "p50": p50, "p75": p75, "p95": p95}
        rows.append({**labels, **quantiles, "n": int(one.time_ms.size)})
    setups = sorted({one.setup for one in series}, key=setup_order)
    if len(setups) * len(subjects.isolations) < FEWEST_LOADS:
        return None
    views = _quantiles_by_workload(rows)
    return Figure(
        id="boxes",
        title="CPU time by load",
        caption="The box holds the middle half of all iterations, the light stroke is the "
        "median, the line reaches from the 5 % to the 95 % quantile. A box that rises from left to right "
        "becomes slower under load, one that grows becomes less steady." + log_note(views),
        alternative="Boxes of CPU time in milliseconds for each setup and isolation technology",
        spec=boxes_by_load(
            subjects.colours,
            least_steady_first(recorded.findings, {one.workload for one in series}),
            setups,
            views,
        ),
        datasets={"boxes": dataset(rows)},
    )


def _quantiles_by_workload(rows: Sequence[Row]) -> list[list[float]]:
    views: dict[str, list[float]] = {}
    for row in rows:
        views.setdefault(str(row["workload"]), []).extend(float(row[key] or 0) for key in ("p05", "p95"))
    return list(views.values())


def class_figure(findings: FindingSet) -> Figure | None:
    """Give stacked bars of the published classes."""
    chosen = findings.of("class_counts")
    rows: list[Row] = [
        {
            "choice": f"{finding.subject['statistic']}, {finding.subject['published']} interval",
            "pair": f"{finding.subject['first']} vs {finding.subject['second']}",
            "setup": finding.subject["setup"],
            "name": name,
            "count": int(finding.facts[name] or 0),
            "rank": rank,
        }
        for finding in chosen
        for rank, name in enumerate(_CLASS_ORDER)
    ]
    if not rows:
        return None
    choices = list(dict.fromkeys(str(row["choice"]) for row in rows))
    setups = sorted({str(row["setup"]) for row in rows}, key=setup_order)
    return Figure(
        id="classes",
        title="How often one side is higher: the published classes, counted over workloads",
        caption="One bar per pair, one unit of length per workload. `higher`: the first "
        "side lies above the second; `lesser`: below; `same` and `overlap`: the intervals share values.",
        alternative="Stacked bars of the number of workloads per class for each pair and setup",
        spec=stacked_classes(choices, setups, sorted({str(row["pair"]) for row in rows})),
        datasets={"classes": dataset(rows)},
    )


def ratio_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the histogram of parallel ratios."""
    rows: list[Row] = [
        {"isolation": finding.subject["isolation"], "percent": value * 100}
        for finding in findings.of("parallel_ratio")
        if (value := finding.estimates["ratio"].value) is not None
    ]
    if not rows:
        return None
    return Figure(
        id="parallel_ratios",
        title="Did the workers really run in parallel?",
        caption="Cells counted by parallel ratio. Near 100 %: all workers ran side by side "
        "from the first to the last iteration; what lies far left was measured under less load than it says.",
        alternative="Histogram of parallel ratios of all cells",
        spec=histogram_of_ratios(subjects.colours),
        datasets={"ratios": dataset(rows)},
    )


def _own_by_view(rows: Sequence[Row]) -> list[list[float]]:
    views: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        views.setdefault((str(row["clock"]), str(row["setup"])), []).append(float(row["own_ms"] or 0))
    return list(views.values())


def error_run_figure(recorded: RecordedTables, subjects: Subjects) -> Figure | None:
    """Give outside minus own clock, iteration by iteration."""
    rows: list[Row] = []
    total = 0
    for clock in ("wall", "cpu"):
        pairs = pairs_of(recorded, clock, f"outside-{clock}")
        limit = min(
            MARKS_PER_CHART // max(2 * len(subjects.workloads), 1),
            max(POINTS_PER_FIGURE // max(2 * len(pairs), 1), 20),
        )
        for (isolation, setup, workload), values in pairs.items():
            total += len(values)
            labels = {"clock": clock, "isolation": isolation, "setup": setup, "workload": workload}
            errors = values[:, 1] - values[:, 0]
            kept = envelope(errors, limit // max(len(subjects.isolations), 1) + 2)
            rows.extend(
                {**labels, "own_ms": float(values[index, 0]), "error_ms": float(errors[index])}
                for index in kept
            )
    if not rows:
        return None
    clocks = sorted({str(row["clock"]) for row in rows}, reverse=True)
    setups = sorted({str(row["setup"]) for row in rows}, key=setup_order)
    thinned = (
        f" {len(rows)} of {total} iterations are drawn: of each stretch the lowest and the highest."
        if len(rows) < total
        else ""
    )
    views = _own_by_view(rows)
    return Figure(
        id="outside_versus_own",
        title="Outside clock minus the program's own, run by run",
        caption="One point per iteration. A good outside clock lies flat and close to zero; "
        "a cloud that is high but flat costs a constant, a tall one is noise. Stripes betray a clock that "
        "moves in coarse steps. The vertical axis is logarithmic beyond 1 ms on either side."
        + log_note(views, "horizontal axis")
        + thinned,
        alternative="Scatter of the outside clock's error over the program's own time",
        spec=error_of_runs(subjects.colours, clocks, setups, views),
        datasets={"pairs": dataset(rows)},
    )
