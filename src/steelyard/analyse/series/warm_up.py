"""Whether a series of iterations starts slow, drifts, or holds still."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.intervals.describe import quantile, quantile_of_sorted, standard_deviation
from steelyard.analyse.series.confirmed_changes import confirmed_changes

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW: Final = 10
"""SOURCE: the isolation study looks at a sliding window of 10 iterations."""

PENALTY: Final = 5.0
"""Price of a change in units of ln n: independent noise of 100 values is cut in less than 2 % of series
(tested)."""

SHORTEST_SEGMENT: Final = WINDOW
OUTLIER_DEVIATIONS: Final = 10.0
"""An outlier lies more than so many (unscaled) median absolute deviations from the median."""

STEADY_SHARE: Final = 0.25
"""SOURCE: Barrett et al. (2017): a change in the last quarter means that no steady state was reached."""


class SeriesClass(StrEnum):
    """Shape of a series."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOW_DOWN = "slow-down"
    NO_STEADY_STATE = "no steady state"


@dataclass(frozen=True, slots=True)
class SeriesShape:
    """What a series of iterations does.

    Parameters
    ----------
    shape : SeriesClass
        Verdict.
    first, median : float
        First value and median of the series, in its unit.
    window_sd_ratio : float
        Median sd of a sliding window of 10 over the sd of the series; near 1 without drift, NaN for short
        or constant series.
    outliers : tuple of int
        Positions (from 0) further than 10 MAD from the median.
    changes : tuple of int
        Positions (from 0) where a new level begins.
    levels : tuple of float
        Median of each segment.
    lag_1 : float
        Autocorrelation of neighbours.
    effective_size : float
        Values an independent series of the same precision would have.
    """

    shape: SeriesClass
    first: float
    median: float
    window_sd_ratio: float
    outliers: tuple[int, ...]
    changes: tuple[int, ...]
    levels: tuple[float, ...]
    lag_1: float
    effective_size: float


def classify_series(values: NDArray[np.float64], *, margin: float = 0.02) -> SeriesShape:
    """Classify one series, in the order of measuring.

    Segments come from change points on a robust cost, so single slow iterations are outliers, not segments.
    Levels that differ from the last one by less than the margin count as equal to it.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 2, positive.
    margin : float
        Largest relative difference of levels that does not matter.

    Returns
    -------
    SeriesShape
        With its evidence.

    References
    ----------
    .. [1] Barrett et al. (2017), "Virtual machine warmup blows hot and cold", section 5 (classes).
       Deviations: optimal partitioning on absolute deviations instead of PELT on mean and variance; levels
       compared by a relative margin.

    Examples
    --------
    >>> slow_start = np.concatenate([np.full(20, 2.0), np.full(80, 1.0)]) + np.arange(100) % 7 / 100
    >>> classify_series(slow_start).shape.value
    'warm-up'
    """
    bounds = _bounds(values)
    levels = _levels(values, bounds)
    lag_1, effective_size = _native.dependence(values)
    return SeriesShape(
        shape=_shape(levels, bounds, margin),
        first=float(values[0]),
        median=quantile(values, 0.5),
        window_sd_ratio=_window_ratio(values),
        outliers=find_outliers(values),
        changes=tuple(bounds[1:-1]),
        levels=levels,
        lag_1=lag_1,
        effective_size=effective_size,
    )


def class_of_series(values: NDArray[np.float64], *, margin: float = 0.02) -> SeriesClass:
    """Give the class that `classify_series` gives, without the evidence."""
    bounds = _bounds(values)
    # A series of one level is flat, wherever that lies.
    return SeriesClass.FLAT if len(bounds) == 2 else _shape(_levels(values, bounds), bounds, margin)  # noqa: PLR2004


def _bounds(values: NDArray[np.float64]) -> list[int]:
    """Give where levels begin, and where the last one ends."""
    proposed = _native.change_points(values, penalty=PENALTY, shortest=SHORTEST_SEGMENT)
    return [0, *confirmed_changes(values, proposed), values.size]


def _levels(values: NDArray[np.float64], bounds: list[int]) -> tuple[float, ...]:
    return tuple(quantile(values[begin:end], 0.5) for begin, end in pairwise(bounds))


def find_outliers(values: NDArray[np.float64]) -> tuple[int, ...]:
    """Give the positions of values further than 10 median absolute deviations from the median.

    Where more than half of the values are equal (a coarse clock), the smallest other distance stands in for
    the deviation.

    Examples
    --------
    >>> find_outliers(np.array([1.0, 1.1, 0.9, 1.0, 1.05, 9.0]))
    (5,)
    """
    if not values.size:
        return ()
    return outliers_beside(values, np.sort(values))


def outliers_beside(values: NDArray[np.float64], ascending: NDArray[np.float64]) -> tuple[int, ...]:
    """Give the same, of at least one value, with the values in ascending order."""
    median = quantile_of_sorted(ascending, 0.5)
    deviation = _median_distance(ascending, median)
    if deviation <= 0:
        distances = np.abs(ascending - median)
        others = distances[distances > 0]
        deviation = float(others.min()) if others.size else math.inf
    limit = OUTLIER_DEVIATIONS * deviation
    if max(median - ascending[0], ascending[-1] - median) <= limit:
        return ()
    return tuple(np.flatnonzero(np.abs(values - median) > limit).tolist())


def _median_distance(ascending: NDArray[np.float64], median: float) -> float:
    """Give the median of the distances from the median: those in order are the widths of growing windows."""
    place = (ascending.size - 1) * 0.5
    low = _distance(ascending, median, int(place))
    share = place - int(place)
    return low + share * (_distance(ascending, median, int(place) + 1) - low) if share else low


def _distance(ascending: NDArray[np.float64], median: float, rank: int) -> float:
    """Give the distance of a rank from 0: of all windows of so many values and one the shortest reach."""
    places = range(ascending.size - rank)

    def sides(begin: int) -> tuple[float, float]:
        return median - float(ascending[begin]), float(ascending[begin + rank]) - median

    nearest = bisect_left(places, True, key=lambda begin: sides(begin)[1] >= sides(begin)[0])  # noqa: FBT003
    return min(max(sides(begin)) for begin in (nearest - 1, nearest) if begin in places)


def _window_ratio(values: NDArray[np.float64]) -> float:
    whole = standard_deviation(values)
    if values.size < 2 * WINDOW or not whole > 0:
        return math.nan
    windows = np.lib.stride_tricks.sliding_window_view(values, WINDOW)
    return quantile(windows.std(axis=1, ddof=1), 0.5) / whole


def _shape(levels: tuple[float, ...], bounds: list[int], margin: float) -> SeriesClass:
    last = levels[-1]
    if last <= 0:
        return SeriesClass.FLAT if len(levels) == 1 else SeriesClass.NO_STEADY_STATE
    different = [abs(math.log(level / last)) > math.log1p(margin) for level in levels]
    if not any(different):
        return SeriesClass.FLAT
    steady_from = bounds[max(index for index, differs in enumerate(different) if differs) + 1]
    if bounds[-1] - steady_from < STEADY_SHARE * bounds[-1]:
        return SeriesClass.NO_STEADY_STATE
    above = [level > last for level, differs in zip(levels, different, strict=True) if differs]
    if all(above):
        return SeriesClass.WARM_UP
    return SeriesClass.NO_STEADY_STATE if any(above) else SeriesClass.SLOW_DOWN
