"""Whether one quantity goes with another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard.analyse.intervals.describe import inner_product, mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEWEST: Final = 4


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation coefficient with its interval.

    Parameters
    ----------
    value, low, high : float
        In [-1, 1]; NaN where a side is constant or there are fewer than 4 pairs.
    pairs : int
        Pairs of values.
    """

    value: float
    low: float
    high: float
    pairs: int


def pearson(x: NDArray[np.float64], y: NDArray[np.float64], level: float = 0.95) -> Correlation:
    """Give the linear correlation with Fisher's interval.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), finite, paired.
    level : float
        Coverage of the interval.

    References
    ----------
    .. [1] Fisher (1921): atanh r has standard error 1 / sqrt(n - 3).

    Examples
    --------
    >>> round(pearson(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 5.0])).value, 4)
    0.9827
    """
    return _with_interval(x, y, level, inflation=1.0)


def spearman(x: NDArray[np.float64], y: NDArray[np.float64], level: float = 0.95) -> Correlation:
    """Give the rank correlation (ties share their mean rank) with an interval.

    References
    ----------
    .. [1] Bonett & Wright (2000), Psychometrika 65: the error of atanh r grows by sqrt(1 + r^2 / 2).
    """
    ranks = mid_ranks(x), mid_ranks(y)
    plain = _coefficient(*ranks)
    return _with_interval(*ranks, level, inflation=math.sqrt(1 + plain * plain / 2))


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the ranks from 1; equal values share the mean of their ranks.

    Examples
    --------
    >>> mid_ranks(np.array([10.0, 30.0, 10.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middles: NDArray[np.float64] = last - (counts - 1) / 2
    return middles[place.reshape(-1)]


def _coefficient(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if x.size < _FEWEST:
        return math.nan
    a, b = x - mean(x), y - mean(y)
    scale = math.sqrt(inner_product(a, a) * inner_product(b, b))
    return max(-1.0, min(1.0, inner_product(a, b) / scale)) if scale > 0 else math.nan


def _with_interval(
    x: NDArray[np.float64], y: NDArray[np.float64], level: float, *, inflation: float
) -> Correlation:
    value = _coefficient(x, y)
    if math.isnan(value) or abs(value) >= 1:
        return Correlation(value, value, value, x.size)
    half = float(special.ndtri((1 + level) / 2)) * inflation / math.sqrt(x.size - 3)
    centre = math.atanh(value)
    return Correlation(value, math.tanh(centre - half), math.tanh(centre + half), x.size)
