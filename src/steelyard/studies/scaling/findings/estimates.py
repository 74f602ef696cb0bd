"""Estimates of this study, and the queries behind them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import limits_of, median_of, resampled_medians
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import MEASUREMENTS, RUNS, finite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from steelyard.analyse.scaling.speedup import Ratio
    from steelyard.studies.scaling.recorded import CellTrials

LEVEL: Final = 0.95
BLOCKS: Final = "percentile bootstrap of whole blocks"
NO_TRIALS: Final = "only medians exist: no interval"
FEW_TRIALS: Final = "few trials: the interval may miss its level"


def ratio_estimate(ratio: Ratio, method: str, *, measurements: int = 0) -> Estimate:
    """Give the estimate of a ratio of medians."""
    low, high = finite(ratio.low), finite(ratio.high)
    return Estimate(
        finite(ratio.value),
        "ratio",
        method,
        low,
        high,
        None if low is None else LEVEL,
        ratio.trials,
        measurements or ratio.trials,
        guaranteed=ratio.is_guaranteed and low is not None,
    )


def mapped(estimate: Estimate, scale: float, offset: float, unit: str) -> Estimate:
    """Give ``offset + scale * estimate`` in another unit; limits change places under a negative scale."""
    ends = [None if end is None else offset + scale * end for end in (estimate.low, estimate.high)]
    if scale < 0:
        ends.reverse()
    value = None if estimate.value is None else offset + scale * estimate.value
    return Estimate(
        value,
        unit,
        estimate.method,
        ends[0],
        ends[1],
        estimate.level,
        estimate.units,
        estimate.measurements,
        guaranteed=estimate.guaranteed,
    )


def number(
    value: float, unit: str, method: str, limits: tuple[float, float] = (math.nan, math.nan), trials: int = 0
) -> Estimate:
    """Give an estimate of a number with limits that may not exist."""
    low, high = finite(limits[0]), finite(limits[1])
    return Estimate(
        finite(value),
        unit,
        method,
        low,
        high,
        None if low is None else LEVEL,
        trials,
        trials,
        guaranteed=False,
    )


def median_estimate(values: NDArray[np.float64], unit: str, draws: NDArray[np.int64]) -> Estimate:
    """Give the median of the trials; with an interval from two on.

    Parameters
    ----------
    values : ndarray
        Shape (blocks,); NaN where a block has no trial.
    unit : str
        Of the values.
    draws : ndarray
        Shape (resamples, blocks).
    """
    trials = int(np.isfinite(values).sum())
    limits = limits_of(resampled_medians(values, draws)) if trials > 1 else (math.nan, math.nan)
    return number(median_of(values), unit, f"median of the trials, {BLOCKS}", limits, trials)


def of_trials(cells: Iterable[CellTrials | None], statistic: str) -> Evidence:
    """Give the query for the trials of some cells."""
    numbers = ",".join(str(cell.number) for cell in cells if cell is not None)
    return Evidence(MEASUREMENTS, {"cell": numbers, "phase": "measure"}, ("metric", "value"), statistic)


def of_runs(cell: int) -> Evidence:
    """Give the query for how the runs of a cell ended."""
    return Evidence(RUNS, {"cell": str(cell)}, ("status", "exit_code", "signal"), "how the runs ended")
