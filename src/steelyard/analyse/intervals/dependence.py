"""Whether the neighbours of a series resemble each other, and the parts of a series that show it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.analyse.intervals.shape import FEWEST_VALUES

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCHES: Final = 10
"""Parts of a series whose means are compared with the scatter inside them."""

_LAG_BOUND: Final = 2.0
"""Standard errors of the lag-1 correlation of independent values beyond which neighbours depend (2.3 %)."""

_BATCH_ERROR: Final = 0.01
"""Error of the F test of ten batches."""


def depends_on_order(values: NDArray[np.float64]) -> bool:
    """Tell whether a series shows that its values are not independent: neighbours alike, or parts unlike.

    Independent values are called dependent in 3 % of samples.

    Parameters
    ----------
    values : ndarray
        Shape (n,), in the order of measurement. Fewer than 10 values show nothing.

    References
    ----------
    .. [1] Kendall (1954), Biometrika 41: the lag-1 correlation has mean -1/n and standard error 1/sqrt(n).
    .. [2] Fisher (1925), one-way analysis of variance of ten parts.

    Examples
    --------
    >>> depends_on_order(np.arange(40.0)), depends_on_order(np.tile([1.0, 2.0, 1.5, 0.5], 10))
    (True, False)
    """
    if values.size < BATCHES or float(np.ptp(values)) <= 0:
        return False
    if lag_correlation(values) > _LAG_BOUND / math.sqrt(values.size):
        return True
    if values.size < FEWEST_VALUES:
        return False
    labels = batch_labels(values.size)
    counts = np.bincount(labels)
    means = np.bincount(labels, values) / counts
    within = float(np.sum((values - means[labels]) ** 2)) / (values.size - BATCHES)
    between = float(np.sum(counts * (means - values.mean()) ** 2)) / (BATCHES - 1)
    if within <= 0:
        return between > 0
    return float(scipy.special.fdtrc(BATCHES - 1, values.size - BATCHES, between / within)) < _BATCH_ERROR


def lag_correlation(values: NDArray[np.float64]) -> float:
    """Give the correlation of neighbours, corrected for its bias of -1/n; 0 without spread."""
    deviations = values - values.mean()
    total = float(np.sum(deviations * deviations))
    if total <= 0:
        return 0.0
    return float(np.sum(deviations[1:] * deviations[:-1])) / total + 1 / values.size


def batch_labels(size: int, parts: int = BATCHES) -> NDArray[np.int64]:
    """Give the number of the part of each value, for parts of equal length; the rest joins the last."""
    return np.minimum(np.arange(size) // (size // parts), parts - 1)


def batch_means(values: NDArray[np.float64], parts: int = BATCHES) -> NDArray[np.float64]:
    """Give the means of the parts of a series of at least as many values."""
    labels = batch_labels(values.size, parts)
    return np.bincount(labels, values) / np.bincount(labels)
