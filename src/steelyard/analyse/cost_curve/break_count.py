"""How many breaks a piecewise model deserves: the error on data that were left out, per number of breaks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.segments import Replicates, default_options, seen_points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from steelyard._native import SegmentValues
    from steelyard.analyse.cost_curve.segments import SegmentOptions

    Vector = NDArray[np.float64]

MOST_POINTS: Final = 4000
"""Of more points, this many are used, evenly spaced in the order of x."""

BEYOND: Final = 3
"""So many breaks more than the chosen number are tried."""

_CUT: Final = 3.0
_STEPS: Final = 8
_FEWEST: Final = 16
_PENALTIES: Final = tuple(6.0 * 2.0**power for power in range(17))
_LOW_PENALTIES: Final = (4.0, 3.0, 2.0, 1.5, 1.0)


@dataclass(frozen=True, slots=True)
class CountError:
    """What a number of breaks costs out of sample.

    Parameters
    ----------
    breaks : int
        The number.
    error : float
        Root mean square of left-out residuals cut at 3 sigma, in the unit of the model's sigma (a share of
        the level where noise is proportional); NaN where no penalty gives this number.
    excess, excess_error : float
        Mean square beyond that of the best number, in squared sigmas, and its standard error from the same
        points under both.
    """

    breaks: int
    error: float
    excess: float
    excess_error: float


@dataclass(frozen=True, slots=True)
class BreakCounts:
    """Numbers of breaks compared out of sample.

    Parameters
    ----------
    rows : tuple of CountError
        From 0 breaks on.
    chosen : int
        What the search's criterion chose.
    out_of_sample : int
        The smallest number whose error lies within one standard error of the best.
    points : int
        Points used.
    """

    rows: tuple[CountError, ...]
    chosen: int
    out_of_sample: int
    points: int

    @property
    def agree(self) -> bool:
        """Whether criterion and left-out data name the same number."""
        return self.chosen == self.out_of_sample


def break_counts(
    x: ArrayLike,
    y: ArrayLike,
    chosen: int,
    *,
    options: SegmentOptions | None = None,
    replicates: Replicates | str = Replicates.AUTO,
) -> BreakCounts | None:
    """Compare numbers of breaks by the error on data that were left out.

    In the order of x, the odd points predict the even ones and the even ones the odd ones, so that both
    halves see every regime. Each number of breaks is reached by the price of a break.

    Parameters
    ----------
    x, y : array_like
        Shape (n,), as for `fit_segments`.
    chosen : int
        Number of breaks of the model in question; up to three more are tried.
    options, replicates
        As for `fit_segments`.

    Returns
    -------
    BreakCounts or None
        ``None`` for fewer than 16 points.

    References
    ----------
    .. [1] Zou, Wang & Li (2020), "Consistent selection of the number of change-points via sample-splitting":
           order-preserved splitting into odd and even points.
    .. [2] Breiman, Friedman, Olshen & Stone (1984), section 3.4.3: the smallest model within one standard
           error of the best. Own deviation: the error is that of the paired difference.

    Examples
    --------
    >>> x = np.arange(1.0, 401.0)
    >>> y = np.where(x <= 200, 5.0, 9.0) + np.sin(x * 7) * 0.2
    >>> break_counts(x, y, 1).out_of_sample
    1
    """
    places, values = (np.ascontiguousarray(np.asarray(each, dtype=np.float64)) for each in (x, y))
    used = options if options is not None else default_options(places, values)
    places, values, _ = seen_points(places, values, Replicates(replicates))
    order = np.argsort(places, kind="stable")
    if order.size > MOST_POINTS:
        order = order[np.linspace(0, order.size - 1, MOST_POINTS).round().astype(np.int64)]
    if order.size < _FEWEST:
        return None
    places, values = places[order], values[order]
    most = chosen + BEYOND
    losses = np.full((most + 1, order.size), np.nan)
    sigma = _native.fit_segments(places, values, used)["sigma"]
    for fold in range(2):
        out = np.arange(order.size) % 2 == fold
        for count, found in _path(places[~out], values[~out], used, most).items():
            residuals = _shares(found, places[out], values[out], proportional=used.proportional)
            losses[count, out] = np.minimum(np.abs(residuals) / sigma, _CUT) ** 2
    return _compared(losses, chosen, sigma)


def _compared(losses: Vector, chosen: int, sigma: float) -> BreakCounts:
    means = losses.mean(axis=1)
    best = int(np.nanargmin(means))
    points = losses.shape[1]
    rows, within = [], []
    for count, loss in enumerate(losses):
        difference = loss - losses[best]
        excess, error = float(difference.mean()), float(difference.std()) / math.sqrt(points)
        rows.append(CountError(count, sigma * math.sqrt(float(means[count])), excess, error))
        if excess <= error:
            within.append(count)
    return BreakCounts(tuple(rows), chosen, min(within), points)


def _path(x: Vector, y: Vector, options: SegmentOptions, most: int) -> dict[int, SegmentValues]:
    """Fit every number of breaks up to `most` that some price of a break gives."""
    found: dict[int, SegmentValues] = {}
    prices: dict[float, int] = {}

    def fit(price: float) -> int:
        fitted = _native.fit_segments(x, y, replace(options, break_penalty=price))
        count = len(fitted["pieces"]) - 1
        prices[price] = count
        found.setdefault(count, fitted)
        return count

    for price in _PENALTIES:
        if fit(price) == 0:
            break
    for price in _LOW_PENALTIES:
        if max(found) >= most:
            break
        fit(price)
    for count in range(most + 1):
        for _ in range(_STEPS):
            above = min((price for price, given in prices.items() if given < count), default=None)
            below = max((price for price, given in prices.items() if given > count), default=None)
            if count in found or above is None or below is None or below >= above:
                break
            fit(math.sqrt(above * below))
    return {count: fitted for count, fitted in found.items() if count <= most}


def _shares(found: SegmentValues, x: Vector, y: Vector, *, proportional: bool) -> Vector:
    pieces = found["pieces"]
    ends = [
        math.sqrt(left[2] * right[1]) if left[2] > 0 else (left[2] + right[1]) / 2
        for left, right in pairwise(pieces)
    ]
    at = np.searchsorted(ends, x, side="right")
    fitted = np.empty_like(y)
    for number, (kind, _, _, _, base, slope) in enumerate(pieces):
        inside = at == number
        fitted[inside] = (
            np.exp(base + slope * np.log(x[inside])) if kind == "power" else base + slope * x[inside]
        )
    residuals = y - fitted
    return np.asarray(residuals / np.abs(fitted) if proportional else residuals)
