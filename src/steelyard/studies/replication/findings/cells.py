"""What every cell measured: each metric over its runs, and the published rule beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.replication.findings.estimates import over_runs, published
from steelyard.studies.replication.run_parts import (
    FAILED_SHARE,
    LOOP,
    MEAN,
    P50,
    P90,
    P99,
    REACHED,
    STEADY_MEAN,
    THROUGHPUT,
    UNITS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.model import Finding
    from steelyard.studies.analysis_parts import Fact
    from steelyard.studies.replication.values.summaries import CellRuns, Key

SHOWN: Final = (THROUGHPUT, MEAN, STEADY_MEAN, P50, P90, P99, LOOP, REACHED, FAILED_SHARE)
QUARTILES: Final = {"q1": 0.25, "median": 0.5, "q3": 0.75}
TABLES: Final = {
    "e1": ("traces/*/jmh.json", ("primaryMetric.rawData",)),
    "e2": ("traces/*/calls.parquet", ("duration_ns",)),
    "causes": ("traces/*/calls.parquet", ("duration_ns",)),
    "e3": ("traces/*/requests.parquet", ("operation", "intended_ns", "received_ns", "status")),
    "e4": ("traces/*/requests.parquet", ("operation", "intended_ns", "received_ns", "status")),
}
"""Where the numbers of an experiment come from: files of the runs, and their columns."""
SUMMARY: Final = ("traces/*/header.json", ("reached",))
"""The same, of a benchmark that leaves a summary of itself only."""


def cell_findings(cells: Mapping[Key, CellRuns]) -> Iterator[Finding]:
    """Give one finding per cell and operation."""
    for cell in cells.values():
        for part in cell.part_names:
            yield _finding(cell, part)


def evidence_of(cells: tuple[CellRuns, ...], statistic: str) -> Evidence:
    """Give the query for the runs of some cells of one experiment."""
    of_summary = SUMMARY if cells[0].key[0] == "e4" and not cells[0].has_single_values else None
    table, columns = of_summary or TABLES[cells[0].key[0]]
    return Evidence(table, {"folder": " ".join(cell.places for cell in cells)}, columns, statistic)


def _finding(cell: CellRuns, part: str) -> Finding:
    experiment, configuration, setting = cell.key
    pooled = cell.pooled(part)
    estimates = {
        metric: over_runs(values, UNITS[metric], pooled.size)
        for metric in SHOWN
        if (values := cell.values(part, metric))
    }
    metric = THROUGHPUT if experiment == "e1" else MEAN
    if pooled.size:
        estimates["published"] = published(pooled, metric)
        estimates |= {
            name: Estimate(
                finite(pooled.quantile(p)), UNITS[metric], "type 7, all runs", measurements=pooled.size
            )
            for name, p in QUARTILES.items()
        }
    return finding(
        "cell",
        {"experiment": experiment, "configuration": configuration, "operation": part, "setting": setting},
        "descriptive",
        estimates=estimates,
        facts={"runs": len(cell.runs), **_facts(cell, part)},
        evidence=evidence_of((cell,), "mean of each run, then over runs"),
    )


def _facts(cell: CellRuns, part: str) -> dict[str, Fact]:
    """Give sums of the runs' counts, extremes, and how many runs reached a steady state."""
    parts = cell.parts(part)
    found: dict[str, Fact] = {}
    for name in ("iterations", "calls", "measured", "requests", "failed", "unanswered"):
        if name in parts[0].facts:
            found[name] = int(sum(each.facts.get(name, 0) for each in parts))
    if "min_ns" in parts[0].facts:
        found["min_ns"] = min(each.facts["min_ns"] for each in parts)
        found["max_ns"] = max(each.facts["max_ns"] for each in parts)
        found["sd_ns"] = finite(cell.pooled(part).sd)
    series = [each.series for each in parts if each.series is not None]
    if series:
        found["steady_runs"] = sum(each.steady_from < each.calls for each in series)
        found["warm_up_runs"] = sum(each.warm_up == "warm-up" for each in series)
        found["late_runs"] = sum(each.calls / 2 < each.steady_from < each.calls for each in series)
    return found
