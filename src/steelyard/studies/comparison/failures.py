"""Samples with failed runs: each is slower than every run that ended, and ranks need no more than that."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.comparison.equivalence import Verdict, exponential
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS, ratio_objections
from steelyard.studies.comparison.claim import ORDER_UNKNOWN, Claim

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import Margin

FAILED_LOG: Final = 600.0
"""Logarithm that stands for a failed run: ratios of times do not come near 1e260."""

_FARTHER: Final = 1e8
"""The failed runs of the other side lie so far that a pair of failures is decided against each limit."""

_MOST: Final = 150.0
"""Logarithms of ratios beyond are those of failures, or of their means with others."""


def claim_of_ranks(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    margin: Margin,
    metric: str,
    *,
    is_series: bool,
) -> Claim:
    """Judge two independent samples by the rank sum; failed runs are infinite, and the largest.

    The ratio is the median of all ratios of pairs, its limits invert the rank-sum test. A pair of two failed
    runs says nothing about a ratio, so each limit takes it for what makes the interval wider.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,) and (m,), positive; infinite where a run failed.
    margin : Margin
        Of equivalence, and the level.
    metric : str
        What was measured.
    is_series : bool
        Whether nobody said that the values are independent.

    References
    ----------
    .. [1] Hodges & Lehmann (1963), Ann. Math. Stat. 34; Hollander, Wolfe & Chicken (2014), sections 4.2, 4.3.
    .. [2] Lachin (1999), Stat. Med. 18: worst ranks for what could not be measured.
    """
    units = (int(first.size), int(second.size))
    failed = (int(np.isinf(first).sum()), int(np.isinf(second).sum()))
    if min(units) == 0:
        ratio, wide, narrow = math.nan, (0.0, math.inf), (0.0, math.inf)
    else:
        ratio = _ratio(_shift(first, second, margin.level, FAILED_LOG, FAILED_LOG)[0])
        wide, narrow = (_limits(first, second, level) for level in (margin.level, 2 * margin.level - 1))
    verdict = _verdict(units, wide, narrow, margin)
    kept = [np.log(side[np.isfinite(side)]) for side in (first, second)]
    ordered = [np.where(np.isinf(side), FAILED_LOG, np.log(side)) for side in (first, second)]
    ranks = [np.searchsorted(np.sort(np.concatenate(ordered)), side).astype(float) for side in ordered]
    claim = Claim(
        "a",
        "b",
        metric,
        verdict,
        ratio,
        *wide,
        level=margin.level,
        margin=margin.relative,
        runs=units,
        mean_ratio=exponential(float(kept[1].mean() - kept[0].mean()))
        if min(each.size for each in kept)
        else math.nan,
        further_runs=None,
        is_settled=verdict in {Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT},
        method="rank-sum",
        narrow=narrow,
        objections=tuple(ratio_objections(ranks[0], ranks[1], is_series=is_series)),
        cautions=(ORDER_UNKNOWN,),
    )
    return finite_claim(claim, failed)


def finite_claim(claim: Claim, failed: tuple[int, int]) -> Claim:
    """Give a claim with the ratios of failures as 0 and infinity, and how many runs failed."""
    if not any(failed):
        return claim
    ends = [_of_failures(value) for value in (claim.ratio, claim.low, claim.high, *claim.narrow)]
    return replace(claim, ratio=ends[0], low=ends[1], high=ends[2], narrow=(ends[3], ends[4]), failed=failed)


def _of_failures(ratio: float) -> float:
    return _ratio(math.log(ratio)) if 0 < ratio < math.inf else ratio


def _shift(
    first: NDArray[np.float64], second: NDArray[np.float64], level: float, one: float, other: float
) -> tuple[float, float, float]:
    """Give the shift of the logarithms with failures at given places."""
    sides = [
        np.where(np.isinf(side), place, np.log(np.where(np.isinf(side), 1.0, side)))
        for side, place in ((first, one), (second, other))
    ]
    return _native.shift_interval(sides[0], sides[1], level=level)[:3]


def _limits(first: NDArray[np.float64], second: NDArray[np.float64], level: float) -> tuple[float, float]:
    low = _shift(first, second, level, _FARTHER, FAILED_LOG)[1]
    high = _shift(first, second, level, FAILED_LOG, _FARTHER)[2]
    return _ratio(low), _ratio(high)


def _ratio(logarithm: float) -> float:
    if math.isnan(logarithm):
        return math.nan
    if abs(logarithm) > _MOST:
        return math.inf if logarithm > 0 else 0.0
    return exponential(logarithm)


def _verdict(
    units: tuple[int, int], wide: tuple[float, float], narrow: tuple[float, float], margin: Margin
) -> Verdict:
    """Give the verdict of the intervals; equivalence goes first, as in `verdict_of`."""
    if min(units) == 0:
        return Verdict.NA
    if min(units) < FEWEST_UNITS:
        return Verdict.DESCRIPTIVE
    bound = 1 + margin.relative
    if 1 / bound < narrow[0] and narrow[1] < bound:
        return Verdict.EQUIVALENT
    if wide[0] > 1:
        return Verdict.SLOWER
    return Verdict.FASTER if wide[1] < 1 else Verdict.INCONCLUSIVE
