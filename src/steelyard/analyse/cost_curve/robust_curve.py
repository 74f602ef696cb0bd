"""The curve of a piece that a few far points cannot move, beside least squares; and why the two differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.pieces import PieceKind
from steelyard.analyse.cost_curve.segments import (
    MOST_POINTS,
    Replicates,
    default_options,
    fit_kind,
    seen_points,
)
from steelyard.analyse.intervals.describe import mad
from steelyard.units import format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.pieces import Piece
    from steelyard.analyse.linear.model import LinearModel

    Vector = NDArray[np.float64]

FEWEST_POINTS: Final = 4
"""The kernel of the search fits no fewer."""

SAME: Final = 0.02
"""Curves that differ by no more than this share of the robust one inside the piece count as one."""

_NO_BREAK: Final = 1e12
_FAR: Final = 3.0
"""Scaled median absolute deviations beyond which a point is far; where the search cuts residuals too."""

_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class RobustCurve:
    """The robust curve of a piece, and how least squares differs from it.

    Parameters
    ----------
    base, slope : float
        Level or intercept, and slope; of a power law its factor and exponent.
    is_searched : bool
        Whether it is fitted robustly; a piece of too few points, or too many, has only least squares.
    difference : float
        Least squares less the robust curve, as a share of the latter, where it is largest inside the piece.
    at : float
        The x of that.
    far : int
        Points more than three scaled median absolute deviations from the robust curve.
    reason : str
        Why they differ; empty where they do not.
    """

    base: float
    slope: float
    is_searched: bool
    difference: float
    at: float
    far: int
    reason: str


def robust_curve(piece: Piece, *, is_proportional: bool) -> RobustCurve:
    """Give the robust curve of a piece: that of the search, or fitted to a given piece in the same way.

    Parameters
    ----------
    piece : Piece
        Searched or given.
    is_proportional : bool
        Whether noise is a share of the level.

    References
    ----------
    .. [1] Huber (1964), Ann. Math. Stat. 35; residuals are cut at three scales of the noise around an
       iterated curve.
    """
    base, slope = piece.base, piece.slope
    found = None if piece.is_robust else _of_given(piece)
    if found is not None:
        base, slope = found
    around = replace(piece, base=base, slope=slope)
    curve = around.predict(piece.x)
    # Where noise is the same everywhere, a curve may cross 0: the size of the values is the measure then.
    unit = curve if is_proportional else np.maximum(np.abs(curve), float(np.median(np.abs(piece.y))))
    shares = _shares(_least_squares(piece.model, piece.kind) - curve, unit)
    place = int(np.argmax(np.abs(shares)))
    _, deviations = around.deviations()
    middle = float(np.median(deviations))
    is_far = np.abs(deviations - middle) > _FAR * max(mad(deviations), 1e-12 * abs(middle))
    difference = float(shares[place])
    reason = ""
    if abs(difference) > SAME:
        reason = _reason(piece, (curve, unit), is_far, difference, is_proportional=is_proportional)
    return RobustCurve(
        base,
        slope,
        piece.is_robust or found is not None,
        difference,
        float(piece.x[place]),
        int(is_far.sum()),
        reason,
    )


def _of_given(piece: Piece) -> tuple[float, float] | None:
    """Fit one piece of a given kind by the kernel of the search."""
    x, y = piece.x, piece.y
    is_usable = FEWEST_POINTS <= x.size <= MOST_POINTS
    if not is_usable or (piece.kind is PieceKind.POWER and not (x.min() > 0 and y.min() > 0)):
        return None
    options = replace(
        default_options(x, y),
        break_penalty=_NO_BREAK,
        slope_penalty=0.0,
        line=piece.kind is PieceKind.LINE,
        power=piece.kind is PieceKind.POWER,
    )
    seen_x, seen_y, _ = seen_points(x, y, Replicates.AUTO)
    rows = _native.fit_segments(seen_x, seen_y, options)["pieces"]
    if len(rows) != 1:
        return None
    kind, _, _, _, base, slope = rows[0]
    if piece.kind is PieceKind.POWER:
        # A level is a power law of exponent 0.
        return (math.exp(base), slope) if kind == "power" else (base, 0.0)
    return base, slope


def _least_squares(model: LinearModel, kind: PieceKind) -> Vector:
    with np.errstate(over="ignore"):
        return np.asarray(10.0**model.fitted if kind is PieceKind.POWER else model.fitted.copy())


def _reason(
    piece: Piece,
    curve: tuple[Vector, Vector],
    is_far: NDArray[np.bool_],
    difference: float,
    *,
    is_proportional: bool,
) -> str:
    """Say what pulls least squares away: without the far points it comes back, or it does not."""
    count = int(is_far.sum())
    x, y = piece.x[~is_far], piece.y[~is_far]
    if count and x.size >= FEWEST_POINTS and np.unique(x).size > 1:
        near = _least_squares(fit_kind(piece.kind, x, y, ("x", "y")), piece.kind)
        left = float(np.max(np.abs(_shares(near - curve[0][~is_far], curve[1][~is_far]))))
        if left <= _HALF * abs(difference):
            points = format_count(count, "point")
            return f"{points} of {piece.x.size} beyond three scales pull least squares away"
    if is_proportional and piece.kind is not PieceKind.POWER:
        return "least squares weighs large times most, the robust curve each point by its share of the time"
    if piece.kind is PieceKind.POWER:
        # Of positive factors: the logarithms are what least squares is of.
        mean = math.expm1(float(np.mean(np.log(piece.y / curve[0]))))
    else:
        mean = float(np.mean(_shares(piece.y - curve[0], curve[1])))
    if abs(difference - mean) <= _HALF * abs(difference):
        return "the noise is skewed: least squares follows its mean, the robust curve the bulk of the points"
    return "they weigh points differently where one curve of this kind does not pass through all of the piece"


def _shares(difference: Vector, unit: Vector) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = difference / unit
    return np.where(np.isfinite(found), found, 0.0)
