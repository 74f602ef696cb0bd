"""The tables of the source as CSV files, each cell copied from a finding."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

    Cell = str | int | float | bool | None
    Row = Callable[[Finding], list[Cell]]

FOLDER: Final = "tables"
_COMPARISON: Final = (
    "statistic",
    "workload",
    "setup",
    "first",
    "second",
    "class_published",
    "class_published_percentile",
    "class_published_basic",
    "verdict",
    "ratio",
    "ratio_low",
    "ratio_high",
    "units",
)
_UNSTATED: Final = ("", "unstated")


def render_tables(findings: FindingSet) -> dict[str, str]:
    """Give the text of each table by file name; the same findings give the same bytes."""
    tables = {
        f"{statistic}_comparison.csv": _table(findings, f"{statistic}_comparison", _COMPARISON, _comparison)
        for statistic in ("mean", "sd", "median", "mad", "cv")
    }
    for claim, columns, row in _OTHERS:
        tables[f"{claim}.csv"] = _table(findings, claim, columns, row)
    return tables


def write_tables(result: Path, findings: FindingSet) -> None:
    """Write all tables."""
    folder = result / FOLDER
    folder.mkdir(exist_ok=True)
    for name, text in render_tables(findings).items():
        temporary = folder / f".{name}.tmp"
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(folder / name)


def _table(findings: FindingSet, claim: str, columns: tuple[str, ...], row: Row) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for finding in findings.of(claim):
        writer.writerow(["NA" if value is None else value for value in row(finding)])
    return text.getvalue()


def _workload(finding: Finding) -> str:
    given = finding.subject.get("input", "")
    return finding.subject["workload"] if given in _UNSTATED else f"{finding.subject['workload']} {given}"


def _value(finding: Finding, role: str, field: str = "value") -> Cell:
    estimate = finding.estimates.get(role)
    value: Cell = None if estimate is None else getattr(estimate, field)
    return value


def _comparison(finding: Finding) -> list[Cell]:
    ratio = finding.estimates.get("ratio")
    return [
        finding.subject["statistic"],
        _workload(finding),
        finding.subject["setup"],
        finding.subject["first"],
        finding.subject["second"],
        finding.facts["class_percentile"],
        finding.facts["class_percentile"],
        finding.facts["class_basic"],
        finding.verdict,
        _value(finding, "ratio"),
        _value(finding, "ratio", "low"),
        _value(finding, "ratio", "high"),
        0 if ratio is None else ratio.units,
    ]


def _error(finding: Finding) -> list[Cell]:
    return [
        *(finding.subject[name] for name in ("metric", "setup", "isolation")),
        _workload(finding),
        *(_value(finding, role) for role in ("mean", "sd", "cv")),
        finding.facts["n"],
        finding.verdict,
    ]


def _parallel(finding: Finding) -> list[Cell]:
    kind, _, size = finding.subject["setup"].rpartition(",")
    return [size, _workload(finding), finding.subject["isolation"], _value(finding, "ratio"), kind]


def _warm_up(finding: Finding) -> list[Cell]:
    names = ("first_value_s", "median_s", "window_sd_ratio", "outliers", "outlier_iterations", "change_point")
    return [
        finding.subject["setup"],
        _workload(finding),
        finding.subject["isolation"],
        finding.verdict,
        *(finding.facts[name] for name in names),
    ]


def _granularity(finding: Finding) -> list[Cell]:
    return [
        finding.subject["clock"],
        finding.subject["isolation"],
        _value(finding, "step"),
        finding.facts["share_of_iteration_percent"],
        finding.facts["printing_step_s"],
        finding.verdict,
    ]


def _recommended(finding: Finding) -> list[Cell]:
    names = ("tolerance_percent", "limiting_workload", "limiting_cv_percent", "largest_load_measured")
    return [
        finding.subject["isolation"],
        finding.verdict,
        _value(finding, "workers"),
        *(finding.facts[name] for name in names),
    ]


def _input(finding: Finding) -> list[Cell]:
    names = ("workload", "input", "isolation")
    count = finding.estimates["mean"].measurements
    return [*(finding.subject[name] for name in names), _value(finding, "mean"), _value(finding, "sd"), count]


_OTHERS: Final[tuple[tuple[str, tuple[str, ...], Row], ...]] = (
    (
        "outside_error",
        ("metric", "setup", "isolation", "workload", "err_mean", "err_sd", "err_cv", "n", "group"),
        _error,
    ),
    (
        "parallel_ratio",
        ("setup_size", "workload_label", "isolation", "parallel_ratio", "setup_type"),
        _parallel,
    ),
    (
        "warm_up",
        (
            "setup",
            "workload",
            "isolation",
            "verdict",
            "first_value_s",
            "median_s",
            "window_sd_ratio",
            "outliers",
            "outlier_iterations",
            "change_point",
        ),
        _warm_up,
    ),
    ("input_statistics", ("workload", "input", "isolation", "mean_s", "sd_s", "n"), _input),
    (
        "clock_granularity",
        ("clock", "isolation", "step_s", "share_of_iteration_percent", "printing_step_s", "verdict"),
        _granularity,
    ),
    (
        "recommended_workers",
        (
            "isolation",
            "verdict",
            "workers",
            "tolerance_percent",
            "limiting_workload",
            "limiting_cv_percent",
            "largest_load_measured",
        ),
        _recommended,
    ),
)
