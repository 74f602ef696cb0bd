"""Procedures that give limits: Student's t and its relatives, exact ranks, the bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from steelyard import _native
from steelyard.analyse.comparison.equivalence import Margin, exponential, welch_test
from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.intervals.quantity import Kind, Quantity, trimmed_error
from steelyard.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.input_sample import InputSample
    from steelyard.analyse.intervals.bootstrap import Resampling


class Method(StrEnum):
    """How limits are found."""

    AUTO = "auto"
    PERCENTILE = "percentile"
    BASIC = "basic"
    BCA = "bca"
    STUDENTISED = "studentised"
    T = "t"
    EFFECTIVE_T = "effective_t"
    BATCH_T = "batch_t"
    WIDER = "wider"
    EXACT = "exact"

    @property
    def is_bootstrap(self) -> bool:
        """Whether it resamples."""
        return self in _COLUMNS


_COLUMNS = {Method.PERCENTILE: 1, Method.BASIC: 3, Method.BCA: 5, Method.STUDENTISED: 7}
"""Where the limits of a method stand in what the kernel gives."""


class Contrast(StrEnum):
    """How two samples are set against each other: the second over, or less, the first."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Question:
    """What is estimated, and how surely.

    Parameters
    ----------
    quantity : Quantity
        The statistic.
    contrast : Contrast or None
        ``None`` for one sample.
    level : float
        In (0, 1).
    """

    quantity: Quantity
    contrast: Contrast | None
    level: float


@dataclass(frozen=True, slots=True)
class Found:
    """An estimate with its limits; infinite where none exist at the level.

    Parameters
    ----------
    estimate, low, high : float
        In the unit of the values (a ratio has none).
    undefined : int
        Resamples for which the statistic was not defined.
    """

    estimate: float
    low: float
    high: float
    undefined: int = 0


def by_bootstrap(
    question: Question, sides: Sequence[InputSample], method: Method, resampling: Resampling
) -> Found:
    """Give bootstrap limits of one sample, or of the contrast of two.

    References
    ----------
    .. [1] Davison & Hinkley (1997), "Bootstrap Methods and their Application", ch. 5.
    """
    quantity = question.quantity
    if method is Method.STUDENTISED and not quantity.is_moment:
        message = f"no standard error is known for resamples of `{quantity.name}`"
        hint = 'choose the method "percentile", "basic" or "bca"'
        raise UsageError(message, hint=hint)
    parameters = list(quantity.parameters)
    is_bca = method is Method.BCA
    sizes = {"resamples": resampling.resamples, "seed": resampling.seed, "cell": resampling.cell}
    if question.contrast is None:
        row = _native.bootstrap(
            sides[0].native(), quantity.kernel, parameters, bca=is_bca, level=question.level, **sizes
        )
    else:
        row = _native.contrast_bootstrap(
            sides[0].native(),
            sides[1].native(),
            quantity.kernel,
            parameters,
            contrast=question.contrast.value,
            bca=is_bca,
            level=question.level,
            **sizes,
        )
    factor = 1.0 if question.contrast is Contrast.RATIO else quantity.factor
    column = _COLUMNS[method]
    estimate, low, high = (float(row[place]) * factor for place in (0, column, column + 1))
    return Found(estimate, low, high, int(row[9]))


def by_t(question: Question, sides: Sequence[InputSample], method: Method) -> Found:
    """Give limits by Student's t, or Welch's for two samples.

    With clusters the statistic of each cluster is one observation, and a ratio is that of geometric means.
    Without, the statistic is a mean or a trimmed mean, and the error of a ratio comes from the relative
    errors (delta method on the logarithm).

    References
    ----------
    .. [1] Student (1908); Welch (1947), Biometrika 34; Satterthwaite (1946); Yuen (1974), Biometrika 61
       (trimmed means).
    """
    if method is Method.BATCH_T:
        sides = [side.in_batches() for side in sides]
    if any(side.clusters is not None for side in sides):
        units = [side.unit_values(question.quantity) for side in sides]
        if question.contrast is Contrast.RATIO:
            return _ratio_of_units(question, units)
        moments = [_plain_error(values, float(values.size)) for values in units]
    elif question.quantity.kind is Kind.TRIMMED:
        moments = [
            (question.quantity.of(side.values), *trimmed_error(side.values, question.quantity.parameters[0]))
            for side in sides
        ]
    elif question.quantity.kind is Kind.MEAN:
        is_effective = method is Method.EFFECTIVE_T
        moments = [
            _plain_error(side.values, side.effective if is_effective else float(side.size)) for side in sides
        ]
    else:
        message = f"t speaks of means; `{question.quantity.name}` of single values is none"
        raise UsageError(message, hint="give `clusters`, or choose another method")
    return _welch(question, moments)


