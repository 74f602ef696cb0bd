"""The findings of the replication study as CSV files, and the calls of each cell's first run in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.errors import DataError
from steelyard.studies.finding_tables import FOLDER, rendered, write_claim_tables, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import FindingSet
    from steelyard.studies.replication.values.summaries import Summary

ALWAYS: Final = {"cell": "cells", "comparison": "comparisons"}
IF_FOUND: Final = {
    "overhead": "overheads",
    "recording_cost": "recording_cost",
    "devices": "device_scatter",
    "device": "devices",
    "software": "software",
    "driver_lateness": "driver_lateness",
    "harness_floor": "harness_floor",
    "answer": "answers",
    "cause_row": "cause_tree",
    "beside_spikes": "beside_spikes",
    "spike_period": "spike_period",
    "cause_tree": "cause_conclusion",
    "failed_benchmark": "failed_benchmarks",
    "availability": "availability",
    "ended_early": "ended_early",
    "a_a": "a_a",
    "source_comparison": "source_comparisons",
    "source_row": "source_rows",
    "source_statement": "source_statements",
}
SERIES: Final = "call_series"
SERIES_COLUMNS: Final = (
    "experiment",
    "configuration",
    "setting",
    "repetition",
    "start_s",
    "middle_ns",
    "largest_ns",
)


def write_tables(result: Path, findings: FindingSet, summaries: Sequence[Summary]) -> None:
    """Write the tables, and remove those of an earlier analysis; the same findings give the same bytes."""
    found = {claim: name for claim, name in IF_FOUND.items() if findings.of(claim)}
    for name in set(IF_FOUND.values()) - set(found.values()):
        (result / FOLDER / f"{name}.csv").unlink(missing_ok=True)
    write_claim_tables(result, findings, {**ALWAYS, **found})
    firsts = {each.key: each for each in reversed(summaries) if not each.recorded.is_twin}
    rows = [row for each in summaries if firsts.get(each.key) is each for row in _series_rows(each)]
    if rows:
        write_table(result, SERIES, rendered(SERIES_COLUMNS, rows))
    else:
        (result / FOLDER / f"{SERIES}.csv").unlink(missing_ok=True)


def _series_rows(summary: Summary) -> Iterator[list[str | int | float | bool | None]]:
    for part in summary.parts.values():
        series = part.series
        if series is None:
            continue
        first: tuple[str | int, ...] = (*summary.key, summary.recorded.block + 1)
        columns = (series.start_s, series.middle_ns, series.largest_ns)
        for start, middle, largest in zip(*columns, strict=True):
            yield [*first, round(float(start), 9), float(middle), float(largest)]


def read_series(result: Path) -> pl.DataFrame | None:
    """Read the series of calls that an analysis wrote; ``None`` where no run has calls.

    Raises
    ------
    DataError
        If the table is damaged.
    """
    path = result / FOLDER / f"{SERIES}.csv"
    if not path.exists():
        return None
    kinds = {"start_s": pl.Float64, "middle_ns": pl.Float64, "largest_ns": pl.Float64}
    try:
        return pl.read_csv(path, null_values="NA", schema_overrides=kinds)
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"cannot read `{path}`: {error}"
        raise DataError(message, hint=f"steelyard analyse {result}", code="data.absent") from error
