"""Steelyard's own comparison: Welch and two one-sided tests on the logarithm of unit values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.analyse.comparison.relabelling import Relabelling
from steelyard.analyse.intervals.dependence import batch_means
from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS, ratio_objections
from steelyard.analyse.intervals.shape import FEWEST_VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST_UNEVEN: Final = 1.5
"""Larger side over smaller one up to which skewness falls out of the difference and Welch keeps its level
(simulated for 37 kinds of data; at 2 it errs in up to 9 %, at 12 in up to 43 % of identical pairs)."""

MOST_RELABELLED: Final = 2000
"""With more units on the smaller side the mean of their logarithms is normal enough for Welch alone."""

WELCH: Final = "welch-log-ratio"
BOTH: Final = "welch-and-relabelling"
OVER_HOSTS: Final = "t-over-hosts"
_WORDS: Final = {
    WELCH: "Welch",
    BOTH: "the wider of Welch and relabelling",
    OVER_HOSTS: "Student's t over hosts",
}

MOST_FURTHER_UNITS: Final = 10_000
"""No advice is given beyond this number of further units."""


class Verdict(StrEnum):
    """What the second sample is against the first."""

    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    DESCRIPTIVE = "descriptive"
    NA = "NA"


@dataclass(frozen=True, slots=True)
class Margin:
    """What counts as no relevant difference, and how surely it is said.

    Parameters
    ----------
    relative : float
        Largest ratio still called equivalent, less 1: 0.02 allows a ratio between 1/1.02 and 1.02.
    level : float
        Coverage of the interval of the ratio; each one-sided test has error 1 - level.
    """

    relative: float = 0.02
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class RatioTest:
    """Ratio of second over first with its tests.

    Parameters
    ----------
    ratio, low, high : float
        Ratio of geometric means of unit values, second over first, and its interval; NaN where undefined.
    units : tuple of int
        Units of the first and the second side.
    p_different : float
        Two-sided Welch test of ratio 1.
    p_equivalent : float
        Larger of the two one-sided tests against the margin.
    further_units : int or None
        Further units per side after which the same spread would settle the question; ``None`` if settled or
        out of reach.
    method : str
        ``welch-log-ratio``; ``welch-and-relabelling``: the wider of both; ``t-over-hosts``.
    objections : tuple of str
        Why the level may be missed; empty where it is kept.
    """

    ratio: float
    low: float
    high: float
    units: tuple[int, int]
    p_different: float
    p_equivalent: float
    further_units: int | None = None
    method: str = WELCH
    objections: tuple[str, ...] = ()

    @property
    def is_guaranteed(self) -> bool:
        """Whether simulations support that the interval and the tests keep their level here."""
        return not self.objections and not self.is_descriptive

    @property
    def words(self) -> str:
        """The procedure in words."""
        return _WORDS[self.method]

    @property
    def is_descriptive(self) -> bool:
        """Whether a side has too few units for a verdict."""
        return min(self.units) < FEWEST_UNITS


def ratio_test(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    margin: Margin | None = None,
    *,
    is_series: bool = False,
) -> RatioTest:
    """Compare two sets of unit values by the ratio second / first.

    Welch's test with Satterthwaite's degrees of freedom on the logarithms; equivalence by two one-sided
    tests with the same standard error. Where one side has more than `MOST_UNEVEN` times as many units as the
    other, skewness and ties do not fall out of the difference: the answer is then the wider one, and the
    p-value the larger one, of Welch (which keeps its level with unequal spreads) and of relabelling (which
    keeps it with any distribution).

    Parameters
    ----------
    first, second : ndarray
        Shape (n_units,), positive, same unit, in the order of measurement; values that are not positive and
        finite count as no unit.
    margin : Margin or None
        Defaults to 2 % at level 0.95.
    is_series : bool
        Whether nobody said that the values are independent: from 30 values a side on, the means of ten parts
        of each side are compared too, and the wider answer is given.

    Returns
    -------
    RatioTest
        With p-values 1 where a side has fewer than 2 units.

    References
    ----------
    .. [1] Welch (1947), Biometrika 34; Satterthwaite (1946).
    .. [2] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15 (two one-sided tests).
    .. [3] Relabelling: see `Relabelling`.

    Examples
    --------
    >>> found = ratio_test(np.array([1.0, 1.1, 0.9, 1.0, 1.05]), np.array([2.0, 2.2, 1.9, 2.1, 2.0]))
    >>> round(found.ratio, 2), found.p_different < 0.001, found.is_guaranteed
    (2.02, True, True)
    """
    margin = margin or Margin()
    a, b = _logarithms(first), _logarithms(second)
    found = _robust(a, b, margin)
    if is_series and min(found.units) >= FEWEST_VALUES:
        found = wider(found, welch_test(batch_means(a), batch_means(b), margin))
    return replace(
        found,
        further_units=_further_units(a, b, math.log(found.ratio), margin) if found.low == found.low else None,
        objections=tuple(ratio_objections(a, b, is_series=is_series)),
    )


def _robust(a: NDArray[np.float64], b: NDArray[np.float64], margin: Margin) -> RatioTest:
    """Give Welch's answer, or the wider one of Welch and relabelling where the sides are uneven."""
    found = welch_test(a, b, margin)
    few, many = sorted(found.units)
    if few < FEWEST_UNITS or many <= MOST_UNEVEN * few or few > MOST_RELABELLED or found.low == found.high:
        return found
    relabelling = Relabelling(a, b)
    low, high = relabelling.limits((1 - margin.level) / 2)
    p_different = relabelling.p_value(0.0)
    # The p-value is not monotonous to the last relabelling; interval and test say the same all the same.
    if p_different > 1 - margin.level:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low < 0 < high:
        p_different = 1 - margin.level
    bound = math.log1p(margin.relative)
    other = RatioTest(
        found.ratio,
        exponential(low),
        exponential(high),
        found.units,
        p_different,
        max(relabelling.p_below(bound), relabelling.p_above(-bound)),
    )
    return replace(wider(found, other), method=BOTH)


