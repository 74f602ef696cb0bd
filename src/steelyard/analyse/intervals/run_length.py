"""Runs of two sides that hold unequal numbers of values: which of the values make them of one kind."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import ratio_test, wider
from steelyard.analyse.intervals.describe import mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import Margin, RatioTest

    Runs = Sequence[NDArray[np.float64]]

MOST_SHIFTED: Final = 0.25
"""Standard errors by which runs of unequal length may shift a comparison: of normal data it then errs in 5.7
instead of 5 %."""

MOST_LEANING: Final = 0.1
"""The same for what the skewness of shorter runs does to Student's t: that of 30 values per squared skewness,
which the mean of one sample may have too."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What is compared of each run.

    Parameters
    ----------
    statistic : callable
        Of the values of a run, in their order.
    is_log : bool
        Whether its logarithm is compared: a ratio, not a difference.
    """

    statistic: Callable[[NDArray[np.float64]], float] = mean
    is_log: bool = True


def means_of_one_kind(first: Runs, second: Runs) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Give the means of the runs of two sides as `ratio_test` may compare them, and what of the runs counts.

    Parameters
    ----------
    first, second : sequence of ndarray
        Runs in the order of measurement, each its values in theirs; positive, same unit. A run with an
        infinite value has failed, and its mean is infinite.

    Returns
    -------
    tuple
        Means of the first and the second side, and the remark; empty where all values count.

    Examples
    --------
    >>> times = np.random.default_rng(1).exponential(1.0, (10, 20))
    >>> means_of_one_kind([run[:1] for run in times], list(times))[2]
    'of every run only the first value counts: the runs hold 1 against 20 values'
    """
    count = values_that_count(first, second)
    means = [
        np.array([math.inf if np.isinf(run[:count]).any() else mean(run[:count]) for run in side])
        for side in (first, second)
    ]
    return means[0], means[1], remark_of(count, first, second)


def ratio_test_of_runs(first: Runs, second: Runs, margin: Margin) -> tuple[RatioTest, str]:
    """Compare the means of the runs of two sides, and say what of the runs counts.

    A run of one value may hold that of its first repetition or the mean of many: a table does not tell. The
    first is to be laid beside the first values of longer runs, the second beside their means. Where that
    makes a difference, the answer is what both leave open.

    Parameters
    ----------
    first, second : sequence of ndarray
        As in `means_of_one_kind`.
    margin : Margin
        Of the test.
    """
    *means, remark = means_of_one_kind(first, second)
    test = ratio_test(means[0], means[1], margin)
    if not remark or min(run.size for side in (first, second) for run in side) > 1:
        return test, remark
    whole = [
        np.array([math.inf if np.isinf(run).any() else mean(run) for run in side]) for side in (first, second)
    ]
    other = ratio_test(whole[0], whole[1], margin)
    both = wider(test, other)
    if (test.ratio - 1) * (other.ratio - 1) < 0:
        both = replace(both, p_different=1.0)
    return both, f"{remark}; a single value may be the mean of many: what does not hold then is left open"


def remark_of(count: int | None, first: Runs, second: Runs) -> str:
    """Say which values of a run count; empty where all do."""
    if count is None:
        return ""
    of_run = "the first value counts" if count == 1 else f"the first {count} values count"
    lengths = [sorted({run.size for run in side}) for side in (first, second)]
    hold = [f"{each[0]}" if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in lengths]
    return f"of every run only {of_run}: the runs hold {hold[0]} against {hold[1]} values"


