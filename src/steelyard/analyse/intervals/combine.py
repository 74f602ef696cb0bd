"""Several comparisons of the same question put together: a mean ratio over a fixed set of cells."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from steelyard.analyse.comparison.equivalence import Margin, RatioTest, upper_tail
from steelyard.analyse.intervals.describe import mean, standard_deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Sides = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


def combined_ratio(cells: Sequence[Sides], margin: Margin | None = None) -> RatioTest:
    """Give the geometric mean of the ratios second / first over a fixed set of cells.

    Each cell weighs the same; the error is that of the mean of independent log differences, with
    Satterthwaite's degrees of freedom. The answer is about these cells, not about others like them.

    Parameters
    ----------
    cells : sequence of (ndarray, ndarray)
        Positive unit values of both sides of each cell, shapes (n,) and (m,).
    margin : Margin or None
        Defaults to 2 % at level 0.95.

    Returns
    -------
    RatioTest
        `units` are the fewest of any cell on each side; p-values 1 and no interval if a side has fewer than
        2.

    Examples
    --------
    >>> low, high = np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.2, 1.8])
    >>> round(combined_ratio([(low, high), (high, low)]).ratio, 6)
    1.0
    """
    margin = margin or Margin()
    logs = [tuple(np.log(side[np.isfinite(side) & (side > 0)]) for side in cell) for cell in cells]
    kept = [(a, b) for a, b in logs if a.size and b.size]
    if not kept:
        return RatioTest(math.nan, math.nan, math.nan, (0, 0), 1.0, 1.0)
    units = (min(a.size for a, _ in kept), min(b.size for _, b in kept))
    difference = sum(mean(b) - mean(a) for a, b in kept) / len(kept)
    found = RatioTest(math.exp(difference), math.nan, math.nan, units, 1.0, 1.0)
    if min(units) < 2:  # noqa: PLR2004 - one unit has no spread
        return found
    shares = [(standard_deviation(side) ** 2 / side.size, side.size - 1) for cell in kept for side in cell]
    total = sum(share for share, _ in shares)
    error = math.sqrt(total) / len(kept)
    freedom = (
        total**2 / sum(share**2 / free for share, free in shares)
        if total > 0
        else float(sum(free for _, free in shares))
    )
    return _tested(found, error, freedom, margin)


def _tested(found: RatioTest, error: float, freedom: float, margin: Margin) -> RatioTest:
    difference, bound = math.log(found.ratio), math.log1p(margin.relative)
    half = float(special.stdtrit(freedom, (1 + margin.level) / 2)) * error
    return replace(
        found,
        low=math.exp(difference - half),
        high=math.exp(difference + half),
        p_different=min(1.0, 2 * upper_tail(abs(difference), error, freedom)),
        p_equivalent=max(
            upper_tail(bound - difference, error, freedom), upper_tail(bound + difference, error, freedom)
        ),
    )
