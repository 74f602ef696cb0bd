"""Whether an interval or a comparison keeps its level: the one rule, as simulations support it.

Every part of the rule is a number that the truth page (docs/concepts/coverage.md) was computed with: how many
independent units there are, whether their order says something, how far they lean to one side, and whether
one value rules them. Intervals, comparisons, claims and imported results ask here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.intervals.dependence import depends_on_order, lag_correlation
from steelyard.analyse.intervals.shape import ERRORS, FEWEST_PER_SKEWNESS, FEWEST_VALUES, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FEWEST_UNITS: Final = 5
"""Fewer independent units on a side allow a description, no verdict."""

FEWEST_CLUSTERS: Final = 8
"""With fewer units of a mean it is too likely that all are of one kind, e.g. of one of two memory layouts."""

FEWEST_UNEQUAL: Final = 40
"""The same where less than half of the values count because clusters hold unequal numbers of them: with 31
of 529, 8 % of values times 3 are covered in 87 %, with 42 of 540 in 96 % (simulated)."""

FEWEST_DEPENDENT: Final = 300
"""In shorter series whose neighbours resemble each other the effective size is too uncertain."""

FEWEST_EFFECTIVE_DEPENDENT: Final = 100
"""Effective size of such a series from which its ten parts are long enough: of 50, intervals that are
guaranteed cover 88 % (simulated with correlation 0.9)."""

MOST_OF_ONE: Final = 0.8
"""Part of the sum of squared deviations that one value may have: how often such a value comes is unknown."""


def unseen_share(count: int, level: float = 0.95) -> float:
    """Give the largest share of values of a kind that may not have come among so many ("rule of three").

    Examples
    --------
    >>> round(unseen_share(100), 3)
    0.03
    """
    return 1.0 if count < 1 else -math.expm1(math.log1p(-level) / count)


def mean_objections(  # noqa: PLR0913 - each says another thing of the sample
    units: NDArray[np.float64],
    values: NDArray[np.float64],
    *,
    is_series: bool,
    is_wider: bool = True,
    has_tails: bool = True,
    counting: float | None = None,
    shown: float | None = None,
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
    shown : float or None
        How many independent values show how they are spread: fewer than count where those of a unit are
        alike. Defaults to `counting`.
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
    is_dependent = is_series and _may_depend(units)
    found = list(_of_order(units, is_series=is_series, is_allowed=is_wider, is_dependent=is_dependent))
    if has_tails:
        found += tail_objections(units, values, counting if shown is None else shown, is_wider=is_wider)
    return found


def _may_depend(units: NDArray[np.float64]) -> bool:
    """Tell whether neighbours of a short series may resemble each other (one-sided test of 5 %).

    A claim needs more than that no dependence is proved: those series in which it does not show have a
    spread that is too small as well.
    """
    return units.size < FEWEST_DEPENDENT and lag_correlation(units) > ERRORS / math.sqrt(units.size)


def tail_objections(
    units: NDArray[np.float64], values: NDArray[np.float64], shown: float, *, is_wider: bool
) -> Iterator[str]:
    """Say where one value rules a mean, or where the values lean so far that its interval is too short."""
    deviations = (units - units.mean()) ** 2
    share = float(deviations.max() / deviations.sum()) if deviations.any() else 0.0
    if share > MOST_OF_ONE:
        yield f"one value carries {share:.0%} of the variance, and how often its like comes is unknown"
    shape = shape_of(values, units, shown)
    if not is_wider:
        if shape.skewness**2 > shown / FEWEST_PER_SKEWNESS:
            yield f"{values.size} values are too few for data that lean so far to one side"
        return
    if shape.leans_too_far:
        alike = ", alike in clusters," if 2 * shown < values.size else ""
        yield f"{values.size} values{alike} are too few for data that lean so far to one side"


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
