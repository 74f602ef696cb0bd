"""Whether a queue grows: then a mean latency says how long it was looked at, not how slow the service is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.studies.colocation.observed import Observed
    from steelyard.studies.colocation.windows import Window

PARTS: Final = 5
GROWN_RATIO: Final = 1.5
"""A queue counts as growing if each fifth of the stretch is slower than the one before it, and the last is so
many times as slow as the first. Without a trend five means ascend once in 5! = 120 times."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How latencies run over a stretch.

    Parameters
    ----------
    is_growing : bool
        By the rule of `GROWN_RATIO`.
    slope : float
        By how much latency grows per second [s/s]; not a number where it cannot be told.
    """

    is_growing: bool
    slope: float


NO_TREND: Final = Trend(is_growing=False, slope=math.nan)


def trend_of(observed: Observed, window: Window) -> Trend:
    """Give the trend of the mean latencies of the bins of a stretch.

    The slope is that of the least-squares line through the means of its fifths.
    """
    bins = observed.bins
    chosen = window.holds(bins.start_s, bins.width_s) & np.isfinite(bins.mean_s)
    return trend(bins.start_s[chosen], bins.mean_s[chosen])


def trend(times_s: NDArray[np.float64], values_s: NDArray[np.float64]) -> Trend:
    """Give the trend of a series of values at ascending times.

    Examples
    --------
    >>> times = np.arange(10.0)
    >>> found = trend(times, 1 + times)
    >>> found.is_growing, round(found.slope, 9)
    (True, 1.0)
    >>> trend(times, np.ones(10)).is_growing
    False
    """
    if values_s.size < 2 * PARTS:
        return NO_TREND
    parts = np.array_split(np.arange(values_s.size), PARTS)
    means = np.array([float(values_s[part].mean()) for part in parts])
    middles = np.array([float(times_s[part].mean()) for part in parts])
    is_growing = bool(np.all(np.diff(means) > 0) and means[-1] > GROWN_RATIO * means[0])
    centred = middles - middles.mean()
    return Trend(is_growing, float(centred @ means / (centred @ centred)))
