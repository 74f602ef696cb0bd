"""Whether an interval or a comparison keeps its level: the one rule, as simulations support it.

Every part of the rule is a number that the truth page (docs/concepts/coverage.md) was computed with: how many
independent units there are, whether their order says something, how far they lean to one side, and whether
one value rules them. Intervals, comparisons, claims and imported results ask here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard import _native
from steelyard.analyse.intervals.quantity import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.input_sample import Side
    from steelyard.analyse.intervals.procedure import Found, Question

FEWEST_UNITS: Final = 5
"""Fewer independent units on a side allow a description, no verdict."""

FEWEST_CLUSTERS: Final = 8
"""With fewer units of a mean it is too likely that all are of one kind, e.g. of one of two memory layouts."""

FEWEST_VALUES: Final = 30
"""Fewer values show neither how far they lean to one side nor, without labels, whether neighbours depend."""

FEWEST_UNEQUAL: Final = 40
"""The same where less than half of the values count because clusters hold unequal numbers of them: with 31
of 529, 8 % of values times 3 are covered in 87 %, with 42 of 540 in 96 % (simulated)."""

FEWEST_EFFECTIVE: Final = 50
"""Effective sizes below this guarantee nothing (simulated: series with correlation 0.5 and 0.9)."""

FEWEST_DEPENDENT: Final = 300
"""In shorter series whose neighbours resemble each other the effective size is too uncertain."""

FEWEST_EFFECTIVE_DEPENDENT: Final = 100
"""Effective size of such a series from which its ten parts are long enough: of 50, intervals that are
guaranteed cover 88 % (simulated with correlation 0.9)."""

FEWEST_EVENTS: Final = 5
"""Fewer events in a tail do not show how far it reaches."""

FEWEST_CLUSTERS_DRAWN: Final = 30
"""Percentile limits from fewer clusters cover about 90 instead of 95 % (simulated with 10)."""

FEWEST_STEPS: Final = 10
"""Fewer distinct values between the quartiles show the steps of the clock, not the spread of the times."""

BATCHES: Final = 10
"""Parts of a series whose means are compared with the scatter inside them."""

MOST_OF_ONE: Final = 0.8
"""Part of the sum of squared deviations that one value may have: how often such a value comes is unknown."""

_LEANING: Final = ((30, 1.2), (100, 1.35), (499, 1.35), (500, 2.0))
"""Largest asymmetry of so many values (log-linear between) at which the wider interval covers 93 %:
simulated with gamma, Weibull, lognormal and Pareto values."""

MOST_SPREAD: Final = 0.9
"""Largest standard deviation over mean of fewer than `FEWEST_SPREAD` positive values that lean to one side:
those that spread farther reach farther than so few show, also where the few that came look alike (simulated
with lognormal 1.5)."""
FEWEST_SPREAD: Final = 500

FEWEST_PER_SKEWNESS: Final = 30
"""So many values per squared skewness make Student's t good enough: its coverage is short by
0.25 skewness^2 / n (Hall 1992, "The Bootstrap and Edgeworth Expansion", section 3.5)."""

_PERCENTILES: Final = {"percentile", "basic", "bca"}
_OF_UNITS: Final = {"wider", "t", "effective_t", "batch_t"}
"""Methods that speak of the mean of units."""

_ALLOWING: Final = {"wider", "effective_t", "batch_t"}
"""Methods that allow for neighbours that resemble each other."""

_LAG_BOUND: Final = 2.0
"""Standard errors of the lag-1 correlation of independent values beyond which neighbours depend (2.3 %)."""

_BATCH_ERROR: Final = 0.01
"""Error of the F test of ten batches."""


def depends_on_order(values: NDArray[np.float64]) -> bool:
    """Tell whether a series shows that its values are not independent: neighbours alike, or parts unlike.

    Independent values are called dependent in 3 % of samples.

    Parameters
    ----------
    values : ndarray
        Shape (n,), in the order of measurement. Fewer than 10 values show nothing.

    References
    ----------
    .. [1] Kendall (1954), Biometrika 41: the lag-1 correlation has mean -1/n and standard error 1/sqrt(n).
    .. [2] Fisher (1925), one-way analysis of variance of ten parts.

    Examples
    --------
    >>> depends_on_order(np.arange(40.0)), depends_on_order(np.tile([1.0, 2.0, 1.5, 0.5], 10))
    (True, False)
    """
    if values.size < BATCHES or float(np.ptp(values)) <= 0:
        return False
    if lag_correlation(values) > _LAG_BOUND / math.sqrt(values.size):
        return True
    if values.size < FEWEST_VALUES:
        return False
    labels = batch_labels(values.size)
    counts = np.bincount(labels)
    means = np.bincount(labels, values) / counts
    within = float(np.sum((values - means[labels]) ** 2)) / (values.size - BATCHES)
    between = float(np.sum(counts * (means - values.mean()) ** 2)) / (BATCHES - 1)
    if within <= 0:
        return between > 0
    return float(scipy.special.fdtrc(BATCHES - 1, values.size - BATCHES, between / within)) < _BATCH_ERROR


def lag_correlation(values: NDArray[np.float64]) -> float:
    """Give the correlation of neighbours, corrected for its bias of -1/n; 0 without spread."""
    deviations = values - values.mean()
    total = float(np.sum(deviations * deviations))
    if total <= 0:
        return 0.0
    return float(np.sum(deviations[1:] * deviations[:-1])) / total + 1 / values.size


def batch_labels(size: int, parts: int = BATCHES) -> NDArray[np.int64]:
    """Give the number of the part of each value, for parts of equal length; the rest joins the last."""
    return np.minimum(np.arange(size) // (size // parts), parts - 1)


def batch_means(values: NDArray[np.float64], parts: int = BATCHES) -> NDArray[np.float64]:
    """Give the means of the parts of a series of at least as many values."""
    labels = batch_labels(values.size, parts)
    return np.bincount(labels, values) / np.bincount(labels)


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


def skewness(values: NDArray[np.float64]) -> float:
    """Give the third central moment over the cubed standard deviation (divisor n); 0 without spread."""
    deviations = values - values.mean()
    variance = float(np.mean(deviations**2))
    return float(np.mean(deviations**3)) / variance**1.5 if variance > 0 else 0.0


def unseen_share(count: int, level: float = 0.95) -> float:
    """Give the largest share of values of a kind that may not have come among so many ("rule of three").

    Examples
    --------
    >>> round(unseen_share(100), 3)
    0.03
    """
    return 1.0 if count < 1 else -math.expm1(math.log1p(-level) / count)


def mean_objections(
    units: NDArray[np.float64],
    values: NDArray[np.float64],
    *,
    is_series: bool,
    is_wider: bool = True,
    has_tails: bool = True,
    counting: float | None = None,
) -> list[str]:
    """Give every reason why an interval of a mean of units may miss its level; none if it keeps it.

    Parameters
    ----------
    units : ndarray
        Shape (k,), in the order of measurement: what is independent, e.g. the mean of each run.
    values : ndarray
        Shape (n,), n >= k: all single values behind them; the units themselves where each is one value.
    is_series : bool
        Whether nobody said what is independent, so that the units are single values in their order.
    is_wider : bool
        Whether the limits are those of the method ``wider``, which allow for skewness and short memory.
    has_tails : bool
        Whether far values move the statistic: those of a mean do, those of a trimmed mean or a median do not.
    counting : float or None
        How many of the values count: fewer than n where the units hold unequal numbers of them, because one
        value that is a unit by itself weighs as much as a whole unit of many. Defaults to n.
    """
    if float(np.ptp(units)) <= 0:
        return ["the values have no spread"]
    what = "values without labels of runs" if is_series else "clusters"
    fewest = FEWEST_VALUES if is_series else FEWEST_CLUSTERS
    if units.size < fewest:
        return [f"{units.size} {what}, at least {fewest} needed"]
    counting = values.size if counting is None else counting
    fewest = FEWEST_UNEQUAL if 2 * counting < values.size else FEWEST_VALUES
    if counting < fewest:
        as_many = "" if counting == values.size else f" in unequal clusters count as {counting:.0f}"
        return [f"{values.size} values{as_many}, at least {fewest} needed to see how they are spread"]
    found = list(_of_order(units, is_series=is_series, is_allowed=is_wider))
    return found + list(_of_tails(units, values, is_wider=is_wider)) if has_tails else found


def _of_tails(units: NDArray[np.float64], values: NDArray[np.float64], *, is_wider: bool) -> Iterator[str]:
    """Say where one value rules a mean, or where the values lean so far that its interval is too short."""
    deviations = (units - units.mean()) ** 2
    share = float(deviations.max() / deviations.sum()) if deviations.any() else 0.0
    if share > MOST_OF_ONE:
        yield f"one value carries {share:.0%} of the variance, and how often its like comes is unknown"
    if skewness(values) ** 2 <= values.size / FEWEST_PER_SKEWNESS:
        return
    spreads_far = (
        values.size < FEWEST_SPREAD and values.min() > 0 and values.std() > MOST_SPREAD * values.mean()
    )
    bound = float(np.interp(math.log(values.size), *_leaning_bounds()))
    if not is_wider or spreads_far or asymmetry(values) > bound:
        yield f"{values.size} values are too few for data that lean so far to one side"


def _leaning_bounds() -> tuple[list[float], list[float]]:
    return [math.log(size) for size, _ in _LEANING], [bound for _, bound in _LEANING]


def ratio_objections(
    first: NDArray[np.float64], second: NDArray[np.float64], *, is_series: bool, is_allowed: bool = True
) -> list[str]:
    """Give every reason why a comparison of units may miss its level; none if it keeps it.

    Relabelling keeps the level whatever the distribution, its ties and the sizes of the sides, so that only
    the number of units, their independence and a spread at all are asked for.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,) and (m,), in the order of measurement.
    is_series : bool
        Whether nobody said that the values are independent.
    is_allowed : bool
        Whether the procedure allows for neighbours of a series that resemble each other.
    """
    if first.size and second.size and max(float(np.ptp(first)), float(np.ptp(second))) <= 0:
        return ["the values have no spread"]
    found: list[str] = []
    # What makes the neighbours of one side resemble each other does so on the other side, seen or not.
    is_dependent = is_series and any(depends_on_order(side) for side in (first, second))
    for side in (first, second):
        if side.size < FEWEST_UNITS:
            found.append(f"{side.size} units on a side, at least {FEWEST_UNITS} needed")
        elif is_series and side.size < FEWEST_VALUES:
            found.append(
                f"{side.size} values do not show whether neighbours depend on each other,"
                f" at least {FEWEST_VALUES} or labels of the runs needed"
            )
        else:
            found += _of_order(side, is_series=is_series, is_allowed=is_allowed, is_dependent=is_dependent)
    return list(dict.fromkeys(found))


def _of_order(
    units: NDArray[np.float64], *, is_series: bool, is_allowed: bool, is_dependent: bool = False
) -> Iterator[str]:
    """Say where the order of the units contradicts their independence."""
    if not (is_dependent or depends_on_order(units)):
        return
    if not is_series:
        yield "the units change in the order in which they were measured"
    elif not is_allowed:
        yield "neighbours resemble each other, the method takes them for independent"
    else:
        effective = _native.effective_size(units)
        if units.size < FEWEST_DEPENDENT or effective < FEWEST_EFFECTIVE_DEPENDENT:
            yield (
                f"neighbours resemble each other: effective size {effective:.0f} of {units.size},"
                f" at least {FEWEST_EFFECTIVE_DEPENDENT} of {FEWEST_DEPENDENT} needed"
            )


def objections(question: Question, sides: Sequence[Side], method: str, found: Found) -> list[str]:
    """Give every reason why the interval may miss its level; none if it is guaranteed.

    Parameters
    ----------
    question : Question
        What was estimated.
    sides : sequence of Side
        The samples as given.
    method : str
        How, one of `Method`.
    found : Found
        The outcome.
    """
    reasons = list(_of_outcome(question, found))
    if method in _OF_UNITS or question.quantity.kind is Kind.SHIFT:
        return list(dict.fromkeys([*reasons, *_of_units(question, sides, method)]))
    for side in sides:
        reasons += _of_independence(side, method)
        reasons += _of_quantiles(question, side)
        if question.quantity.kind is Kind.MEAN:
            units = side.unit_values(question.quantity)
            reasons += _of_tails(units, side.values, is_wider=False)
    return list(dict.fromkeys(reasons))


def _of_units(question: Question, sides: Sequence[Side], method: str) -> list[str]:
    """Ask the rule of means, or that of two samples."""
    quantity = question.quantity
    units = [side.unit_values(quantity) for side in sides]
    is_series = all(side.clusters is None for side in sides)
    if len(sides) > 1:
        is_allowed = method in _ALLOWING or quantity.kind is Kind.SHIFT
        return ratio_objections(units[0], units[1], is_series=is_series, is_allowed=is_allowed)
    return mean_objections(
        units[0],
        sides[0].values,
        is_series=is_series,
        is_wider=method in _ALLOWING,
        has_tails=quantity.kind is Kind.MEAN,
        counting=sides[0].counting,
    )


def _of_outcome(question: Question, found: Found) -> Iterator[str]:
    if question.quantity.kind is Kind.MOMENT_SPREAD:
        yield "no interval of an sd or cv keeps its level on skewed or heavy-tailed times; see iqr"
    if math.isinf(found.low) or math.isinf(found.high):
        yield "too few values for a limit at this level"
    if math.isnan(found.low) or math.isnan(found.high) or found.undefined:
        yield f"the statistic is not defined for {found.undefined or 'some'} resamples"
    if found.low == found.high:
        yield "the values have no spread"


def _of_independence(side: Side, method: str) -> Iterator[str]:
    if side.clusters is not None:
        count = side.clusters_count
        if count < FEWEST_UNITS:
            yield f"{count} clusters, at least {FEWEST_UNITS} needed"
        elif method in _PERCENTILES and count < FEWEST_CLUSTERS_DRAWN:
            yield f"{count} clusters drawn, at least {FEWEST_CLUSTERS_DRAWN} needed"
        return
    if side.effective < FEWEST_EFFECTIVE:
        yield f"effective size {side.effective:.0f}, at least {FEWEST_EFFECTIVE} needed"
    if side.is_dependent and side.block is None and method not in _ALLOWING:
        yield "neighbours resemble each other, the method takes them for independent"


def _of_quantiles(question: Question, side: Side) -> Iterator[str]:
    quantity, values = question.quantity, side.values
    if quantity.kernel in {"quantile", "harrell_davis", "range", "quantile_ratio"}:
        events = min(min(p, 1 - p) for p in quantity.parameters) * values.size
        if events < FEWEST_EVENTS:
            yield f"{events:.1f} values expected beyond the quantile, at least {FEWEST_EVENTS} needed"
    if quantity.kind is Kind.ROBUST_SPREAD:
        low, high = np.quantile(values, [0.25, 0.75])
        steps = np.unique(values[(values >= low) & (values <= high)]).size
        if steps < min(FEWEST_STEPS, values.size // 4):
            yield f"{steps} distinct values between the quartiles: the scale is coarse"
