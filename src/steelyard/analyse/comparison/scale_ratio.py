"""How much more one sample scatters than another, with an interval that outliers do not deceive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_EXCHANGES: Final = 999
_WIDEST: Final = 15.0
"""Logarithm beyond which no ratio of scales is looked for."""
_HALVINGS: Final = 30
_TIE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class ScaleRatio:
    """Standard deviation of the first sample over that of the second, with its interval.

    Infinite limits (0 on the lower side), and no ratio, where too little is known.
    """

    ratio: float = math.nan
    low: float = 0.0
    high: float = math.inf

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.high)


def deviations(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Give the distances of values from the median of their group.

    Each is made as large as that from a known place would be: a group of two is nearer to its own middle, by
    the root of two. Groups of one value say nothing. An outlier moves the mean of a small group, and with it
    all distances: intervals from those missed the ratio of heavy-tailed samples in 13 % instead of 5 %.

    Examples
    --------
    >>> import numpy as np
    >>> (deviations([np.array([1.0, 3.0]), np.array([7.0])]) ** 2).round(9).tolist()
    [2.0, 2.0]
    """
    found = [
        (group - np.median(group)) * math.sqrt(group.size / (group.size - 1))
        for group in groups
        if group.size > 1
    ]
    return np.concatenate(found) if found else np.empty(0)


def scale_ratio(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    level: float,
    generator: np.random.Generator,
) -> ScaleRatio:
    """Compare the scatter of two samples around 0.

    A factor of the scales is inside the interval if values of both samples, the first ones divided by it, can
    be exchanged without a sum of squares of the first ones that is rare on one side. Where one factor relates
    both, this is exact for any distribution, but for the places that were estimated.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,) and (m,): distances from the place of their sample.
    level : float
        Of the interval, in (0, 1).
    generator : numpy.random.Generator
        Draws the exchanges.

    Returns
    -------
    ScaleRatio
        Without an interval where a sample has fewer than 5 values or no scatter.

    References
    ----------
    .. [1] Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, ch. 3 (scale). Deviation:
       drawn exchanges instead of all.
    """
    if min(first.size, second.size) < FEWEST_UNITS or not (first.any() and second.any()):
        return ScaleRatio()
    squares = first**2, second**2
    place = math.log(squares[0].mean() / squares[1].mean())
    is_first = np.arange(first.size + second.size) < first.size
    drawn = generator.permuted(np.tile(is_first, (_EXCHANGES, 1)), axis=1).astype(np.float64)
    limits = [
        _edge(drawn, squares, (place, place + sign * _WIDEST), p_edge=(1 - level) / 2) for sign in (-1, 1)
    ]
    low, high = (math.exp(limit / 2) for limit in limits)
    if high >= math.exp((place + _WIDEST) / 2 - 1e-6):
        return ScaleRatio()
    return ScaleRatio(math.exp(place / 2), low, high)


def _edge(
    drawn: NDArray[np.float64],
    squares: tuple[NDArray[np.float64], NDArray[np.float64]],
    between: tuple[float, float],
    p_edge: float,
) -> float:
    """Find the logarithm of the ratio of variances beyond which exchanges contradict it."""
    inside, outside = between
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _p_tail(drawn, squares, middle, is_above=outside < inside) <= p_edge:
            outside = middle
        else:
            inside = middle
    return (inside + outside) / 2


def _p_tail(
    drawn: NDArray[np.float64],
    squares: tuple[NDArray[np.float64], NDArray[np.float64]],
    log_ratio: float,
    *,
    is_above: bool,
) -> float:
    first = squares[0] / math.exp(log_ratio)
    everything = np.concatenate((first, squares[1]))
    sums = drawn @ everything
    slack = _TIE * everything.sum()
    beyond = sums >= first.sum() - slack if is_above else sums <= first.sum() + slack
    return float((1 + beyond.sum()) / (_EXCHANGES + 1))
