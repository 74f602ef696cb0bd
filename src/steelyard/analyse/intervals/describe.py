"""Point statistics of one sample; sums are exact, so the order of the values never matters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard import _native
from steelyard.analyse.intervals.bootstrap import MAD_SCALE, Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mean(values: NDArray[np.float64]) -> float:
    """Give the mean; not a number for an empty sample."""
    return _native.exact_sum(values) / values.size if values.size else math.nan


def inner_product(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Give the sum of the products of two vectors, the same bits on every machine.

    Of many values that of BLAS (``first @ second``) depends on the number of its threads.

    Examples
    --------
    >>> inner_product(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return _native.exact_sum(first * second)


def standard_deviation(values: NDArray[np.float64]) -> float:
    """Give the standard deviation (divisor n - 1); not a number for fewer than 2 values.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 2.0, 3.0]))
    1.0
    """
    if values.size < 2:  # noqa: PLR2004 - one value has no spread
        return math.nan
    return _native.standard_deviation(values)


def quantile(values: NDArray[np.float64], p: float) -> float:
    """Give the quantile of type 7; not a number for an empty sample."""
    if not values.size:
        return math.nan
    below = int((values.size - 1) * min(max(p, 0.0), 1.0))
    # Its two order statistics in their places are all that is read.
    return quantile_of_sorted(np.partition(values, (below, min(below + 1, values.size - 1))), p)


def quantile_of_sorted(ascending: NDArray[np.float64], p: float) -> float:
    """Give the quantile of type 7 of at least one value in ascending order.

    Examples
    --------
    >>> quantile_of_sorted(np.array([1.0, 2.0, 4.0]), 0.75)
    3.0
    """
    place = (ascending.size - 1) * min(max(p, 0.0), 1.0)
    below = int(place)
    low = float(ascending[below])
    return low + (place - below) * (float(ascending[below + 1]) - low) if place > below else low


def harrell_davis(values: NDArray[np.float64], p: float) -> float:
    """Give the Harrell-Davis quantile: a weighted mean of all order statistics.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 1, any order.
    p : float
        Probability in (0, 1).

    Returns
    -------
    float
        In the unit of the values.

    References
    ----------
    .. [1] Harrell & Davis (1982), Biometrika 69, eq. 1: weights are increments of the Beta((n+1)p,
       (n+1)(1-p)) distribution function.

    Examples
    --------
    >>> harrell_davis(np.array([1.0, 2.0, 3.0]), 0.5)
    2.0
    """
    ascending = np.sort(values)
    size = ascending.size
    edges = scipy.special.betainc((size + 1) * p, (size + 1) * (1 - p), np.arange(size + 1) / size)
    return float(np.sum(np.diff(edges) * ascending))


def mad(values: NDArray[np.float64]) -> float:
    """Give the median absolute deviation from the median, scaled to the sd of normal data."""
    if not values.size:
        return math.nan
    return quantile(np.abs(values - quantile(values, 0.5)), 0.5) * MAD_SCALE


def statistic_of(values: NDArray[np.float64], statistic: Statistic) -> float:
    """Give a statistic by its name, in the unit of the values (`cv`: ratio)."""
    match statistic:
        case Statistic.MEAN:
            return mean(values)
        case Statistic.SD:
            return standard_deviation(values)
        case Statistic.MEDIAN:
            return quantile(values, 0.5)
        case Statistic.MAD:
            return mad(values)
        case Statistic.CV:
            return standard_deviation(values) / mean(values)
