"""Figures of the stability report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.report.charts.bars import stacked_classes
from steelyard.report.charts.boxes import boxes_by_load
from steelyard.report.charts.forest import forest_of_shifts
from steelyard.report.charts.histogram import histogram_of_ratios
from steelyard.report.charts.points import dispersion_by_load, error_by_load, error_of_runs
from steelyard.report.charts.scatter import PANEL_WIDTH, scatter_by_iteration
from steelyard.report.charts.thin import MARKS_PER_CHART, envelope
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.stability.report_data import pairs_of, series_of, setup_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.studies.stability.report_data import Recorded, Series
    from steelyard.studies.stability.report_subjects import Subjects

POINTS_PER_FIGURE: Final = 40_000
"""Points of all choices of a figure together; about 12 bytes each in the page."""

ERROR_LIMITS_PERCENT: Final = (5.0, 10.0, 20.0)
"""SOURCE: limits at which the published study counts groups."""

FEWEST_LOADS: Final = 2
"""A line over load needs two loads."""

_CLASS_ORDER: Final = ("higher", "lesser", "same", "overlap", "NA")


def scatter_figure(recorded: Recorded, subjects: Subjects) -> Figure | None:
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
    workloads = sorted({one.workload for one in series})
    thinned = (
        f" {len(rows)} of {total} points are drawn: of each stretch the lowest and the highest."
        if len(rows) < total
        else ""
    )
    return Figure(
        id="scatter",
        title="CPU time of every iteration, by isolation",
        caption="One panel per isolation, one vertical axis: a panel that lies higher is slower, a "
        "wider band is less "
        "steady; an empty panel was not measured. Iterations are numbered through all blocks. Choose "
        "workload, setup, and a worker to follow." + thinned,
        alternative="Scatter of CPU time in milliseconds by iteration, one panel per isolation technology",
        spec=scatter_by_iteration(subjects.isolations, workloads, setups, workers),
        datasets={"points": dataset([*rows, *_empty_panels(series, subjects)])},
        panel_width=PANEL_WIDTH,
    )


def _empty_panels(
    series: Sequence[Series], subjects: Subjects
) -> list[dict[str, str | int | float | bool | None]]:
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


def _points(series: Series, limit: int) -> list[dict[str, str | int | float | bool | None]]:
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


def box_figure(recorded: Recorded, subjects: Subjects) -> Figure | None:
    """Give boxes of CPU time by load."""
    series = [one for one in series_of(recorded, "cpu") if one.time_ms.size]
    if not series:
        return None
    rows: list[dict[str, str | int | float | bool | None]] = []
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
    return Figure(
        id="boxes",
        title="CPU time by load",
        caption="Box: the middle half of all iterations, with the median. Line: from the 5 % to the 95 "
        "% quantile.",
        alternative="Boxes of CPU time in milliseconds for each setup and isolation technology",
        spec=boxes_by_load(subjects.colours, sorted({one.workload for one in series}), setups),
        datasets={"boxes": dataset(rows)},
    )


def class_figure(findings: FindingSet) -> Figure | None:
    """Give stacked bars of the published classes."""
    chosen = findings.of("class_counts")
    rows: list[dict[str, str | int | float | bool | None]] = [
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
        caption="One bar per pair; `higher` means that the first side lies above the second.",
        alternative="Stacked bars of the number of workloads per class for each pair and setup",
        spec=stacked_classes(choices, setups),
        datasets={"classes": dataset(rows)},
    )


def ratio_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the histogram of parallel ratios."""
    rows: list[dict[str, str | int | float | bool | None]] = [
        {"isolation": finding.subject["isolation"], "percent": value * 100}
        for finding in findings.of("parallel_ratio")
        if (value := finding.estimates["ratio"].value) is not None
    ]
    if not rows:
        return None
    return Figure(
        id="parallel_ratios",
        title="Did the workers really run in parallel?",
        caption="Cells by parallel ratio. Near 100 %: all workers ran side by side from the first to "
        "the last iteration.",
        alternative="Histogram of parallel ratios of all cells",
        spec=histogram_of_ratios(subjects.colours),
        datasets={"ratios": dataset(rows)},
    )


