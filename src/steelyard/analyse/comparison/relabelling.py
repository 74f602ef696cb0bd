"""Two samples compared by exchanging their labels: exact for any distribution, with ties and unequal sizes.

If the second sample is the first one times a factor (or plus a shift), all ways to deal the values to the
two sides are equally likely once the factor is taken out, whatever the values look like. So the rank of the
studentised difference among those of all dealings gives a probability that needs no normal limit, and the
factors that are not rejected are an interval.
"""

from __future__ import annotations

import itertools
import math
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import mean, standard_deviation

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MOST_LISTED: Final = 10_000
"""So many dealings are all listed; of more, `DRAWN` are drawn."""

DRAWN: Final = 4_999
FEWEST_DRAWN: Final = 999
MOST_CELLS: Final = 30_000_000
"""Values times dealings that are drawn at most; larger samples get fewer dealings."""

_SEED: Final = 20_260
_CLOSE: Final = 1e-9
"""Statistics that are equal in exact arithmetic differ by rounding only."""

_FLOOR: Final = 1e-13
"""What cancellation leaves of the variance of values without spread, beside their squares."""

_STEPS: Final = 60
_PRECISION: Final = 1e-3
"""Limits are found to this part of the standard error."""


class Family(StrEnum):
    """How the second sample may differ from the first."""

    SHIFT = "shift"
    """By a term: a difference, or a ratio of logarithms."""
    SCALE = "scale"
    """By a factor of positive values."""


