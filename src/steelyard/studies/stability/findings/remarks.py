"""What happened beside the timings: flags, failed runs, Steelyard's own error, settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from scipy import special

from steelyard.model import Estimate, Evidence, Finding
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.studies.analysis_options import LEVEL, SPREAD_MARGIN
from steelyard.studies.analysis_parts import RUNS, finding, finite
from steelyard.studies.stability.findings.cells import key_of
from steelyard.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.analysis_parts import Fact
    from steelyard.studies.stability.findings.cells import Recorded


def contamination(recorded: Recorded) -> Iterator[Finding]:
    """Count the runs that carry each flag, per isolation and setup."""
    runs = _labelled(recorded)
    totals = dict(_counted(runs, "isolation", "setup"))
    flagged = runs.explode("flags").filter(pl.col("flags").is_not_null() & (pl.col("flags") != ""))
    distinct = flagged.unique(subset=["run_id", "flags"])
    for (isolation, setup, flag), count in _counted(distinct, "isolation", "setup", "flags"):
        yield finding(
            "contamination",
            {"isolation": isolation, "setup": setup, "flag": flag},
            "flagged",
            facts={"flagged": count, "runs": totals[isolation, setup]},
            evidence=Evidence(RUNS, {"isolation": isolation, "flags": flag}, ("flags",), "count"),
        )


def failed_runs(recorded: Recorded) -> Iterator[Finding]:
    """Count the runs that did not complete, per isolation, setup, workload and status."""
    failed = _labelled(recorded).filter(pl.col("status") != "completed")
    columns = ("isolation", "setup", "workload_label", "status")
    for (isolation, setup, workload, status), count in _counted(failed, *columns):
        yield finding(
            "failed_runs",
            {"isolation": isolation, "setup": setup, "workload": workload, "status": status},
            "failed",
            facts={"count": count},
            evidence=Evidence(RUNS, {"isolation": isolation, "status": status}, ("status",), "count"),
        )


def calibration(result: Path) -> Iterator[Finding]:
    """Repeat what was measured of Steelyard's own error on the host."""
    if not (result / PROVENANCE_NAME).exists():
        return
    measured = read_provenance(result).calibration
    if not measured:
        return
    estimates: dict[str, Estimate] = {}
    parts = []
    for error in _entries(measured.get("errors")):
        isolation = str(error.get("isolation"))
        of_isolation = {name: _error_of(error.get(name)) for name in ("wall", "cpu")}
        estimates |= {
            f"{isolation} {name}": found for name, found in of_isolation.items() if found is not None
        }
        words = [
            f"{name} {format_seconds(found.value)}"
            for name, found in of_isolation.items()
            if found is not None and found.value is not None
        ]
        parts.append(f"{isolation}: " + ", ".join(words))
    yield finding(
        "calibration",
        {},
        "outside minus own, mean: " + "; ".join(parts)
        if estimates
        else "the table is stored with the result",
        estimates=estimates,
        facts=dict(_flat(measured)),
        evidence=Evidence(PROVENANCE_NAME, {}, ("calibration",), "copied"),
    )


def _entries(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _error_of(spread: JsonValue) -> Estimate | None:
    """Give the mean error with its interval (normal, from sd and count)."""
    if not isinstance(spread, dict):
        return None
    mean_ns, sd_ns, count = (spread.get(name) for name in ("mean_ns", "sd_ns", "count"))
    if not (isinstance(mean_ns, int | float) and isinstance(sd_ns, int | float) and isinstance(count, int)):
        return None
    half_ns = (
        float(special.stdtrit(count - 1, (1 + LEVEL) / 2)) * sd_ns / math.sqrt(count)
        if count > 1
        else math.nan
    )
    low, high = finite((mean_ns - half_ns) / 1e9), finite((mean_ns + half_ns) / 1e9)
    level = None if low is None else LEVEL
    return Estimate(mean_ns / 1e9, "s", "mean, t interval", low, high, level, count, count)


def settings(recorded: Recorded, options: AnalysisOptions) -> Finding:
    """State what the analysis was told, so that it can be computed again."""
    return finding(
        "settings",
        {},
        "stated",
        facts={
            "tolerance_percent": options.tolerance_percent,
            "margin_percent": options.margin_percent,
            "spread_margin_percent": 100 * SPREAD_MARGIN,
            "resamples": options.resamples,
            "level": LEVEL,
            "seed": recorded.plan.seed,
            "cells": len(recorded.cells),
            "missing_cells": len(recorded.missing),
        },
    )


def _labelled(recorded: Recorded) -> pl.DataFrame:
    """Give the runs with the labels of setup and workload."""
    labels = pl.DataFrame(
        {
            "cell": [cell.number for cell in recorded.plan.cells],
            "setup": [key_of(cell.levels).setup for cell in recorded.plan.cells],
            "workload_label": [key_of(cell.levels).label for cell in recorded.plan.cells],
        },
        schema={"cell": pl.Int32, "setup": pl.String, "workload_label": pl.String},
    )
    return recorded.runs.join(labels, on="cell", how="left")


def _counted(runs: pl.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Give each combination of the columns, in order, with its number of runs."""
    for *labels, count in runs.group_by(*columns).len().sort(*columns).iter_rows():
        yield tuple(str(label) for label in labels), int(count)


def _flat(value: JsonValue, prefix: str = "") -> Iterator[tuple[str, Fact]]:
    """Give the leaves of nested JSON with dotted names."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(part, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _flat(part, f"{prefix}.{place}")
    else:
        yield prefix, value