def by_rank(question: Question, sides: Sequence[InputSample]) -> Found:
    """Give exact limits: order statistics for a quantile, ranked differences for a shift.

    References
    ----------
    .. [1] David & Nagaraja (2003), "Order Statistics", section 7.1.
    .. [2] Hollander, Wolfe & Chicken (2014), sections 4.2 and 4.3.
    """
    quantity = question.quantity
    if quantity.kind is Kind.SHIFT:
        pair = [side.unit_values(quantity) for side in sides]
        return hodges_lehmann(*pair, level=question.level, contrast=question.contrast or Contrast.DIFFERENCE)
    if quantity.kind is not Kind.QUANTILE or question.contrast is not None:
        message = (
            f"exact limits exist for a quantile of one sample and for a shift, not for `{quantity.name}`"
        )
        raise UsageError(message, hint='choose the method "percentile"')
    if sides[0].clusters is not None or sides[0].strata is not None:
        message = "exact limits of a quantile take values for independent, but clusters or strata are given"
        raise UsageError(message, hint='choose the method "percentile", which draws clusters whole')
    values, p = sides[0].values, quantity.parameters[0]
    low, high, _ = _native.order_interval(values, p, level=question.level)
    return Found(quantity.of(values), low, high)


def hodges_lehmann(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    level: float = 0.95,
    contrast: Contrast = Contrast.DIFFERENCE,
) -> Found:
    """Give the Hodges-Lehmann shift of the second sample against the first, with its interval.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,), n >= 1, independent, same unit; positive for a ratio.
    level : float
        Coverage in (0, 1).
    contrast : Contrast
        Median of all differences, or of all ratios (the shift on the logarithm).

    Returns
    -------
    Found
        Limits infinite where the samples are too small for the level.

    Raises
    ------
    AnalysisError
        If a ratio is asked of values that are not positive.

    References
    ----------
    .. [1] Hodges & Lehmann (1963), Ann. Math. Stat. 34; Hollander, Wolfe & Chicken (2014), section 4.3.

    Examples
    --------
    >>> hodges_lehmann(np.array([1.0, 2.0, 3.0, 4.0]), np.array([11.0, 12.0, 13.0, 14.5])).estimate
    10.0
    """
    if contrast is Contrast.DIFFERENCE:
        estimate, low, high, _ = _native.shift_interval(first, second, level=level)
        return Found(estimate, low, high)
    if min(float(first.min()), float(second.min())) <= 0:
        what = "values"
        raise _not_positive(what)
    estimate, low, high, _ = _native.shift_interval(np.log(first), np.log(second), level=level)
    return Found(exponential(estimate), exponential(low), exponential(high))


def permutation_p_value(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    resampling: Resampling,
) -> float:
    """Give the two-sided p-value of the studentised permutation test of equal means.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,), n >= 2, finite, same unit.
    resampling : Resampling
        Number of relabellings and stream.

    Returns
    -------
    float
        In (0, 1]; never below 1 / (relabellings + 1).

    References
    ----------
    .. [1] Janssen (1997), Stat. Probab. Lett. 36 (studentised: keeps its level with unequal spreads).
    """
    return _native.permutation_test(
        first, second, resamples=resampling.resamples, seed=resampling.seed, cell=resampling.cell
    )[1]


def _plain_error(values: NDArray[np.float64], effective: float) -> tuple[float, float, float]:
    """Mean, its standard error, degrees of freedom."""
    return mean(values), standard_deviation(values) / math.sqrt(effective), max(effective - 1, 1.0)


def _ratio_of_units(question: Question, units: list[NDArray[np.float64]]) -> Found:
    if any(float(values.min()) <= 0 for values in units):
        what = f"{question.quantity.name} of clusters"
        raise _not_positive(what)
    test = welch_test(np.log(units[0]), np.log(units[1]), Margin(level=question.level))
    return Found(test.ratio, test.low, test.high)


def _welch(question: Question, moments: list[tuple[float, float, float]]) -> Found:
    """Limits from (estimate, standard error, degrees of freedom) of one or two independent sides."""
    is_ratio = question.contrast is Contrast.RATIO
    if is_ratio:
        if any(value <= 0 for value, _, _ in moments):
            raise _not_positive(question.quantity.name)
        moments = [(math.log(value), error / value, freedom) for value, error, freedom in moments]
    estimate = moments[0][0] if question.contrast is None else moments[1][0] - moments[0][0]
    variance = sum(error * error for _, error, _ in moments)
    weights = sum(error**4 / freedom for _, error, freedom in moments)
    freedom = variance * variance / weights if weights > 0 else 1.0
    half = float(special.stdtrit(freedom, (1 + question.level) / 2)) * math.sqrt(variance)
    low, high = estimate - half, estimate + half
    if is_ratio:
        return Found(exponential(estimate), exponential(low), exponential(high))
    return Found(estimate, low, high)


def _not_positive(what: str) -> AnalysisError:
    message = f"a ratio is asked for, but not all are positive: {what}"
    return AnalysisError(message, hint='ask for contrast="difference"', code="analysis.not-positive")