def wider(one: RatioTest, other: RatioTest) -> RatioTest:
    """Give what both answers leave open."""
    return replace(
        one,
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        p_different=max(one.p_different, other.p_different),
        p_equivalent=max(one.p_equivalent, other.p_equivalent),
    )


def welch_test(a: NDArray[np.float64], b: NDArray[np.float64], margin: Margin) -> RatioTest:
    """Give Welch's test of logarithms, without a look at whether it keeps its level.

    Parameters
    ----------
    a, b : ndarray
        Shape (n,) and (m,): logarithms of the unit values, finite.
    margin : Margin
        Of equivalence, and the level.
    """
    units = (a.size, b.size)
    if min(units) == 0:
        return RatioTest(math.nan, math.nan, math.nan, units, 1.0, 1.0)
    difference = mean(b) - mean(a)
    if min(units) < 2:  # noqa: PLR2004 - one unit has no spread
        return RatioTest(exponential(difference), math.nan, math.nan, units, 1.0, 1.0)
    return student_test(difference, *_satterthwaite(a, b), margin, units)


def student_test(
    difference: float,
    error: float,
    freedom: float,
    margin: Margin,
    units: tuple[int, int],
    method: str = WELCH,
) -> RatioTest:
    """Give the test of a difference of logarithms by Student's t.

    Parameters
    ----------
    difference, error : float
        The difference and its standard error.
    freedom : float
        Degrees of freedom of the error.
    margin : Margin
        Of equivalence, and the level.
    units : tuple of int
        Units of each side.
    method : str
        How it was made.
    """
    half = float(scipy.special.stdtrit(freedom, (1 + margin.level) / 2)) * error
    bound = math.log1p(margin.relative)
    return RatioTest(
        ratio=exponential(difference),
        low=exponential(difference - half),
        high=exponential(difference + half),
        units=units,
        p_different=min(1.0, 2 * upper_tail(abs(difference), error, freedom)),
        p_equivalent=max(
            upper_tail(bound - difference, error, freedom), upper_tail(bound + difference, error, freedom)
        ),
        method=method,
    )


