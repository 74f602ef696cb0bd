"""Results in the order of time, as series: one value per result for every cell and metric."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.errors import AnalysisError
from steelyard.model.plan import read_plan
from steelyard.record.schema import factor_columns
from steelyard.record.tables import read_measurements, read_runs
from steelyard.units import is_rate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TIMES: Final = frozenset({"ns", "us", "ms", "s"})
NOT_OBSERVED: Final = frozenset(
    {"start", "start-wall", "batch_time", "batch_loops", "launch_ns", "reap_ns", "gc.alloc.rate"}
)
"""Metrics that say when or how something was measured, not how it performed.

That more bytes are allocated in a second, as JMH counts them, is neither better nor worse.
"""

WARM_UP_FACTOR: Final = "phase"
"""Factor that tells whole runs of warming up from measured ones: ``warmup`` or ``measure``."""


@dataclass(frozen=True, slots=True)
class ResultSeries:
    """One metric of one cell over all results.

    Parameters
    ----------
    subject : dict
        Factor levels and metric.
    unit : str
        Of the values.
    labels : tuple of str
        Name of each result that has the cell, oldest first.
    values : ndarray
        Mean of the run means of each of them, shape (n,), positive.
    left_out : int
        Results whose value is not positive, or that lack the cell.
    runs, squares : ndarray
        Runs of each result, and the sum of the squared deviations of their means from the value, over its
        square; shape (n,).
    """

    subject: dict[str, str]
    unit: str
    labels: tuple[str, ...]
    values: NDArray[np.float64]
    left_out: int
    runs: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return is_rate(self.unit)


def read_series(results: Sequence[Path], metrics: Sequence[str] = ()) -> list[ResultSeries]:
    """Read the series of some result folders, or of the blocks of one.

    Parameters
    ----------
    results : sequence of Path
        Folders, oldest first; with one folder its blocks (the files of an import) are the results.
    metrics : sequence of str
        Metrics to take; none for all times, sizes and rates.

    Raises
    ------
    DataError
        If a folder is absent or damaged.
    AnalysisError
        If there is nothing to follow.
    """
    frames, labels = [], []
    for place, result in enumerate(results):
        frame, names = _frame(result)
        if len(results) == 1:
            labels = names
        else:
            frame = frame.with_columns(pl.lit(place, dtype=pl.Int32).alias("block"))
            labels.append(result.name or str(result))
        frames.append(frame)
    table = pl.concat(frames)
    known = table["metric"].unique(maintain_order=True).to_list()
    is_wanted = pl.col("metric").is_in(list(metrics)) if metrics else _observed(table["unit"].unique())
    table = table.filter(is_wanted)
    if table.is_empty():
        asked = f"metric {', '.join(f'`{name}`' for name in metrics)}" if metrics else "time, size or rate"
        message = f"the results have no {asked}; metrics are: {', '.join(f'`{name}`' for name in known)}"
        raise AnalysisError(message, hint="choose one with --metric")
    return [_series(group, labels) for _, group in table.group_by("subject", "unit", maintain_order=True)]


def _observed(units: pl.Series) -> pl.Expr:
    observed = [unit for unit in units if unit in TIMES or unit == "bytes" or is_rate(unit)]
    return pl.col("unit").is_in(observed) & ~pl.col("metric").is_in(list(NOT_OBSERVED))


def _frame(result: Path) -> tuple[pl.DataFrame, list[str]]:
    """Give the run means of a folder, and the names of its blocks."""
    plan = read_plan(result / "plan.json")
    recorded = read_runs(result)
    factors = factor_columns(recorded.schema)
    runs = pl.DataFrame(
        recorded.select(["run_id", "block", "batch", "iteration", "status", *factors])
    ).rename({"iteration": "launch"})
    if not plan.options.get("ignores_failure"):
        runs = runs.filter(pl.col("status") == "completed")
    if WARM_UP_FACTOR in factors:
        # A comparison keeps the runs before the first look as cells of their own.
        runs = runs.filter(pl.col(WARM_UP_FACTOR) == "measure").drop(WARM_UP_FACTOR)
        factors = tuple(name for name in factors if name != WARM_UP_FACTOR)
    measured = pl.DataFrame(read_measurements(result).select(["run_id", "phase", "metric", "value", "unit"]))
    subjects = pl.struct(*factors, "metric").struct.json_encode().alias("subject")
    means = (
        measured.filter(pl.col("phase") == "measure")
        .join(runs, on="run_id", maintain_order="left")
        .select("block", "batch", "launch", "metric", "unit", "value", subjects)
        .group_by("subject", "metric", "unit", "block", "batch", "launch", maintain_order=True)
        .agg(pl.col("value").mean())
        .select("subject", "metric", "unit", "block", "value")
    )
    return means, _labels(str(plan.options.get("block_labels", "")), plan.blocks)


def _labels(text: str, count: int) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list) and len(found) == count:
        return [str(each) for each in found]
    return [f"block {place}" for place in range(count)]


def _series(group: pl.DataFrame, labels: list[str]) -> ResultSeries:
    value = pl.col("value")
    squares = ((value - value.mean()).pow(2).sum() / value.mean().pow(2)).alias("squares")
    values = group.group_by("block").agg(value.mean(), pl.len().alias("runs"), squares).sort("block")
    kept = values.filter(pl.col("value").is_finite() & (pl.col("value") > 0))
    places = kept["block"].to_list()
    return ResultSeries(
        subject={key: str(value) for key, value in json.loads(group["subject"][0]).items()},
        unit=str(group["unit"][0]),
        labels=tuple(labels[place] for place in places),
        values=kept["value"].to_numpy().astype(np.float64),
        left_out=len(labels) - len(places),
        runs=kept["runs"].to_numpy().astype(np.float64),
        squares=kept["squares"].to_numpy().astype(np.float64),
    )