def error_load_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the relative error of the outside clock by load."""
    rows: list[dict[str, str | int | float | bool | None]] = []
    for finding in findings.of("outside_error"):
        cv = finding.estimates["cv"].value
        if cv is not None and cv > 0:
            rows.append(_error_row(finding, cv))
    if not rows:
        return None
    clocks = sorted({str(row["clock"]) for row in rows}, reverse=True)
    return Figure(
        id="outside_error",
        title="How far the outside clock can be trusted under load",
        caption="One point per cell: how unsteady the outside clock's error is, relative to the run "
        "time. The dashed "
        "lines stand at 5, 10 and 20 %. Click a name in the legend to see it alone.",
        alternative="Relative error of the outside clock by number of workers, one colour per isolation "
        "technology",
        spec=error_by_load(subjects.colours, clocks, ERROR_LIMITS_PERCENT),
        datasets={"errors": dataset(rows)},
    )


def _error_row(finding: Finding, cv: float) -> dict[str, str | int | float | bool | None]:
    mean, sd = finding.estimates["mean"].value, finding.estimates["sd"].value
    return {
        "clock": finding.subject["metric"],
        "isolation": finding.subject["isolation"],
        "setup": finding.subject["setup"],
        "workload": finding.subject["workload"],
        "workers": setup_order(finding.subject["setup"])[2],
        "cv": cv,
        "mean_ms": None if mean is None else mean * 1e3,
        "sd_ms": None if sd is None else sd * 1e3,
    }


def error_run_figure(recorded: Recorded, subjects: Subjects) -> Figure | None:
    """Give outside minus own clock, iteration by iteration."""
    rows: list[dict[str, str | int | float | bool | None]] = []
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
    return Figure(
        id="outside_versus_own",
        title="Outside clock minus the program's own, run by run",
        caption="A good outside clock lies flat and close to zero. Stripes betray a clock that moves in "
        "coarse steps." + thinned,
        alternative="Scatter of the outside clock's error over the program's own time",
        spec=error_of_runs(subjects.colours, clocks, setups),
        datasets={"pairs": dataset(rows)},
    )


def dispersion_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the dispersion by load."""
    rows: list[dict[str, str | int | float | bool | None]] = []
    unit = "percent"
    for finding in findings.of("dispersion_by_load"):
        for role, estimate in finding.estimates.items():
            workers = role.rpartition("_")[2]
            if estimate.value is None or not workers.isdigit():
                continue
            unit = estimate.unit
            labels = {"isolation": finding.subject["isolation"], "workload": finding.subject["workload"]}
            limits = {"low": estimate.low, "high": estimate.high}
            rows.append({**labels, "workers": int(workers), "value": estimate.value, **limits})
    if not rows:
        return None
    workloads = sorted({str(row["workload"]) for row in rows})
    if len({row["workers"] for row in rows}) < FEWEST_LOADS:
        return None
    return Figure(
        id="dispersion",
        title="Where dispersion starts to grow",
        caption="Dispersion of the CPU time by number of workers, with its interval. The recommended "
        "number of workers "
        "is the last one below the tolerance for every workload.",
        alternative="Dispersion of CPU time by number of workers, one line per isolation technology",
        spec=dispersion_by_load(
            subjects.colours, workloads, f"dispersion [{'%' if unit == 'percent' else unit}]"
        ),
        datasets={"dispersion": dataset(rows)},
    )


def shift_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the shift of the mean of each isolation with its interval."""
    chosen = [
        finding for finding in findings.of("location_shift") if finding.estimates["ratio"].value is not None
    ]
    if not chosen:
        return None
    rows = [_shift_row(finding) for finding in chosen]
    shown: Sequence[str] = [
        name for name in subjects.isolations if name in {row["isolation"] for row in rows}
    ]
    return Figure(
        id="shifts",
        title="Which isolation shifts the mean",
        caption="Difference of the mean CPU time of one worker, with its interval; right of zero is slower.",
        alternative="Difference of the mean CPU time against the baseline for each isolation technology",
        spec=forest_of_shifts(
            {name: subjects.colours[name] for name in shown}, chosen[0].subject["baseline"]
        ),
        datasets={"shifts": dataset(rows)},
    )


def _shift_row(finding: Finding) -> dict[str, str | int | float | bool | None]:
    ratio = finding.estimates["ratio"]
    limits = {
        name: None if value is None else (value - 1) * 100
        for name, value in (("low", ratio.low), ("high", ratio.high))
    }
    value = ratio.value if ratio.value is not None else 1.0
    return {
        "isolation": finding.subject["isolation"],
        "percent": (value - 1) * 100,
        **limits,
        "verdict": finding.verdict,
    }