def exponential(logarithm: float) -> float:
    """Give the exponential; infinite beyond the range of numbers."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


def _logarithms(values: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = values[np.isfinite(values) & (values > 0)]
    return np.log(kept)


def _satterthwaite(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    shares = [standard_deviation(side) ** 2 / side.size for side in (a, b)]
    total = sum(shares)
    if total <= 0:
        return 0.0, float(a.size + b.size - 2)
    weights = sum(share**2 / (side.size - 1) for share, side in zip(shares, (a, b), strict=True))
    return math.sqrt(total), total**2 / weights


def upper_tail(distance: float, error: float, freedom: float) -> float:
    """Give the probability that t exceeds distance / error; without spread a distance is certain."""
    if error <= 0:
        return 0.0 if distance > 0 else 1.0 if distance < 0 else 0.5
    return float(scipy.special.stdtr(freedom, -distance / error))


def _further_units(
    a: NDArray[np.float64], b: NDArray[np.float64], difference: float, margin: Margin
) -> int | None:
    """Find the smallest number of further units per side that settles the question, all else equal."""
    bound = math.log1p(margin.relative)
    inside = abs(difference) < bound
    room = bound - abs(difference) if inside else abs(difference)
    tail = margin.level if inside else (1 + margin.level) / 2
    variances = [standard_deviation(side) ** 2 for side in (a, b)]
    if room <= 0:
        return None
    for further in _candidates():
        sizes = [side.size + further for side in (a, b)]
        error = math.sqrt(sum(v / n for v, n in zip(variances, sizes, strict=True)))
        if error * float(scipy.special.stdtrit(sum(sizes) - 2, tail)) <= room:
            return further or None
    return None


def _candidates() -> Sequence[int]:
    """Numbers of further units that are tried: all small ones, then steps of about 10 %."""
    sizes = list(range(21))
    while sizes[-1] < MOST_FURTHER_UNITS:
        sizes.append(math.ceil(sizes[-1] * 1.1))
    return sizes


def verdict_of(test: RatioTest, p_different: float, p_equivalent: float, level: float = 0.95) -> Verdict:
    """Turn a test into a verdict about the second side.

    Equivalence goes first: a difference that is certain but inside the margin is not relevant.

    Parameters
    ----------
    test : RatioTest
        The comparison.
    p_different, p_equivalent : float
        Its p-values after the correction for the family it belongs to.
    level : float
        1 - level is the error of each claim.

    Examples
    --------
    >>> verdict_of(RatioTest(1.3, 1.2, 1.4, (8, 8), 0.001, 0.99), 0.01, 0.99).value
    'slower'
    """
    if min(test.units) == 0:
        return Verdict.NA
    if test.is_descriptive:
        return Verdict.DESCRIPTIVE
    if p_equivalent < 1 - level:
        return Verdict.EQUIVALENT
    if p_different < 1 - level:
        return Verdict.SLOWER if test.ratio > 1 else Verdict.FASTER
    return Verdict.INCONCLUSIVE


def brown_forsythe(groups: Sequence[NDArray[np.float64]]) -> float:
    """Give the p-value of the Brown-Forsythe test of equal spread.

    Parameters
    ----------
    groups : sequence of ndarray
        At least 2, each shape (n_i,), n_i >= 2, independent values.

    Returns
    -------
    float
        1 where no group has spread.

    References
    ----------
    .. [1] Brown & Forsythe (1974), J. Am. Stat. Assoc. 69: analysis of variance of distances from the
       group's median.
    """
    distances = [np.abs(group - np.median(group)) for group in groups]
    sizes = [distance.size for distance in distances]
    total = sum(sizes)
    grand = mean(np.concatenate(distances))
    between = sum(n * (mean(d) - grand) ** 2 for n, d in zip(sizes, distances, strict=True)) / (
        len(groups) - 1
    )
    within = sum((n - 1) * standard_deviation(d) ** 2 for n, d in zip(sizes, distances, strict=True))
    if within <= 0:
        return 1.0 if between <= 0 else 0.0
    f = between / (within / (total - len(groups)))
    return float(scipy.special.fdtrc(len(groups) - 1, total - len(groups), f))
