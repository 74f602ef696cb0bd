"""What can be said of two means of which only their printed intervals are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from scipy import special

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.published_rule import PublishedClass, published_class
from steelyard.model import Estimate

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class PrintedInterval:
    """An interval as it stands on paper.

    Parameters
    ----------
    low, high : float
        Limits, above 0.
    level : float
        Coverage that it is printed with.
    half_unit : float
        Half a unit of the last printed digit: so far may a limit be from what was computed.
    """

    low: float
    high: float
    level: float
    half_unit: float

    @property
    def middle(self) -> float:
        """Mean that a symmetric interval is of."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """Standard error of the mean, normal, with the digits that were cut off."""
        half = (self.high - self.low) / 2 + self.half_unit
        return half / float(special.ndtri((1 + self.level) / 2))


def printed_interval(low: str, high: str, level: float) -> PrintedInterval:
    """Read an interval from its digits.

    Parameters
    ----------
    low, high : str
        Limits as printed; thousands may be parted by commas.
    level : float
        Coverage in (0, 1).

    Examples
    --------
    >>> printed_interval("354,663", "357,726", 0.95).middle
    356194.5
    >>> printed_interval("0.228", "0.242", 0.95).half_unit
    0.0005
    """
    limits = [Decimal(text.replace(",", "")) for text in (low, high)]
    decimals = max(0, *(-int(limit.as_tuple().exponent) for limit in limits))
    return PrintedInterval(float(limits[0]), float(limits[1]), level, 0.5 * 10.0**-decimals)


@dataclass(frozen=True, slots=True)
class PrintedComparison:
    """Second over first.

    Parameters
    ----------
    relation : PublishedClass
        Of the second interval against the first one.
    ratio : Estimate
        Of the means.
    verdict : str
        ``equivalent``, ``different`` or ``undecided``.
    """

    relation: PublishedClass
    ratio: Estimate
    verdict: str


def compare_printed(
    first: PrintedInterval, second: PrintedInterval, margin: Margin | None = None
) -> PrintedComparison:
    """Compare two means by their printed intervals.

    The error of each logarithm is the relative error of its mean (delta method), and the two are
    independent. Whatever the intervals leave out, such as other devices and other days, this leaves out too.

    Parameters
    ----------
    first, second : PrintedInterval
        Same unit.
    margin : Margin or None
        Of equivalence; 2 % at level 0.95 by default.

    References
    ----------
    .. [1] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15 (two one-sided tests), with normal limits.

    Examples
    --------
    >>> native = printed_interval("354,663", "357,726", 0.95)
    >>> found = compare_printed(native, printed_interval("549,424", "553,402", 0.95))
    >>> round(100 * (found.ratio.value - 1), 1), found.relation.value, found.verdict
    (54.8, 'higher', 'different')
    """
    margin = margin or Margin()
    logarithm = math.log(second.middle / first.middle)
    error = math.hypot(first.error / first.middle, second.error / second.middle)
    half = float(special.ndtri((1 + margin.level) / 2)) * error
    ratio = Estimate(
        math.exp(logarithm),
        "ratio",
        "printed intervals as normal ones, on the logarithm",
        math.exp(logarithm - half),
        math.exp(logarithm + half),
        margin.level,
        units=0,
        guaranteed=False,
    )
    relation = published_class((second.low, second.high), (first.low, first.high))
    return PrintedComparison(relation, ratio, _verdict(logarithm, error, margin))


def _verdict(logarithm: float, error: float, margin: Margin) -> str:
    """Equivalent inside the margin, different outside it; as in the study, each by its interval."""
    bound = math.log1p(margin.relative)
    if abs(logarithm) + float(special.ndtri(margin.level)) * error < bound:
        return "equivalent"
    if abs(logarithm) - float(special.ndtri((1 + margin.level) / 2)) * error > bound:
        return "different"
    return "undecided"
