"""How the rates of rare events compare where runs scatter by more than chance: runs are the units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Events of several runs.

    Parameters
    ----------
    counts : tuple of int
        Events of each run.
    exposures : tuple of float
        What they were counted over in each run, such as calls; above 0.
    """

    counts: tuple[int, ...]
    exposures: tuple[float, ...]

    @property
    def total(self) -> int:
        """Events of all runs."""
        return sum(self.counts)

    @property
    def exposure(self) -> float:
        """What all of them were counted over."""
        return math.fsum(self.exposures)

    @property
    def rate(self) -> float:
        """Events per unit of exposure."""
        return self.total / self.exposure

    @property
    def squares(self) -> float:
        """Pearson's sum over runs; each is one expected to add one."""
        if not self.total:
            return 0.0
        expected = [self.rate * each for each in self.exposures]
        return math.fsum(
            (count - mean) ** 2 / mean for count, mean in zip(self.counts, expected, strict=True)
        )


@dataclass(frozen=True, slots=True)
class DispersedRatio:
    """A ratio of rates with its limits.

    Parameters
    ----------
    value, low, high : float
        Second over first; over nothing the value is not a number, and the upper limit infinite.
    dispersion : float
        How many times as much as by chance the counts of runs scatter; 1 at least.
    """

    value: float
    low: float
    high: float
    dispersion: float


def dispersed_rate_ratio(first: RunCounts, second: RunCounts, level: float = LEVEL) -> DispersedRatio:
    """Give the rate of the second events over that of the first.

    Given their sum, the counts of two Poisson processes are binomial; the exact limits of that share give
    those of the ratio. Where runs scatter by more than chance, counts are divided by the dispersion first.

    Parameters
    ----------
    first, second : RunCounts
        Of at least one run each.
    level : float
        Coverage in (0, 1).

    References
    ----------
    .. [1] Przyborowski & Wilenski (1940), Biometrika 31 (conditional test); Clopper & Pearson (1934).
    .. [2] McCullagh & Nelder (1989), Generalized Linear Models, section 6.2.3: Pearson's estimate of the
       dispersion. That counts are divided by it before exact limits are taken is an own definition.

    Examples
    --------
    >>> found = dispersed_rate_ratio(RunCounts((1155,), (1e7,)), RunCounts((53,), (1e7,)))
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.0459, 0.0342, 0.0604)
    """
    dispersion = _dispersion([first, second])
    one, other = first.total / dispersion, second.total / dispersion
    tail = (1 - level) / 2
    share_low = float(special.betaincinv(other, one + 1, tail)) if other else 0.0
    share_high = float(special.betaincinv(other + 1, one, 1 - tail)) if one else 1.0
    exposures = first.exposure / second.exposure
    value = second.rate / first.rate if first.total else math.nan
    return DispersedRatio(value, _odds(share_low) * exposures, _odds(share_high) * exposures, dispersion)


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf


def _dispersion(groups: Sequence[RunCounts]) -> float:
    freedom = sum(len(each.counts) - 1 for each in groups if each.total)
    squares = math.fsum(each.squares for each in groups)
    return max(1.0, squares / freedom) if freedom > 0 else 1.0
