"""Medians of costs over size: in bins, and along a constant, a line or a power law."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import inner_product
from steelyard.model.cost_model import CostPiece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.model.cost_model import PieceName

    Vector = NDArray[np.float64]

BIN: Final = 25
"""Values of one median, where there are enough."""

PIECE_BINS: Final = 12
"""Medians that the coefficients of one piece rest on, where it has enough values."""

CUT: Final = 3.0
"""Residuals beyond so many scales count no more."""

FARTHEST: Final = 100.0
"""Values lie no further off than so many scales: the median stays where it is, and the others count beside
them in the sum of residuals."""

_LINE: Final = 2
_STEPS: Final = 60
_SETTLED: Final = 1e-6


def binned_medians(x: Vector, y: Vector, width: int) -> tuple[Vector, Vector]:
    """Give the medians of sizes and costs of about `width` neighbours each; equal sizes are never parted.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), x ascending.

    Examples
    --------
    >>> binned_medians(np.array([1.0, 2, 3, 3, 9]), np.array([1.0, 2, 3, 5, 7]), 2)
    (array([1.5, 3. , 9. ]), array([1.5, 4. , 7. ]))
    """
    places = np.arange(width, x.size, width)
    # A border inside a run of equal sizes moves to its end.
    borders = np.unique(np.searchsorted(x, x[places - 1], side="right"))
    borders = borders[borders < x.size]
    if borders.size and x.size - borders[-1] < width / 2:
        borders = borders[:-1]
    starts = np.concatenate([[0], borders])
    lengths = np.diff(np.concatenate([starts, [x.size]]))
    group = np.repeat(np.arange(starts.size), lengths)
    order = np.lexsort((y, group))
    low, high = starts + (lengths - 1) // 2, starts + lengths // 2
    ranked = y[order]
    return (x[low] + x[high]) / 2, (ranked[low] + ranked[high]) / 2


def evaluate(piece: CostPiece, size: ArrayLike) -> Vector:
    """Give the seconds that one piece says for sizes, also outside of its range.

    Parameters
    ----------
    size : array_like
        Shape (n,), bytes.
    """
    x = np.asarray(size, dtype=np.float64)
    if piece.kind == "power":
        return np.asarray(piece.base * np.maximum(x, 1.0) ** piece.slope)
    return np.asarray(piece.base + piece.slope * x)


def predict(pieces: Sequence[CostPiece], size: ArrayLike) -> Vector:
    """Give the seconds that pieces say for sizes.

    Parameters
    ----------
    size : array_like
        Shape (n,), bytes.
    """
    x = np.asarray(size, dtype=np.float64)
    ends = [piece.high for piece in pieces[:-1] if piece.high is not None]
    place = np.searchsorted(np.asarray(ends, dtype=np.float64), x, side="left")
    found = np.empty_like(x)
    for number, piece in enumerate(pieces):
        inside = place == number
        found[inside] = evaluate(piece, x[inside])
    return found


def medians_piece(x: Vector, y: Vector, kind: PieceName) -> CostPiece:
    """Fit robust least squares of shares to medians of some values each: quick, and without errors.

    Parameters
    ----------
    x, y : ndarray
        As `median_piece`.
    """
    width = max(1, min(BIN, x.size // PIECE_BINS))
    places, medians = binned_medians(x, y, width - 1 + width % 2)
    if kind == "constant" or places.size < _LINE or np.ptp(places) == 0:
        return CostPiece(-1.0, None, "constant", float(np.median(y)), 0.0, count=x.size)
    base, slope = _start(*_scales(kind, places, medians), is_share=kind == "line")
    return _checked(CostPiece(-1.0, None, kind, math.exp(base) if kind == "power" else base, slope), x, y)


def _checked(piece: CostPiece, x: Vector, y: Vector, share: float = 0.5) -> CostPiece:
    """Give a constant instead of a curve that falls."""
    if piece.slope < 0:
        return median_piece(x, y, "constant", share)
    return replace(piece, count=x.size)


def _scales(kind: PieceName, x: Vector, y: Vector) -> tuple[Vector, Vector]:
    return (np.log(np.maximum(x, 1.0)), np.log(y)) if kind == "power" else (x, y)


def _start(x: Vector, y: Vector, *, is_share: bool) -> tuple[float, float]:
    """Fit a line by iterated least squares, of shares or as it is, residuals cut at three scales."""
    unit = y.copy() if is_share else np.ones_like(y)
    weights = np.ones_like(y)
    base, slope = float(y[0]), 0.0
    for _ in range(4):
        base, slope, _ = _weighted_line(x, y, weights / unit**2)
        fitted = base + slope * x
        shares = np.abs(y - fitted) / unit
        scale = 1.4826 * float(np.median(shares))
        if scale <= 0:
            break
        weights = np.minimum(1.0, CUT * scale / np.maximum(shares, scale))
        unit = np.where(fitted > 0, fitted, y) if is_share else unit
    return base, slope


def median_piece(x: Vector, y: Vector, kind: PieceName, share: float = 0.5) -> CostPiece:
    """Fit the median, or another quantile, of costs over size: least absolute residuals as shares.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), n >= 1, as `sorted_costs` gives them.
    share : float
        Part of the values below the curve, in (0, 1).

    Returns
    -------
    CostPiece
        From -1 to no end. A curve that would fall is a constant.

    References
    ----------
    .. [1] Koenker & Bassett (1978), Econometrica 46: regression quantiles; the estimating equation is that of
           least absolute shares, solved by iterated weights (Schlossmacher 1973, J. Am. Stat. Assoc. 68).
    .. [2] Koenker (2005), Quantile Regression, section 3.4.1: standard errors from the density of the
           residuals at their median, here by a difference quotient over n^(-1/3) (Hall & Sheather 1988).
    """
    if kind == "constant" or x[0] == x[-1]:
        level = float(np.quantile(y, share))
        error = level * _sparsity(np.log(y / level), share) / math.sqrt(x.size)
        return CostPiece(-1.0, None, "constant", level, 0.0, error, 0.0, x.size)
    start = medians_piece(x, y, kind)
    if start.kind == "constant":
        return median_piece(x, y, "constant", share)
    at, values = _scales(kind, x, y)
    base, slope = (math.log(start.base) if kind == "power" else start.base), start.slope
    values = _near(values, base + slope * at, is_share=kind == "line")
    errors, shares, smallest = (0.0, 0.0), np.zeros_like(y), np.inf
    for _ in range(_STEPS):
        fitted = base + slope * at
        unit = np.ones_like(y) if kind == "power" else np.where(fitted > 0, fitted, y)
        shares = (values - fitted) / unit
        tilt = np.where(shares > 0, 2 * share, 2 * (1 - share))
        size = np.abs(shares)
        total = inner_product(tilt, size)
        if total == 0 or abs(smallest - total) <= _SETTLED * total:
            break
        smallest = total
        least = _SETTLED**0.5 * total / size.size
        base, slope, _ = _weighted_line(at, values, tilt / (np.maximum(size, least) * unit**2))
    _, _, errors = _weighted_line(at, values, 1.0 / unit**2)
    sparsity = _sparsity(shares, share)
    base_error, slope_error = (sparsity * error for error in errors)
    if kind == "power":
        base, base_error = math.exp(base), math.exp(base) * base_error
    return _checked(CostPiece(-1.0, None, kind, base, slope, base_error, slope_error), x, y, share)


def _near(values: Vector, fitted: Vector, *, is_share: bool) -> Vector:
    """Put values that lie absurdly far above a curve nearer to it, on the same side."""
    unit = np.where(fitted > 0, fitted, values) if is_share else np.ones_like(values)
    scale = 1.4826 * float(np.median(np.abs(values - fitted) / unit))
    return np.asarray(np.minimum(values, fitted + FARTHEST * scale * unit)) if scale > 0 else values


def median_error(values: Vector) -> float:
    """Give the standard error of a median: 1 / (2 f sqrt(n)), with the density f at the median.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 1.
    """
    return _sparsity(values, 0.5) / math.sqrt(values.size)


def _sparsity(values: Vector, share: float) -> float:
    """Give the standard error of a quantile times sqrt(n): sqrt(p (1 - p)) / density there."""
    width = 0.8 * min(share, 1 - share, 0.625 * math.pow(values.size, -1 / 3))
    low, high = (float(each) for each in np.quantile(values, [share - width, share + width]))
    return math.sqrt(share * (1 - share)) * (high - low) / (2 * width)


def _weighted_line(x: Vector, y: Vector, weights: Vector) -> tuple[float, float, tuple[float, float]]:
    """Give intercept, slope, and what the standard errors are per unit of noise."""
    total = float(weights.sum())
    centre, level = inner_product(weights, x) / total, inner_product(weights, y) / total
    around = x - centre
    spread = inner_product(weights, around * around)
    if spread <= 0:
        return level, 0.0, (math.sqrt(1 / total), 0.0)
    slope = inner_product(weights * around, y - level) / spread
    return level - slope * centre, slope, (math.sqrt(1 / total + centre**2 / spread), math.sqrt(1 / spread))
