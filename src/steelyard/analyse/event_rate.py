"""How often rare events happen, and how two such rates compare, with runs as the units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Events:
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
class RateInterval:
    """A rate, or a ratio of rates, with its limits.

    Parameters
    ----------
    value, low, high : float
        The limits; the value of a ratio over nothing is not a number, and its upper limit infinite.
    dispersion : float
        How many times as much as by chance the counts of runs scatter; 1 at least.
    """

    value: float
    low: float
    high: float
    dispersion: float


def event_rate(events: Events, level: float = LEVEL) -> RateInterval:
    """Give a rate with exact limits, wider where runs scatter by more than chance.

    Parameters
    ----------
    events : Events
        Of at least one run.
    level : float
        Coverage in (0, 1).

    References
    ----------
    .. [1] Garwood (1936), Biometrika 28: exact limits of a Poisson mean.
    .. [2] McCullagh & Nelder (1989), Generalized Linear Models, section 6.2.3: Pearson's estimate of the
       dispersion; here a count is divided by it before the exact limits are taken.

    Examples
    --------
    >>> found = event_rate(Events((10,), (1e6,)))
    >>> found.value, round(found.low * 1e6, 2), round(found.high * 1e6, 2)
    (1e-05, 4.8, 18.39)
    """
    dispersion = _dispersion([events])
    count, tail = events.total / dispersion, (1 - level) / 2
    low = float(special.gammaincinv(count, tail)) if count else 0.0
    high = float(special.gammaincinv(count + 1, 1 - tail))
    scale = dispersion / events.exposure
    return RateInterval(events.rate, low * scale, high * scale, dispersion)


def rate_ratio(first: Events, second: Events, level: float = LEVEL) -> RateInterval:
    """Give the rate of the second events over that of the first.

    Given their sum, the counts of two Poisson processes are binomial; the exact limits of that share give
    those of the ratio. Where runs scatter by more than chance, counts are divided by the dispersion first.

    Parameters
    ----------
    first, second : Events
        Of at least one run each.
    level : float
        Coverage in (0, 1).

    References
    ----------
    .. [1] Przyborowski & Wilenski (1940), Biometrika 31 (conditional test); Clopper & Pearson (1934).

    Examples
    --------
    >>> found = rate_ratio(Events((1155,), (1e7,)), Events((53,), (1e7,)))
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
    return RateInterval(value, _odds(share_low) * exposures, _odds(share_high) * exposures, dispersion)


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf


def _dispersion(groups: Sequence[Events]) -> float:
    freedom = sum(len(each.counts) - 1 for each in groups if each.total)
    squares = math.fsum(each.squares for each in groups)
    return max(1.0, squares / freedom) if freedom > 0 else 1.0
