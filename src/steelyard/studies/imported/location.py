"""Where the values of an imported cell lie: the mean with the interval that its structure allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard import _native
from steelyard.analyse.describe import mean, standard_deviation
from steelyard.analyse.equivalence import FEWEST_UNITS
from steelyard.analyse.interval import Resampling, Statistic, bootstrap_intervals
from steelyard.analyse.warm_up import find_outliers
from steelyard.model import Estimate
from steelyard.studies.imported.samples import level_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.studies.imported.samples import Sample

LEVEL: Final = 0.95
LONG_SERIES: Final = 30
DEPENDENT_SHARE: Final = 0.7
ENOUGH_EFFECTIVE: Final = 50
RARE: Final = 5
FEWEST_RESAMPLED: Final = 5
RESAMPLES: Final = 2000


def location_of(sample: Sample, seed: int) -> Estimate:
    """Give the mean of a cell with its interval.

    Blocks (at least 5), else runs, are the units of a t interval of their means. With one run, or with a
    series of units that depend on each other, the values are a series: bootstrap-t if they look independent,
    a t interval with the effective sample size if not. An interval that is not sure to keep its level is
    marked.

    Parameters
    ----------
    sample : Sample
        At least one value.
    seed : int
        Seed of the resampling.

    Returns
    -------
    Estimate
        In the unit of the sample; without limits for fewer than 2 values.

    References
    ----------
    .. [1] Kalibera & Jones (2013): the unit is the highest random level.
    .. [2] Geyer (1992), section 3.3: effective size by the initial positive sequence.
    """
    values = sample.values
    level = level_of(sample)
    units = sample.means(level) if len(sample.runs) > 1 else values
    is_one_run = len(sample.runs) == 1
    size = _native.effective_size(units) if units.size > 1 else 1.0
    depends = units.size >= LONG_SERIES and size < DEPENDENT_SHARE * units.size
    if units.size < 2:  # noqa: PLR2004 - one value has no interval
        method, limits = "one value", (math.nan, math.nan)
    elif depends:
        method, limits = "t interval with the effective sample size", _t_limits(units, size)
    elif is_one_run and units.size >= FEWEST_RESAMPLED:
        method, limits = "bootstrap-t of the iterations", _bootstrap_t(units, seed, sample.cell)
    else:
        what = "iterations" if is_one_run else f"{level} means"
        method, limits = f"t interval of {what}", _t_limits(units, float(units.size))
    low, high = (value if math.isfinite(value) else None for value in limits)
    return Estimate(
        value=mean(units),
        unit=sample.unit,
        method=method,
        low=low,
        high=high,
        level=None if low is None else LEVEL,
        units=len(sample.runs) if level == "run" or is_one_run else units.size,
        measurements=int(values.size),
        guaranteed=_is_guaranteed(sample, units, size),
    )


def _is_guaranteed(sample: Sample, units: NDArray[np.float64], size: float) -> bool:
    """Tell whether the interval keeps its level for data of this kind and size."""
    rare = 0 < len(find_outliers(units)) < RARE
    if len(sample.runs) == 1:
        return size >= ENOUGH_EFFECTIVE and not rare
    values_per_unit = sample.values.size / units.size
    is_mean_of_many = units.size >= FEWEST_UNITS and values_per_unit >= FEWEST_UNITS
    return (is_mean_of_many or size >= ENOUGH_EFFECTIVE) and not rare


def _t_limits(units: NDArray[np.float64], size: float) -> tuple[float, float]:
    if size <= 1:
        return math.nan, math.nan
    half = float(special.stdtrit(size - 1, (1 + LEVEL) / 2)) * standard_deviation(units) / math.sqrt(size)
    centre = mean(units)
    return centre - half, centre + half


def _bootstrap_t(values: NDArray[np.float64], seed: int, cell: int) -> tuple[float, float]:
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    resampling = Resampling(seed=seed, cell=cell, resamples=RESAMPLES, level=LEVEL)
    return bootstrap_intervals(values, resampling, (Statistic.MEAN,))[Statistic.MEAN].studentised
