"""The typical value of differences, and its interval, by signed ranks.

Where the order inside a block is drawn at random, the sign of a difference of two equal commands is a
fair coin whatever the distribution of their times, so the error rate needs no assumption about it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_EXACT: Final = 200
"""Beyond, the normal approximation errs by less than 8 % of a tail of 0.001, to the safe side."""
MOST_LISTED: Final = 2000
"""With more differences their means of pairs are counted instead of listed."""
_DECIMALS: Final = 13


def pseudomedian(differences: NDArray[np.float64]) -> float:
    """Give the Hodges-Lehmann estimate: the median of the means of all pairs, each value with itself too.

    Parameters
    ----------
    differences : ndarray
        Shape (n,), n >= 1, finite.

    References
    ----------
    .. [1] Hodges & Lehmann (1963), Ann. Math. Stat. 34.

    Examples
    --------
    >>> pseudomedian(np.array([1.0, 2.0, 30.0]))
    8.75
    """
    count = differences.size * (differences.size + 1) // 2
    middle = {(count + 1) // 2, count // 2 + 1}
    return float(np.mean(walsh_averages(differences, sorted(middle))))


def pseudomedian_interval(differences: NDArray[np.float64], p_tail: float) -> tuple[float, float]:
    """Give the interval of the pseudomedian: all shifts that the signed-rank test does not reject.

    Parameters
    ----------
    differences : ndarray
        Shape (n,), finite.
    p_tail : float
        Error on each side, in (0, 0.5).

    Returns
    -------
    tuple of float
        Infinite where so few differences cannot err so rarely: that takes n with ``2**-n <= p_tail``.

    References
    ----------
    .. [1] Tukey (1949); Hollander, Wolfe & Chicken (2014), ch. 3.3 (order statistics of Walsh averages).

    Examples
    --------
    >>> pseudomedian_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.025)
    (1.0, 6.0)
    """
    rank = critical_rank(differences.size, p_tail)
    if rank == 0:
        return -math.inf, math.inf
    count = differences.size * (differences.size + 1) // 2
    low, high = walsh_averages(differences, [rank, count + 1 - rank])
    return low, high


def critical_rank(size: int, p_tail: float) -> int:
    """Give the largest k with P(W < k) <= p_tail, W the signed-rank statistic under symmetry; 0 for none.

    Examples
    --------
    >>> critical_rank(6, 0.025), critical_rank(5, 0.025)
    (1, 0)
    """
    if size == 0:
        return 0
    if size <= MOST_EXACT:
        return int(np.searchsorted(_cumulative(size), p_tail, side="right"))
    mean = size * (size + 1) / 4
    sd = math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    return max(math.floor(mean + float(scipy.special.ndtri(p_tail)) * sd - 0.5) + 1, 0)


@lru_cache(maxsize=MOST_EXACT)
def _cumulative(size: int) -> NDArray[np.float64]:
    """Give P(W <= w) for w = 0, 1, ...: W is the sum of the ranks that a fair coin chooses."""
    chances = np.zeros(size * (size + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, size + 1):
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: chances.size - rank]
        chances = (chances + shifted) / 2
    return np.cumsum(chances)


def walsh_averages(values: NDArray[np.float64], ranks: list[int]) -> list[float]:
    """Give order statistics of the means of all pairs of values, each value with itself too.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 1, finite.
    ranks : list of int
        From 1 to n (n + 1) / 2.

    Returns
    -------
    list of float
        One per rank; for more than `MOST_LISTED` values rounded to 13 decimals.
    """
    if values.size > MOST_LISTED:
        ascending = np.sort(values)
        return [_counted(ascending, rank) for rank in ranks]
    rows, columns = np.triu_indices(values.size)
    means = (values[rows] + values[columns]) / 2
    places = [rank - 1 for rank in ranks]
    return [float(value) for value in np.partition(means, places)[places]]


def _counted(ascending: NDArray[np.float64], rank: int) -> float:
    """Find one order statistic by halving the range until as many means of pairs lie below."""
    low, high = float(ascending[0]), float(ascending[-1])
    while high - low > 10.0**-_DECIMALS / 2:
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        ordered = int(np.searchsorted(ascending, 2 * middle - ascending, side="right").sum())
        alone = int(np.searchsorted(ascending, middle, side="right"))
        low, high = (low, middle) if (ordered + alone) // 2 >= rank else (middle, high)
    return round(high, _DECIMALS) if high - low > 0 else high
