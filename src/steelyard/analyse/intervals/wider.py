"""Limits of a mean that are the wider of two: each procedure keeps its level where the other does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard import _native
from steelyard.analyse.comparison.equivalence import (
    MOST_RELABELLED,
    MOST_UNEVEN,
    Margin,
    exponential,
    ratio_test,
)
from steelyard.analyse.comparison.relabelling import Family, Relabelling
from steelyard.analyse.intervals.dependence import BATCHES, batch_means, depends_on_order, lag_correlation
from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.analyse.intervals.procedure import Contrast, Found, Method
from steelyard.analyse.intervals.shape import ERRORS, FEWEST_VALUES, shape_of
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.input_sample import InputSample
    from steelyard.analyse.intervals.bootstrap import Limits, Resampling
    from steelyard.analyse.intervals.procedure import Question

SMALL: Final = 5
"""With fewer values resamples without any spread are too frequent for a studentised bootstrap."""

LARGE: Final = 100_000
"""From here on the limits of the studentised bootstrap of a mean are Student's to about 1 % of their distance
for the skewness of lognormal(0, 1), 6.2; first Edgeworth term: (2 z^2 + 1) skewness / (6 sqrt n) errors."""

_LONG: Final = 60
_FEW_PARTS: Final = 5
"""Parts of a series of fewer than 60 values: of ten, each is too short to hold what neighbours share."""

_MOST_CORRELATION: Final = 0.9

_UNSURE: Final = 0.4
"""Part of the error that a limit keeps beside values that lean, and of runs too few to show that they do."""

_FAR: Final = 0.05
"""The same on the side to which values lean: far values that did not come would all have been there (both
simulated with Pareto, gamma and lognormal values)."""


def by_wider(question: Question, sides: Sequence[InputSample], resampling: Resampling) -> Found:
    """Give the wider of two limits of a mean of units.

    One sample: the studentised bootstrap, which allows for skewness, and Student's t. Without labels of runs
    the first is stretched by the correlation of neighbours and the second takes the means of ten parts of the
    series, which allow for what that correlation does not show; where neighbours depend for sure, the first
    is t with the effective sample size. Two samples: Welch, which allows for unequal spreads, and
    relabelling, where one side has more than `MOST_UNEVEN` times as many units; without labels the ten parts
    too.

    Parameters
    ----------
    question : Question
        Of a location.
    sides : sequence of InputSample
        One or two.
    resampling : Resampling
        Number of resamples, stream and level.

    References
    ----------
    .. [1] Hall (1988), Ann. Stat. 16 (studentised bootstrap); Schmeiser (1982), Oper. Res. 30 (few batches).
    .. [2] docs/concepts/coverage.md: what it covers.
    """
    units = [side.unit_values(question.quantity) for side in sides]
    is_series = all(side.clusters is None for side in sides)
    if question.contrast is None:
        limits = _of_mean(units[0], sides[0], resampling, is_series=is_series)
        return _widest(mean(units[0]), limits)
    if question.contrast is Contrast.RATIO and not all(float(each.min()) > 0 for each in units):
        message = f"a ratio is asked for, but not all are positive: {question.quantity.name} of units"
        raise AnalysisError(message, hint='ask for contrast="difference"', code="analysis.not-positive")
    if question.contrast is Contrast.RATIO and not is_series:
        test = ratio_test(units[0], units[1], Margin(level=question.level))
        return Found(test.ratio, test.low, test.high)
    return _of_two_means(question, units, is_series=is_series)


def is_drawn(question: Question, sides: Sequence[InputSample], method: Method) -> bool:
    """Tell whether the wider limits rest on resamples."""
    units = sides[0].units_count
    is_one = method is Method.WIDER and question.contrast is None
    return is_one and SMALL <= units <= LARGE


def _of_mean(
    units: NDArray[np.float64], side: InputSample, resampling: Resampling, *, is_series: bool
) -> Iterator[Limits]:
    level, centre = resampling.level, mean(units)
    is_dependent = units.size >= FEWEST_VALUES and depends_on_order(units)
    if is_dependent:
        yield _t_limits(units, _native.effective_size(units), level)
    elif not is_series or units.size < FEWEST_VALUES:
        yield _t_limits(units, float(units.size), level)
    if is_series and units.size >= FEWEST_VALUES:
        parts = batch_means(units, BATCHES if units.size >= _LONG else _FEW_PARTS)
        low, high = _t_limits(parts, float(parts.size), level)
        # The rest of the division makes the last part longer: the limits are about the mean of all.
        yield low + centre - mean(parts), high + centre - mean(parts)
    if is_dependent:
        return
    stretch = _allowance(units, level) if is_series and units.size >= FEWEST_VALUES else 1.0
    shape = shape_of(side.values, units, side.shown)
    near, far = (_UNSURE, _FAR) if shape.leans else (1.0, 1.0)
    if far == 1.0 and shape.is_few and not shape.has_two_heaps:
        far = _UNSURE
    low, high = _drawn(units, level, (far, near) if shape.skewness < 0 else (near, far), resampling)
    yield _reachable(units, (centre + stretch * (low - centre), centre + stretch * (high - centre)))
    if not is_series and shape.is_few and float(units.min()) > 0:
        yield _reachable(units, _lognormal_limits(units, level))


def _reachable(units: NDArray[np.float64], limits: Limits) -> Limits:
    """Cut limits that lie beyond all units by more than these spread.

    Resamples of nearly equal units have hardly any error, and logarithms of units near zero too much.
    """
    lowest, highest = float(units.min()), float(units.max())
    reach = highest - lowest
    return max(limits[0], lowest - reach), min(limits[1], highest + reach)


def _allowance(units: NDArray[np.float64], level: float) -> float:
    """Give how much farther limits must lie because neighbours may resemble each other more than they look.

    The correlation is the upper 95 % bound of that at lag 1, and the rest that of a first-order series:
    an effective size n (1 - r) / (1 + r), its degrees of freedom, and a variance that the sample shows too
    small, by the share of the mean's own.

    References
    ----------
    .. [1] Bayley & Hammersley (1946), Suppl. J. R. Stat. Soc. 8: effective number of observations.
    """
    size = float(units.size)
    correlation = lag_correlation(units) + ERRORS / math.sqrt(size)
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    inflation = (1 + correlation) / (1 - correlation)
    effective = max(size / inflation, 2.0)
    unseen = 1 - (inflation - 1) / (size - 1)
    quantiles = special.stdtrit([effective - 1, size - 1], (1 + level) / 2)
    return float(quantiles[0] / quantiles[1]) * math.sqrt(size / effective / unseen)


def _lognormal_limits(units: NDArray[np.float64], level: float) -> Limits:
    """Give limits of the mean of runs whose scale differs by a lognormal factor; Student's if it hardly does.

    References
    ----------
    .. [1] Olsson (2005), J. Stat. Educ. 13(1): Cox's limits with quantiles of Student's t.
    """
    logarithms = np.log(units)
    variance = standard_deviation(logarithms) ** 2
    error = math.sqrt(variance / units.size + variance**2 / (2 * (units.size - 1)))
    half = float(special.stdtrit(units.size - 1, (1 + level) / 2)) * error
    middle = mean(logarithms) + variance / 2
    return exponential(middle - half), exponential(middle + half)


def _drawn(
    units: NDArray[np.float64], level: float, errors: tuple[float, float], resampling: Resampling
) -> Limits:
    """Give limits of the studentised bootstrap, each with its part of the error.

    Student's where it has none, or would say the same.
    """
    kept = [1 - part * (1 - level) for part in errors]
    plain = [_t_limits(units, float(units.size), each) for each in kept]
    if SMALL <= units.size <= LARGE:
        drawn = {each: _studentised(units, each, resampling) for each in set(kept)}
        plain = [
            drawn[each] if all(map(math.isfinite, drawn[each])) else t
            for each, t in zip(kept, plain, strict=True)
        ]
    return plain[0][0], plain[1][1]


def _studentised(units: NDArray[np.float64], level: float, resampling: Resampling) -> Limits:
    row = _native.bootstrap(
        (units, None, None, None),
        "mean",
        [],
        bca=False,
        level=level,
        resamples=resampling.resamples,
        seed=resampling.seed,
        cell=resampling.cell,
    )
    return float(row[7]), float(row[8])


def _t_limits(units: NDArray[np.float64], effective: float, level: float) -> Limits:
    error = standard_deviation(units) / math.sqrt(effective)
    half = float(special.stdtrit(max(effective - 1, 1.0), (1 + level) / 2)) * error
    return mean(units) - half, mean(units) + half


def _of_two_means(question: Question, units: list[NDArray[np.float64]], *, is_series: bool) -> Found:
    """Give limits of a difference, or of a ratio of arithmetic means."""
    limits = [_welch(question, units)]
    few, many = sorted(each.size for each in units)
    if is_series and few >= FEWEST_VALUES:
        limits.append(_welch(question, [batch_means(each) for each in units]))
    spread = max(float(np.ptp(each)) for each in units)
    if FEWEST_UNITS <= few <= MOST_RELABELLED and many > MOST_UNEVEN * few and spread > 0:
        family = Family.SCALE if question.contrast is Contrast.RATIO else Family.SHIFT
        limits.append(Relabelling(units[0], units[1], family).limits((1 - question.level) / 2))
    means = [mean(each) for each in units]
    is_ratio = question.contrast is Contrast.RATIO
    return _widest(means[1] / means[0] if is_ratio else means[1] - means[0], limits)


def _welch(question: Question, units: Sequence[NDArray[np.float64]]) -> Limits:
    """Give Welch's limits; those of a ratio from the relative errors (delta method on the logarithm)."""
    means = [mean(each) for each in units]
    errors = [standard_deviation(each) / math.sqrt(each.size) for each in units]
    estimate = means[1] - means[0]
    is_ratio = question.contrast is Contrast.RATIO
    if is_ratio:
        errors = [error / value for error, value in zip(errors, means, strict=True)]
        estimate = math.log(means[1] / means[0])
    variance = sum(error**2 for error in errors)
    weights = sum(error**4 / (each.size - 1) for error, each in zip(errors, units, strict=True))
    freedom = variance**2 / weights if weights > 0 else 1.0
    half = float(special.stdtrit(freedom, (1 + question.level) / 2)) * math.sqrt(variance)
    low, high = estimate - half, estimate + half
    return (exponential(low), exponential(high)) if is_ratio else (low, high)


def _widest(estimate: float, limits: Iterator[Limits] | Sequence[Limits]) -> Found:
    lows, highs = zip(*limits, strict=True)
    return Found(estimate, min(lows), max(highs))
