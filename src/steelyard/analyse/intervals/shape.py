"""How far the values behind a mean lean to one side, and how much of that so few of them leave open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_VALUES: Final = 30
"""Fewer values show neither how far they lean to one side nor, without labels, whether neighbours depend."""

FEWEST_PER_SKEWNESS: Final = 30
"""So many values per squared skewness make Student's t good enough: its coverage is short by
0.25 skewness^2 / n (Hall 1992, "The Bootstrap and Edgeworth Expansion", section 3.5)."""

MANY_VALUES: Final = 500
"""So many values show what leans: the studentised bootstrap then needs no wider limits (simulated with gamma,
Weibull, lognormal and Pareto values)."""

ERRORS: Final = 1.645
"""Standard errors of a one-sided 95 % bound."""

_TWO_HEAPS: Final = (0.2, 0.5)
"""Largest kurtosis of two heaps of few and of many values, above its least value for the skewness, which is
1 + skewness^2 and that of two distinct values (Pearson): normal values have 2 more, uniform ones 0.8. Ten
lognormal or Pareto values are taken for two heaps in 1 %."""

_FEWEST_IN_HEAP: Final = (2, 5)
"""Values in the smaller of two heaps of few and of many: many bring the binomial rule, of which the normal
limit of a share holds; with two of ten, t covers what may be in the other eight."""

MOST_LEANING: Final = (1.5, 2.0)
"""Largest asymmetry of fewer and of more than 500 values at which the wider interval covers 93 % (simulated
with lognormal, Weibull, Pareto and inverse gamma values)."""

MOST_SPREAD: Final = 0.9
"""Largest standard deviation over mean of fewer than 500 positive values that lean: those that spread farther
reach farther than so few show (simulated with lognormal 1.5)."""

_LEANING: Final = 0.7
"""Asymmetry from which fewer than 500 values get wider limits: 2 times as far on one side."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What values show of the shape of their distribution.

    Parameters
    ----------
    shown : float
        How many independent values show it: fewer than there are where those of a cluster are alike.
    skewness : float
        That of the values, or of the units where few values show it and theirs is larger.
    values : ndarray
        The values themselves.
    has_two_heaps : bool
        Whether nearly all lie at one of two places, enough of them at each.
    """

    shown: float
    skewness: float
    values: NDArray[np.float64]
    has_two_heaps: bool

    @property
    def is_few(self) -> bool:
        """Whether so few show it that they may lean anyhow."""
        return self.shown < FEWEST_VALUES

    @property
    def is_mild(self) -> bool:
        """Whether the upper bound of the skewness is too small for so many values to shorten Student's t."""
        bound = abs(self.skewness) + ERRORS * math.sqrt(6 / self.shown)
        return bound**2 <= self.shown / FEWEST_PER_SKEWNESS

    @property
    def leans(self) -> bool:
        """Whether they are seen to lean to one side, so that the limit on that side is uncertain."""
        if self.shown >= MANY_VALUES or self.has_two_heaps:
            return False
        is_seen = abs(self.skewness) > ERRORS * math.sqrt(6 / self.shown)
        # The flanks of a few runs are those of single runs.
        is_skewed = not self.is_few and asymmetry(self.values) > _LEANING
        return (is_seen and not self.is_mild) or is_skewed

    @property
    def leans_too_far(self) -> bool:
        """Whether no interval of the mean of so few values keeps its level."""
        if self.is_mild or self.has_two_heaps:
            return False
        found = asymmetry(self.values)
        if self.shown >= MANY_VALUES:
            return found > MOST_LEANING[1]
        return found > MOST_LEANING[0] or (found > _LEANING and self._spreads_far)

    @property
    def _spreads_far(self) -> bool:
        mean = float(self.values.mean())
        return float(self.values.min()) > 0 and float(self.values.std()) > MOST_SPREAD * mean


def shape_of(values: NDArray[np.float64], units: NDArray[np.float64], shown: float) -> Shape:
    """Describe values and the units whose mean is asked for.

    References
    ----------
    .. [1] Pearson (1916), Phil. Trans. R. Soc. A 216: kurtosis is at least 1 + skewness^2.
    .. [2] Fisher (1930): the skewness of n normal values has standard error sqrt(6 / n).
    """
    is_few = shown < FEWEST_VALUES
    skew, kurtosis = _standardised(values)
    has_two_heaps = _has_two_heaps(skew, kurtosis, shown)
    if is_few:
        skew_of_units, kurtosis = _standardised(units)
        has_two_heaps |= _has_two_heaps(skew_of_units, kurtosis, units.size, is_few=True)
        skew = max(skew, skew_of_units, key=abs)
    return Shape(shown, skew, values, has_two_heaps)


def _has_two_heaps(skew: float, kurtosis: float, count: float, *, is_few: bool = False) -> bool:
    smaller = count * (1 - abs(skew) / math.sqrt(4 + skew**2)) / 2  # of two distinct values
    return kurtosis - 1 - skew**2 <= _TWO_HEAPS[not is_few] and round(smaller) >= _FEWEST_IN_HEAP[not is_few]


def asymmetry(values: NDArray[np.float64]) -> float:
    """Give how much farther one flank lies from the median than the other, as the logarithm of the ratio.

    A flank is the mean of the values between the 5 % and the 25 % quantile, or the 75 % and the 95 %
    quantile: no single value moves it, so that it says the same of a sample in which the far values are
    missing.

    Examples
    --------
    >>> asymmetry(np.arange(41.0))
    0.0
    """
    ascending = np.sort(values)
    size, outer, inner = values.size, int(0.05 * values.size), max(int(0.25 * values.size), 1)
    median = float(np.median(ascending))
    above = float(ascending[size - inner : size - outer].mean()) - median
    below = median - float(ascending[outer:inner].mean())
    if above <= 0 or below <= 0:
        return 0.0 if above == below else math.inf
    return abs(math.log(above / below))


def _standardised(values: NDArray[np.float64]) -> tuple[float, float]:
    """Give skewness and kurtosis; those of normal values without spread."""
    deviations = values - values.mean()
    squares = deviations * deviations
    variance = float(squares.mean())
    if variance <= 0:
        return 0.0, 3.0
    # In place: more copies of many values take longer to get than to fill.
    deviations *= squares
    squares *= squares
    return float(deviations.mean()) / variance**1.5, float(squares.mean()) / variance**2
