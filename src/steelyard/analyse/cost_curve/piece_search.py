"""The best pieces through medians of costs, boundaries placed on raw values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.median_line import (
    BIN,
    binned_medians,
    evaluate,
    median_piece,
    medians_piece,
)
from steelyard.analyse.cost_curve.merged_pieces import SMOOTH, merged_pieces
from steelyard.analyse.cost_curve.segments import SegmentOptions
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.model.cost_model import CostPiece, PieceName

    Vector = NDArray[np.float64]

FEWEST: Final = 8
"""Operations that a curve needs."""

FEWEST_RECORDED: Final = 3
"""The same of recordings, where nothing more can be measured: a line, and one value beside it."""

BINS: Final = 400
"""Medians that a search sees at most."""

STRONG: Final = 6.0
"""A criterion smaller by more is strong evidence (Kass & Raftery 1995, J. Am. Stat. Assoc. 90)."""

LEAST_ERROR: Final = 1e-4
"""No median is known better, as a share: weights of very different sizes would leave the range of doubles."""

_ROUNDS: Final = 2
_LINE: Final = 2

REACH: Final = 3
"""Medians on either side between which a boundary is placed on raw values."""


@dataclass(frozen=True, slots=True)
class CurveOptions:
    """How the curve is searched.

    Parameters
    ----------
    break_penalty, slope_penalty : float
        Price of a break and of a slope, in squared sigmas times ln(medians), as in `SegmentOptions`.
    floor : float
        Smallest share of a cost that matters: what differs less is approximated.
    shortest : int
        Fewest medians in a piece.
    is_of_means : bool
        Whether each cost is the mean of many: then it is a point of the search by itself, and its error is
        how far it lies from what its neighbours say.
    fewest : int
        Operations that a curve needs.
    """

    break_penalty: float = 3.0
    slope_penalty: float = 1.0
    floor: float = 0.01
    shortest: int = 3
    is_of_means: bool = False
    fewest: int = FEWEST


def sorted_costs(size: ArrayLike, seconds: ArrayLike, fewest: int = FEWEST) -> tuple[Vector, Vector]:
    """Check costs and put them in the order of size, then cost.

    Raises
    ------
    AnalysisError
        As `fit_curve`.
    """
    x, y = (np.asarray(each, dtype=np.float64) for each in (size, seconds))
    if x.size < fewest:
        message = f"{x.size} operations of one kind are too few for a curve; at least {fewest} are needed"
        raise AnalysisError(message, hint="measure more operations", code="analysis.too-few")
    if not (np.isfinite(y).all() and y.min() > 0 and np.isfinite(x).all() and x.min() >= 0):
        message = "every size must be 0 or more bytes and every cost a positive number of seconds"
        raise AnalysisError(message, hint="leave these operations out, or find out where they come from")
    order = np.lexsort((y, x))
    return x[order], y[order]


def search_pieces(x: Vector, y: Vector, options: CurveOptions) -> tuple[CostPiece, ...]:
    """Give pieces with boundaries on raw values, and coefficients from medians only, without errors.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), as `sorted_costs` gives them.
    """
    widest = 1 if options.is_of_means else min(BIN, x.size // (4 * FEWEST))
    width = max(widest, -(-x.size // BINS), 1)
    places, medians = binned_medians(x, y, width)
    if places.size < FEWEST // 2:
        return fit_pieces(x, y, [], ["line"], is_quick=True)
    found = _native.fit_segments(
        np.maximum(places, 1.0),
        medians,
        SegmentOptions(
            break_penalty=options.break_penalty,
            slope_penalty=options.slope_penalty,
            shortest=options.shortest,
            floor=options.floor,
        ),
        _neighbour_errors(places, medians) if width == 1 else _median_errors(x, y, (places, medians)),
    )["pieces"]
    ends = [math.sqrt(left[2] * right[1]) for left, right in pairwise(found)]
    # What falls with size is the cost of no message.
    kinds: list[PieceName] = [_name(row[0]) if row[5] > 0 else "constant" for row in found]
    pieces = fit_pieces(x, y, ends, kinds, is_quick=True)
    for _ in range(_ROUNDS if ends else 0):
        ends = _placed(x, y, ends, pieces)
        pieces = fit_pieces(x, y, ends, kinds, is_quick=True)
    return merged_pieces(x, y, pieces, options.break_penalty + options.slope_penalty, options.floor)


def _name(kind: str) -> PieceName:
    return "power" if kind == "power" else "line" if kind == "line" else "constant"


def _neighbour_errors(places: Vector, medians: Vector) -> Vector:
    """Give the standard error of points of one value each as a share, smoothed over neighbours; positive.

    SOURCE: a point off the line through its neighbours varies by 3/2 of its own variance if they are evenly
    spaced (Gasser, Sroka & Jennen-Steinmetz 1986, Biometrika 73).
    """
    at, level = np.log(np.maximum(places, 1.0)), np.log(medians)
    if at.size < 3:  # noqa: PLR2004 - a neighbour on either side
        return np.full(at.size, LEAST_ERROR)
    share = (at[1:-1] - at[:-2]) / np.maximum(at[2:] - at[:-2], 1e-12)
    strays = np.abs(level[1:-1] - (1 - share) * level[:-2] - share * level[2:])
    strays /= np.sqrt(1 + share**2 + (1 - share) ** 2)
    padded = np.pad(np.concatenate([strays[:1], strays, strays[-1:]]), SMOOTH // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH), axis=1)
    # From median deviation to sigma (normal values).
    return np.asarray(np.maximum(1.4826 * smooth, LEAST_ERROR))


def _median_errors(x: Vector, y: Vector, bins: tuple[Vector, Vector]) -> Vector:
    """Give the standard error of each bin's median as a share, smoothed over neighbours; positive."""
    places, medians = bins
    group = np.searchsorted((places[1:] + places[:-1]) / 2, x, side="right")
    at = np.log(np.maximum(x, 1.0))
    level = np.interp(at, np.log(np.maximum(places, 1.0)), np.log(medians))
    strays = np.abs(np.log(y) - level)
    counts = np.maximum(np.bincount(group, minlength=places.size), 1)
    ranked = strays[np.lexsort((strays, group))]
    scatter = ranked[np.minimum(np.cumsum(counts) - counts + counts // 2, x.size - 1)]
    padded = np.pad(scatter, SMOOTH // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH), axis=1)
    # SOURCE: 1.4826 from median deviation to sigma, sqrt(pi / 2) to the error of a median (normal values).
    errors = 1.2533 * 1.4826 * smooth / np.sqrt(counts)
    # Costs that a coarse clock makes equal have no scatter; what it rounds off is uniform over its step.
    steps = np.diff(np.unique(y))
    rounding = float(steps.min()) / math.sqrt(12) / medians if steps.size else 0.0
    return np.asarray(np.maximum(np.hypot(errors, rounding), LEAST_ERROR))


def _placed(x: Vector, y: Vector, ends: Sequence[float], pieces: Sequence[CostPiece]) -> list[float]:
    """Move each end to where the values of one curve stop and those of the next begin."""
    found: list[float] = []
    borders = [0.0, *ends, float(x[-1])]
    span = REACH * max(BIN, -(-x.size // BINS))
    for number, end in enumerate(ends):
        before = found[-1] if found else borders[0]
        at = int(np.searchsorted(x, end, side="right"))
        low = max(at - span, int(np.searchsorted(x, math.sqrt(max(before, 1.0) * end), side="right")))
        high = min(at + span, int(np.searchsorted(x, math.sqrt(end * borders[number + 2]), side="right")))
        place = best_place(x[low:high], y[low:high], (pieces[number], pieces[number + 1]))
        found.append(float(x[low + place - 1]) if place and low + place < x.size else end)
    return found


def best_place(x: Vector, y: Vector, sides: tuple[CostPiece, CostPiece]) -> int:
    """Give how many neighbouring values belong to the first of two curves; 0 where that cannot be told."""
    if x.size < _LINE:
        return 0
    # A line that is negative somewhere is not the curve there.
    fits = [np.maximum(evaluate(side, x), y.min() / 10) for side in sides]
    left, right = (np.abs(np.log(y / fit)) for fit in fits)
    # No value weighs more than the step between the curves, so that none has to be cut.
    loss = np.concatenate([[0.0], np.cumsum(left - right)])
    # Only between different sizes can a boundary lie.
    is_border = np.concatenate([[True], np.diff(x) > 0, [True]])
    return int(np.argmin(np.where(is_border, loss, np.inf)))


def positive_piece(x: Vector, y: Vector, kind: PieceName, least: float, share: float = 0.5) -> CostPiece:
    """Fit a piece that says a positive time from its least size on; where no line does, a power law.

    A line through costs that grow faster than in proportion to size starts below zero, and where they scatter
    by more than their level it may be below zero where they were measured.

    Parameters
    ----------
    x, y, kind, share
        As `median_piece` takes them.
    least : float
        Smallest size that the piece is asked about, bytes.
    """
    piece = median_piece(x, y, kind, share)
    if piece.kind == "line" and piece.at(least) <= 0:
        return median_piece(x, y, "power", share)
    return piece


def fit_pieces(
    x: Vector, y: Vector, ends: Sequence[float], kinds: Sequence[PieceName], *, is_quick: bool = False
) -> tuple[CostPiece, ...]:
    """Fit one piece of each kind between each two ends.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), as `sorted_costs` gives them.
    ends, kinds : sequence
        Ascending sizes, one less than kinds. A piece without values continues the one before.
    is_quick : bool
        Whether medians of some values are fitted, by robust least squares, instead of all values. Otherwise a
        line that says no positive time somewhere between the smallest and the largest value is a power law.
    """
    places = [0, *np.searchsorted(x, np.asarray(ends, dtype=np.float64), side="right").tolist(), x.size]
    lows, highs = [-1.0, *ends], [*ends, None]
    found: list[CostPiece] = []
    for number, (begin, end) in enumerate(pairwise(places)):
        here = slice(begin, end) if end > begin else slice(0, x.size)
        is_empty = end == begin
        if is_empty and found:
            piece = replace(found[-1], count=0)
        elif is_quick:
            piece = medians_piece(x[here], y[here], kinds[number])
        else:
            piece = positive_piece(x[here], y[here], kinds[number], max(math.floor(lows[number]) + 1.0, x[0]))
        found.append(replace(piece, low=lows[number], high=highs[number]))
    return tuple(found)
