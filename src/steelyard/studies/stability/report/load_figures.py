"""Figures over load: errors of clocks, dispersion, and shifts of the mean, each with what stands apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.dispersion import dispersion_by_load
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
from steelyard.report.charts.parts import WHOLE_NUMBERS, WIDE_SPAN, difference, log_note, numeric
from steelyard.report.charts.points import error_by_load
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.report.slots import percent
from steelyard.studies.stability.report.data import setup_order
from steelyard.studies.stability.report.figures import FEWEST_LOADS, least_steady_first

if TYPE_CHECKING:
    from steelyard.model.finding import Finding, FindingSet
    from steelyard.report.charts.forest import Row
    from steelyard.studies.stability.report.subjects import Subjects

ERROR_LIMITS_PERCENT: Final = (5.0, 10.0, 20.0)
"""SOURCE: limits at which the published study counts groups."""

SMALL_SHIFT_PERCENT: Final = 0.1
"""A smaller shift does not make the axis logarithmic."""


def error_load_figure(findings: FindingSet, subjects: Subjects) -> Figure | None:
    """Give the relative error of the outside clock by load."""
    rows: list[dict[str, str | int | float | bool | None]] = []
    for finding in findings.of("outside_error"):
        cv = finding.estimates["cv"].value
        if cv is not None and cv > 0:
            rows.append(_error_row(finding, cv, tolerance_percent(findings)))
    if not rows:
        return None
    clocks = sorted({str(row["clock"]) for row in rows}, reverse=True)
    return Figure(
        id="outside_error",
        title="How far the outside clock can be trusted under load",
        caption="One point per cell, the standard deviation of the outside clock's error "
        "relative to the run time; lower is better. Dashed: 5, 10 and 20 %, the limits of the published "
        f"study. A ring: the whole interval lies above the tolerance{_of_tolerance(findings)}. Click a name "
        "in the legend to see it alone. The axis is logarithmic.",
        alternative="Relative error of the outside clock by number of workers, one colour per isolation "
        "technology",
        spec=error_by_load(subjects.colours, clocks, ERROR_LIMITS_PERCENT),
        datasets={"errors": dataset(rows)},
    )


def tolerance_percent(findings: FindingSet) -> float | None:
    """Give the tolerance that the analysis used."""
    for finding in findings.of("settings"):
        value = finding.facts.get("tolerance_percent")
        return float(value) if isinstance(value, int | float) else None
    return None


def _of_tolerance(findings: FindingSet) -> str:
    tolerance = tolerance_percent(findings)
    return "" if tolerance is None else f" of {percent(tolerance)}"


def _error_row(
    finding: Finding, cv: float, tolerance: float | None
) -> dict[str, str | int | float | bool | None]:
    mean, sd = finding.estimates["mean"].value, finding.estimates["sd"].value
    low = finding.estimates["cv"].low
    return {
        "clock": finding.subject["metric"],
        "isolation": finding.subject["isolation"],
        "setup": finding.subject["setup"],
        "workload": finding.subject["workload"],
        "workers": setup_order(finding.subject["setup"])[2],
        "cv": cv,
        "is_apart": low is not None and tolerance is not None and low > tolerance,
        "mean_ms": None if mean is None else mean * 1e3,
        "sd_ms": None if sd is None else sd * 1e3,
    }


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
            rows.append(
                {**labels, "workers": int(workers), "value": estimate.value, **limits, "is_apart": False}
            )
    _mark_apart(rows)
    if not rows:
        return None
    workloads = least_steady_first(findings, {str(row["workload"]) for row in rows})
    if len({row["workers"] for row in rows}) < FEWEST_LOADS:
        return None
    views = [
        [
            float(row[key] or 0)
            for row in rows
            for key in ("value", "low", "high")
            if row["workload"] == workload and row[key] is not None
        ]
        for workload in workloads
    ]
    return Figure(
        id="dispersion",
        title="Where dispersion starts to grow",
        caption="The coefficient of variation of the CPU time by number of workers, with its "
        f"interval; lower is steadier. Dashed: the tolerance{_of_tolerance(findings)}; the recommended "
        "number of workers is the last one below it for every workload. A ring: the interval does not "
        "overlap that of the smallest load, so the load changed the dispersion. The menu begins with the "
        "least steady program." + log_note(views),
        alternative="Dispersion of CPU time by number of workers, one line per isolation technology",
        spec=dispersion_by_load(
            subjects.colours,
            workloads,
            f"dispersion [{'%' if unit == 'percent' else unit}]",
            tolerance_percent(findings) if unit == "percent" else None,
            views,
        ),
        datasets={"dispersion": dataset(rows)},
    )


def _mark_apart(rows: list[dict[str, str | int | float | bool | None]]) -> None:
    """Mark the rows whose interval does not overlap that of the smallest load of the same cell."""
    first: dict[tuple[str, str], dict[str, str | int | float | bool | None]] = {}
    for row in sorted(rows, key=lambda row: int(row["workers"] or 0)):
        base = first.setdefault((str(row["isolation"]), str(row["workload"])), row)
        limits = [row["low"], row["high"], base["low"], base["high"]]
        low, high, base_low, base_high = (None if value is None else float(value) for value in limits)
        if low is not None and high is not None and base_low is not None and base_high is not None:
            row["is_apart"] = low > base_high or high < base_low


def workers_figure(findings: FindingSet) -> Figure | None:
    """Give the recommended number of workers of each isolation, up to the one that is not excluded."""
    chosen = findings.of("recommended_workers")
    if not chosen:
        return None
    rows = labelled_rows([_workers_row(each) for each in chosen])
    most = max(int(each.facts["largest_load_measured"] or 1) for each in chosen)
    place = numeric("value", "recommended workers", "x", zero=True) | {"axis": WHOLE_NUMBERS}
    return Figure(
        id="recommended_workers",
        title="Recommended number of parallel workers, by isolation",
        caption=f"A point is the most workers at which every program scatters by no more "
        f"than the tolerance{_of_tolerance(findings)}, with its whole interval; 0 is none. A line reaches to "
        "the most that these data do not exclude. Where it has no point, it is undecided. The green band is "
        f"what was measured: up to {most}.{more_rows(len(chosen))}",
        alternative="Recommended workers of each isolation with what is not excluded",
        spec=forest(
            rows,
            found_tones({"recommended": "plain", "undecided": "open", "none": "bad"}, rows),
            place,
            at=None,
        ),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _workers_row(finding: Finding) -> Row:
    workers, possible = finding.estimates["workers"].value, finding.facts["possible_workers"]
    certain = workers or 0.0
    return forest_row(
        finding.subject["isolation"],
        finding.verdict,
        None if finding.verdict == "undecided" else certain,
        (certain, float(possible)) if isinstance(possible, int | float) else (None, None),
        band=(0.0, float(finding.facts["largest_load_measured"] or 0)),
    )


SHIFT_TONES: Final = {
    "slower": "bad",
    "faster": "better",
    "equivalent": "good",
    "inconclusive": "open",
    "descriptive": "open",
}


def shift_figure(findings: FindingSet) -> Figure | None:
    """Give the shift of the mean of each isolation with its interval."""
    chosen = [
        finding for finding in findings.of("location_shift") if finding.estimates["ratio"].value is not None
    ]
    if not chosen:
        return None
    rows = labelled_rows([_shift_row(finding) for finding in chosen])
    sizes = [abs(float(row["value"] or 0)) for row in rows]
    is_wide = max(sizes) > WIDE_SPAN * max(min(sizes), SMALL_SHIFT_PERCENT)
    title = f"difference of the mean against {chosen[0].subject['baseline']} [%]"
    return Figure(
        id="shifts",
        title="Which isolation shifts the mean",
        caption="The difference of the mean CPU time of one worker, over all workloads, with "
        "its interval; right of zero is slower."
        + (" The axis is logarithmic beyond one percent." if is_wide else "")
        + more_rows(len(chosen)),
        alternative="Difference of the mean CPU time against the baseline for each isolation technology",
        spec=forest(
            rows,
            found_tones(SHIFT_TONES, rows),
            difference("value", title, 1.0 if is_wide else None),
        ),
        datasets={"intervals": dataset(rows, MOST_ROWS)},
    )


def _shift_row(finding: Finding) -> Row:
    ratio = finding.estimates["ratio"]
    return forest_row(finding.subject["isolation"], finding.verdict, as_percent(ratio.value), percents(ratio))
