"""How far values scatter, and from which load on they scatter more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard import _native
from steelyard.analyse.comparison.equivalence import exponential
from steelyard.analyse.intervals.bootstrap import Statistic
from steelyard.analyse.intervals.clustering import HOST
from steelyard.analyse.intervals.describe import mean, standard_deviation, statistic_of
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.intervals.bootstrap import Resampling
    from steelyard.analyse.intervals.clustering import Units

RELEVANT_GROWTH: Final = 1.25
"""A dispersion counts as grown if it is at least a quarter larger: smaller factors cannot be told at usual
sizes."""

BOOTSTRAP: Final = "percentile-cluster-bootstrap"
OVER_HOSTS: Final = "within a host, t over hosts"

_COLUMNS: Final = (Statistic.MEAN, Statistic.SD, Statistic.CV, Statistic.MEDIAN)


@dataclass(frozen=True, slots=True)
class Pooled:
    """A statistic of everything a cell gave, with an interval that respects its units.

    Parameters
    ----------
    value, low, high : float
        In the unit of the values (`cv`: ratio); limits NaN where there are none.
    units, measurements : int
        What it rests on.
    guaranteed : bool
        Whether whole units could be resampled; else iterations were, as if independent.
    method : str
        `BOOTSTRAP` or `OVER_HOSTS`.
    """

    value: float
    low: float
    high: float
    units: int
    measurements: int
    guaranteed: bool
    method: str = BOOTSTRAP


def pooled_statistics(units: Units, resampling: Resampling) -> dict[Statistic, Pooled]:
    """Give mean, sd, cv and median of all values with bootstrap intervals of whole units.

    Of several hosts they are those within a host: what is the same on all of a host's values is no scatter
    of a measurement. The value is the geometric mean over hosts, the interval Student's, since few hosts
    resampled give intervals that are too narrow.

    Parameters
    ----------
    units : Units
        Values of one cell by unit.
    resampling : Resampling
        Stream; percentile limits.

    Returns
    -------
    dict
        By statistic. Limits NaN for fewer than 2 values; with fewer than 5 units iterations are resampled
        as if they were independent, and the interval is not guaranteed.

    References
    ----------
    .. [1] Davison & Hinkley (1997), section 3.8 (hierarchical data: resample the top level whole).
    """
    if units.level == HOST and len(units.values) > 1:
        return {statistic: _over_hosts(units, statistic, resampling.level) for statistic in _COLUMNS}
    pooled = np.concatenate(units.values) if units.values else np.empty(0)
    sizes = [unit.size for unit in units.values]
    clustered = len(sizes) >= FEWEST_UNITS
    if pooled.size < 2:  # noqa: PLR2004 - one value has no spread
        limits = dict.fromkeys(_COLUMNS, (math.nan, math.nan))
    else:
        lengths = np.array(sizes if clustered else [1] * pooled.size, dtype=np.int64)
        replicates = _native.cluster_bootstrap(
            pooled,
            lengths,
            within=False,
            resamples=resampling.resamples,
            seed=resampling.seed,
            cell=resampling.cell,
        )
        tail = (1 - resampling.level) / 2
        quantiles = np.quantile(replicates, [tail, 1 - tail], axis=0)
        limits = {
            statistic: (float(low), float(high))
            for statistic, low, high in zip(_COLUMNS, *quantiles, strict=True)
        }
    return {
        statistic: Pooled(
            statistic_of(pooled, statistic) if pooled.size else math.nan,
            *limits[statistic],
            len(sizes),
            pooled.size,
            clustered,
        )
        for statistic in _COLUMNS
    }


def _over_hosts(units: Units, statistic: Statistic, level: float) -> Pooled:
    """Give a statistic within a host: on the logarithm, as long as no host has none of it."""
    found = units.statistics(statistic)
    values = found[np.isfinite(found)]
    is_positive = bool(np.all(values > 0))
    value, low, high = _student(np.log(values) if is_positive else values, level)
    if is_positive:
        value, low, high = (exponential(each) for each in (value, low, high))
    measurements = sum(unit.size for unit in units.values)
    return Pooled(
        value, max(low, 0.0), high, values.size, measurements, values.size >= FEWEST_UNITS, OVER_HOSTS
    )


def _student(values: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """Give a mean with its limits; these are not numbers for fewer than 2 values."""
    centre = mean(values)
    if values.size < 2:  # noqa: PLR2004 - one value has no spread
        return centre, math.nan, math.nan
    half = float(special.stdtrit(values.size - 1, (1 + level) / 2)) * standard_deviation(values)
    half /= math.sqrt(values.size)
    return centre, centre - half, centre + half


def growth_starts(loads: Sequence[tuple[int, Pooled]]) -> int | None:
    """Give the smallest load from which on the dispersion is relevantly larger than at the smallest load.

    Larger means: the interval lies above that of the smallest load, and the value is at least a quarter
    larger; and so at every higher load.

    Parameters
    ----------
    loads : sequence of (int, Pooled)
        Number of workers and dispersion, any order, distinct numbers.

    Returns
    -------
    int or None
        Number of workers; ``None`` if no growth was seen.

    Examples
    --------
    >>> def of(value): return Pooled(value, value * 0.9, value * 1.1, 6, 600, guaranteed=True)
    >>> growth_starts([(1, of(0.01)), (2, of(0.011)), (4, of(0.03)), (8, of(0.05))])
    4
    """
    ordered = sorted(loads, key=lambda load: load[0])
    if not ordered:
        return None
    base = ordered[0][1]
    start: int | None = None
    for workers, dispersion in reversed(ordered[1:]):
        if not (dispersion.low > base.high and dispersion.value >= RELEVANT_GROWTH * base.value):
            break
        start = workers
    return start
