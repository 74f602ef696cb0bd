"""Numbers of runs with intervals over runs, and the published rules that pool single values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finite
from steelyard.studies.replication.run_parts import THROUGHPUT, UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.intervals.value_counts import ValueCounts

LEVEL: Final = 0.95
OVER_RUNS: Final = "Student's t over runs"

JMH_LEVEL: Final = 0.999
"""SOURCE: JMH's own interval, mean +- t(0.9995, N - 1) s / sqrt(N) over all iterations of all forks."""

NORMAL_95: Final = 1.959964
"""SOURCE: MooBench's `ci95 = 1.959964 * sd / sqrt(n)` over all calls."""


def over_runs(values: Sequence[float], unit: str, measurements: int = 0, method: str = "") -> Estimate:
    """Give the mean of one number per run with Student's limits; without limits for one run.

    Examples
    --------
    >>> found = over_runs([1.0, 2.0, 3.0, 2.0, 2.0], "ns")
    >>> found.value, round(found.low, 2), found.units
    (2.0, 1.12, 5)
    """
    numbers = np.array(values, dtype=np.float64)
    prefix = f"{method}; " if method else ""
    if numbers.size < 2:  # noqa: PLR2004 - one run has no spread
        value = finite(mean(numbers))
        return Estimate(value, unit, f"{prefix}one run", units=int(numbers.size), measurements=measurements)
    centre = mean(numbers)
    half = half_width(numbers)
    return Estimate(
        finite(centre),
        unit,
        f"{prefix}{OVER_RUNS}",
        finite(centre - half),
        finite(centre + half),
        LEVEL,
        units=int(numbers.size),
        measurements=measurements,
        guaranteed=numbers.size >= FEWEST_UNITS,
    )


def half_width(values: NDArray[np.float64], level: float = LEVEL) -> float:
    """Give half the width of Student's interval of a mean; at least 2 values."""
    t = float(special.stdtrit(values.size - 1, (1 + level) / 2))
    return t * standard_deviation(values) / math.sqrt(values.size)


def difference(first: Sequence[float], second: Sequence[float], unit: str, measurements: int = 0) -> Estimate:
    """Give the mean of the second runs less that of the first, with Welch's limits.

    References
    ----------
    .. [1] Welch (1947), Biometrika 34; degrees of freedom of Satterthwaite (1946).

    Examples
    --------
    >>> found = difference([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], "ns")
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (10.0, 7.73, 12.27)
    """
    one, other = np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)
    units = min(one.size, other.size)
    value = mean(other) - mean(one)
    if units < 2:  # noqa: PLR2004 - one run has no spread
        return Estimate(
            finite(value), unit, "difference of single runs", units=units, measurements=measurements
        )
    shares = [standard_deviation(side) ** 2 / side.size for side in (one, other)]
    total = sum(shares)
    weights = sum(share**2 / (side.size - 1) for share, side in zip(shares, (one, other), strict=True))
    freedom = total**2 / weights if weights > 0 else float(one.size + other.size - 2)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(total)
    return Estimate(
        finite(value),
        unit,
        "Welch's t over runs",
        finite(value - half),
        finite(value + half),
        LEVEL,
        units=units,
        measurements=measurements,
        guaranteed=units >= FEWEST_UNITS,
    )


def published(pooled: ValueCounts, metric: str) -> Estimate:
    """Give the mean with the interval of the source's own rule, over all single values of all runs.

    It takes every iteration or call for independent of all others, so its interval is too narrow wherever
    runs differ; it is shown beside Steelyard's, and used for no verdict.
    """
    if metric == THROUGHPUT:
        t = float(special.stdtrit(pooled.size - 1, (1 + JMH_LEVEL) / 2)) if pooled.size > 1 else math.nan
        level, factor, rule = JMH_LEVEL, t, "JMH's rule: t over all iterations of all forks"
    else:
        level, factor, rule = LEVEL, NORMAL_95, "MooBench's rule: normal over all calls of all loops"
    half = factor * pooled.sd / math.sqrt(pooled.size) if pooled.size > 1 else math.nan
    low, high = finite(pooled.mean - half), finite(pooled.mean + half)
    return Estimate(
        finite(pooled.mean),
        UNITS[metric],
        rule,
        low,
        high,
        None if low is None else level,
        units=pooled.size,
        measurements=pooled.size,
        guaranteed=False,
    )