def values_that_count(first: Runs, second: Runs, scale: Scale | None = None) -> int | None:
    """Give how many values of each run are compared, ``None`` for all.

    The logarithm of a mean of n values is expected to fall short of that of the mean by cv^2 / 2n, a median
    (or a shift) of n skewed values lies skewness / 6n standard deviations off, and skewness reaches Student's
    t the less the longer the runs are. None of this falls out of the difference if the runs of one side are
    longer. Where it is not small against the standard error, as many values of every run count as the
    shortest run of both sides holds: the units of the same program are then of one kind, whatever its times
    look like.

    Parameters
    ----------
    first, second : sequence of ndarray
        Runs, each its values in the order of measurement. A value that is not finite is a failure.
    scale : Scale or None
        What is compared of each run; defaults to the logarithm of its mean.

    References
    ----------
    .. [1] Jensen's inequality to second order, Cramer (1946), "Mathematical Methods of Statistics", section
       27.7; mean less median: Cornish & Fisher (1938), Rev. Inst. Int. Stat. 5.
    .. [2] Expected t of skewed values, -skewness / (2 sqrt(n)): Johnson (1978), J. Am. Stat. Assoc. 73.
    """
    sides, scale = (first, second), scale or Scale()
    sizes = [np.array([run.size for run in side], dtype=np.float64) for side in sides]
    if min(map(len, sides)) == 0 or len({size for each in sizes for size in each.tolist()}) == 1:
        return None
    fewest = int(min(each.min() for each in sizes))
    if not all(np.isfinite(run).all() for side in sides for run in side):
        return fewest
    moments = _within(sides, fewest, is_log=scale.is_log)
    units = [np.array([scale.statistic(run) for run in side]) for side in sides]
    if scale.is_log:
        units = [np.log(each[each > 0]) for each in units]
    if min(each.size for each in units) < 2:  # noqa: PLR2004 - no spread of units
        return None
    error = math.sqrt(sum(float(each.var(ddof=1)) / each.size for each in units))
    shift, lean = _displaced(sizes, moments, scale)
    return fewest if shift > MOST_SHIFTED * error or lean > MOST_LEANING * error**3 else None


def _within(sides: Sequence[Runs], fewest: int, *, is_log: bool) -> tuple[float, float, float]:
    """Give variance and third moment inside the runs, relative to the mean of each side for logarithms.

    The last number is what the variance of values would be if the means of parts as long as the shortest
    run had that of independent ones: neighbours may share what parts do not, as launches of one block.
    """
    square = cube = squares = cubes = parts = part_square = 0.0
    for runs in sides:
        sizes = np.array([run.size for run in runs])
        values, labels = np.concatenate(runs), np.repeat(np.arange(sizes.size), sizes)
        means = np.bincount(labels, values) / sizes
        level = abs(float(means.mean())) or 1.0 if is_log else 1.0
        deviations = (values - means[labels]) / level
        square += float(np.sum(deviations**2))
        cube += float(np.sum(deviations**3))
        squares += float(np.sum(sizes - 1))
        cubes += float(np.sum((sizes - 1) * (sizes - 2) / sizes))
        for run in runs:
            means_of_parts = run[: run.size // fewest * fewest].reshape(-1, fewest).mean(axis=1) / level
            part_square += float(np.sum((means_of_parts - means_of_parts.mean()) ** 2))
            parts += means_of_parts.size - 1
    of_parts = fewest * part_square / parts if parts > 0 else 0.0
    return square / squares, cube / cubes if cubes > 0 else 0.0, of_parts


def _displaced(
    sizes: Sequence[NDArray[np.float64]], moments: tuple[float, float, float], scale: Scale
) -> tuple[float, float]:
    """Give how far the difference is shifted, and half the third cumulant that it has too much."""
    variance, third, of_parts = moments
    if variance <= 0:
        return 0.0, 0.0
    inverse, square = (abs(float(np.mean(sizes[0] ** -p) - np.mean(sizes[1] ** -p))) for p in (1, 2))
    if scale.is_log:  # the third moment of logarithms, to first order
        third -= 3 * variance**2
    bend = max(variance, of_parts) / 2 if scale.is_log else 0.0
    if scale.statistic is not mean:
        bend = max(bend, abs(third) / (6 * variance))
    fewest = min(each.size for each in sizes)
    return bend * inverse, abs(third) * square / (2 * fewest**2)