class Relabelling:
    """All dealings of two samples to two sides, and where the samples as given stand among them.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,) and (m,), n >= 2, m >= 2, finite; positive for `Family.SCALE`.
    family : Family
        How the second may differ from the first.

    References
    ----------
    .. [1] Pitman (1937), Suppl. J. R. Stat. Soc. 4 (limits by inversion); Janssen (1997), Stat. Probab.
       Lett. 36 (studentised: keeps its level in the limit when spreads differ too).
    .. [2] Phipson & Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9: the samples as given count among the
       dealings that are drawn.

    Examples
    --------
    >>> found = Relabelling(np.array([1.0, 2.0, 3.0, 4.0]), np.array([11.0, 12.0, 13.0, 14.5]))
    >>> found.p_value(0.0) == 2 / 70
    True
    """

    def __init__(
        self, first: NDArray[np.float64], second: NDArray[np.float64], family: Family = Family.SHIFT
    ) -> None:
        self._family = family
        self._mean = mean(first)
        self._offset = mean(second) - self._mean if family is Family.SHIFT else mean(second) / self._mean
        # Rounding stays far below the spread where both samples lie about 0, whatever their places.
        moved = second - self._offset if family is Family.SHIFT else second / self._offset
        first, moved = first - self._mean, moved - self._mean
        self._sizes = (first.size, second.size)
        self._sign = 1.0 if second.size <= first.size else -1.0
        places, self._is_listed = _dealings(first.size + second.size, min(self._sizes))
        is_second = np.arange(first.size + second.size) >= first.size
        values = np.concatenate([first, moved])
        # The samples as given are the first row: the smaller side is the second one or the first.
        given = np.arange(second.size) + first.size if self._sign > 0 else np.arange(first.size)
        rows = np.concatenate([given[None, :].astype(places.dtype), places])
        self._of_first = _powers(np.where(is_second, 0.0, values), rows)
        self._of_second = _powers(np.where(is_second, values, 0.0), rows)
        self._count = is_second[rows].sum(axis=1).astype(np.float64)
        self._all_first = (float(first.sum()), float((first * first).sum()))
        self._all_second = (float(moved.sum()), float((moved * moved).sum()))
        self._error = math.sqrt(
            standard_deviation(first) ** 2 / first.size + standard_deviation(moved) ** 2 / second.size
        )

    @property
    def estimate(self) -> float:
        """Difference of the means, or their ratio."""
        return self._offset

    def p_above(self, effect: float) -> float:
        """Give the probability of so large a second sample if it differs by no more than `effect`."""
        return self._share(self._statistics(effect))

    def p_below(self, effect: float) -> float:
        """Give the probability of so small a second sample if it differs by no less than `effect`."""
        return self._share(-self._statistics(effect))

    def p_value(self, effect: float) -> float:
        """Give the two-sided p-value, both tails equal."""
        return min(1.0, 2 * min(self.p_above(effect), self.p_below(effect)))

    def limits(self, p_tail: float) -> tuple[float, float]:
        """Give the effects between which neither tail is rejected.

        Parameters
        ----------
        p_tail : float
            Error on each side, in (0, 0.5).

        Returns
        -------
        tuple of float
            Infinite (0 for a factor on the lower side) where so few dealings cannot err so rarely.
        """
        low = self._limit(p_tail, self.p_above, -1.0)
        high = self._limit(p_tail, self.p_below, 1.0)
        return low, high

    def _limit(self, p_tail: float, p_of: Callable[[float], float], direction: float) -> float:
        """Go from the estimate until the test rejects, then halve the way between."""
        inside, outside, step = 0.0, 0.0, max(self._error, 1e-12 * abs(self._mean))
        for _ in range(_STEPS):
            outside += direction * step
            if p_of(self._effect(outside)) <= p_tail:
                break
            inside, step = outside, 2 * step
        else:
            return direction * math.inf if self._family is Family.SHIFT or direction > 0 else 0.0
        while abs(outside - inside) > _PRECISION * self._error:
            middle = (inside + outside) / 2
            if middle in {inside, outside}:
                break
            if p_of(self._effect(middle)) <= p_tail:
                outside = middle
            else:
                inside = middle
        return self._effect(outside)

    def _effect(self, distance: float) -> float:
        """Give the effect at a distance from the estimate; factors go in equal steps of their logarithm."""
        if self._family is Family.SHIFT:
            return self._offset + distance
        return self._offset * math.exp(min(distance / self._mean, 700.0))

    def _share(self, statistics: NDArray[np.float64]) -> float:
        """Give the share of dealings at least as far up as the samples as given, which stand first."""
        given = float(statistics[0])
        bound = given - _CLOSE * abs(given) if math.isfinite(given) else given
        count = int(np.count_nonzero(statistics[1:] >= bound))
        return count / (statistics.size - 1) if self._is_listed else (count + 1) / statistics.size

    def _statistics(self, effect: float) -> NDArray[np.float64]:
        """Welch's t, second less first, of every dealing after the effect is taken out."""
        first, second = self._of_first, self._of_second
        # Each value of the second sample becomes factor * value + term.
        if self._family is Family.SHIFT:
            factor, term = 1.0, self._offset - effect
        else:
            factor = self._offset / effect
            term = (factor - 1) * self._mean
        sums = first[0] + factor * second[0] + term * self._count
        squares = first[1] + factor**2 * second[1] + 2 * factor * term * second[0] + term**2 * self._count
        size, own, other = self._sizes[1], self._all_first, self._all_second
        total = own[0] + factor * other[0] + term * size
        total_squares = own[1] + factor**2 * other[1] + 2 * factor * term * other[0] + term**2 * size
        small, large = min(self._sizes), max(self._sizes)
        chosen = _mean_and_error(sums, squares, small)
        rest = _mean_and_error(total - sums, total_squares - squares, large)
        difference, error = chosen[0] - rest[0], np.sqrt(chosen[1] + rest[1])
        scale = math.sqrt(total_squares / (small + large))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = difference / error
        without = error <= 0
        apart = difference[without]
        t[without] = np.where(np.abs(apart) > _CLOSE * scale, np.copysign(np.inf, apart), 0.0)
        return self._sign * t


def _powers(
    values: NDArray[np.float64], rows: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give sums and sums of squares of the values at the places of each row."""
    return values[rows].sum(axis=1), (values * values)[rows].sum(axis=1)


def _mean_and_error(
    sums: NDArray[np.float64], squares: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and squared standard error from sums."""
    means = sums / size
    variances = (squares - sums * means) / (size - 1)
    variances[variances <= _FLOOR * np.abs(squares)] = 0.0
    return means, variances / size


@lru_cache(maxsize=8)
def _dealings(total: int, small: int) -> tuple[NDArray[np.integer], bool]:
    """Places of the values that the smaller side gets, a row for each dealing; and whether these are all."""
    count = math.comb(total, small)
    if count <= MOST_LISTED:
        listed = itertools.chain.from_iterable(itertools.combinations(range(total), small))
        return np.fromiter(listed, dtype=np.int32, count=count * small).reshape(count, small), True
    draws = max(FEWEST_DRAWN, min(DRAWN, MOST_CELLS // total))
    rng = np.random.default_rng([_SEED, total, small])
    rows = np.empty((draws, small), dtype=np.int32)
    chunk = max(1, 1_000_000 // total)
    for begin in range(0, draws, chunk):
        end = min(begin + chunk, draws)
        keys = rng.random((end - begin, total))
        rows[begin:end] = np.sort(np.argpartition(keys, small - 1, axis=1)[:, :small], axis=1)
    return rows, False
