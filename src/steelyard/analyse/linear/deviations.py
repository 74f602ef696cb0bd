"""Deviations of values from a curve: as factors or as differences, and their quantiles against a law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.intervals.describe import inner_product

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

KEPT: Final = 512
"""Points of a quantile plot at most."""

ENDS: Final = 64
"""Points kept one by one at either end of it."""

_SMALL: Final = 10


class Scale(StrEnum):
    """How a value is compared with its curve."""

    FACTOR = "factor"
    DIFFERENCE = "difference"


class CurveKind(StrEnum):
    """What kind of curve deviations are taken from, and how it was fitted."""

    KNOWN = "known"
    LINE = "line"
    LINE_OF_SHARES = "line of shares"
    POWER = "power"


@dataclass(frozen=True, slots=True, eq=False)
class CurveError:
    """How a fitted curve can have erred: changes of the deviations that its two parameters allow.

    Parameters
    ----------
    first, second : ndarray
        Shape (n,): the changes, on the scale of the deviations.
    weights : ndarray
        Shape (n,): of the fit.
    is_factor : bool
        Whether deviations are factors.
    is_cut : bool
        Whether the fit cut values beyond 3 sigma.
    """

    first: Vector
    second: Vector
    weights: Vector
    is_factor: bool
    is_cut: bool


def curve_error(curve: ArrayLike, scale: Scale, kind: CurveKind) -> CurveError | None:
    """Give the error of a curve of two parameters; ``None`` for a known or constant one.

    A line in x is a line in its own values, a power law one in their logarithm, so that x is not needed. A
    constant needs none: a common factor or difference is a parameter of every law.
    """
    level = np.ascontiguousarray(np.asarray(curve, dtype=np.float64))
    is_factor = scale is Scale.FACTOR
    if kind is CurveKind.KNOWN or level.size == 0 or np.ptp(level) == 0:
        return None
    ones = np.ones_like(level)
    if kind is CurveKind.POWER:
        first = ones if is_factor else level
        return CurveError(first, first * np.log(level), ones / first**2, is_factor, is_cut=False)
    of_shares = kind is CurveKind.LINE_OF_SHARES
    if is_factor:
        return CurveError(1.0 / level, ones, ones if of_shares else level**2, is_factor, is_cut=of_shares)
    return CurveError(ones, level, ones / level**2 if of_shares else ones, is_factor, is_cut=of_shares)


def deviations(curve: ArrayLike, y: ArrayLike) -> tuple[Scale, Vector]:
    """Give deviations on the scale on which their size depends less on the level.

    Where everything is positive, both the factors y / curve and the differences y - curve are formed; the
    scale is the one whose absolute distances from their median have the smaller rank correlation with the
    curve (factors at a tie, and where the curve is constant). Otherwise differences.

    Parameters
    ----------
    curve, y : array_like
        Shape (n,), finite.

    Returns
    -------
    Scale, ndarray
        Shape (n,), in the order of the input.

    Examples
    --------
    >>> deviations([1.0, 2.0, 4.0], [1.1, 2.2, 4.4])[0].value
    'factor'
    """
    level, values = (np.asarray(each, dtype=np.float64) for each in (curve, y))
    differences = values - level
    if values.size == 0 or min(values.min(), level.min()) <= 0:
        return Scale.DIFFERENCE, differences
    factors = values / level
    if np.ptp(level) == 0:
        return Scale.FACTOR, factors
    ranks = _ranks(level)
    by_factor, by_difference = (
        abs(_correlation(ranks, _ranks(np.abs(each - np.median(each))))) for each in (factors, differences)
    )
    return (Scale.FACTOR, factors) if by_factor <= by_difference else (Scale.DIFFERENCE, differences)


def _ranks(values: Vector) -> Vector:
    """Give middle ranks, ties sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse])


def _correlation(first: Vector, second: Vector) -> float:
    a, b = first - first.mean(), second - second.mean()
    size = math.sqrt(inner_product(a, a) * inner_product(b, b))
    return inner_product(a, b) / size if size > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class QuantilePlot:
    """Points of a quantile-quantile plot.

    Parameters
    ----------
    ranks : ndarray
        Shape (k,), integers from 1 on: which of the ascending values are shown.
    values, expected : ndarray
        Shape (k,): these values, and the law's quantiles at the same ranks.
    count : int
        Values in all.
    """

    ranks: NDArray[np.int64]
    values: Vector
    expected: Vector
    count: int


def quantile_plot(values: ArrayLike, quantile: Callable[[Vector], Vector] | None = None) -> QuantilePlot:
    """Pair values with the quantiles of a law.

    Parameters
    ----------
    values : array_like
        Shape (n,), finite.
    quantile : callable or None
        Quantile function of the law; the standard normal one by default, as R's `qqnorm` draws it.

    Returns
    -------
    QuantilePlot
        All points up to 512 values; of more, 512: the 64 smallest and the 64 largest, and evenly spaced
        ranks between them.

    References
    ----------
    .. [1] R 4.2, `ppoints`: shares (rank - a) / (n + 1 - 2 a) with a = 3/8 up to 10 values and 1/2 beyond.

    Examples
    --------
    >>> quantile_plot([3.0, 1.0, 2.0]).expected.round(4).tolist()
    [-0.8694, 0.0, 0.8694]
    """
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    count = int(ascending.size)
    ranks = np.arange(1, count + 1)
    if count > KEPT:
        inner = np.linspace(ENDS + 1, count - ENDS, KEPT - 2 * ENDS).round().astype(np.int64)
        ranks = np.concatenate([ranks[:ENDS], inner, ranks[count - ENDS :]])
    offset = 0.375 if count <= _SMALL else 0.5
    shares = np.asarray((ranks - offset) / (count + 1 - 2 * offset), dtype=np.float64)
    expected = _normal(shares) if quantile is None else quantile(shares)
    return QuantilePlot(ranks, ascending[ranks - 1], np.asarray(expected), count)


def _normal(shares: Vector) -> Vector:
    return _native.law_quantiles("normal", (0.0, 0.0, 1.0), shares)
