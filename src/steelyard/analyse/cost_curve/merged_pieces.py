"""Which searched boundaries of a curve the values pay for, by a scale that is not known beforehand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.median_line import evaluate, medians_piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.model.cost_model import CostPiece, PieceName

    Vector = NDArray[np.float64]

SMOOTH: Final = 9
"""Neighbouring medians that a local scale is the median of."""

_NEIGHBOURS: Final = 25


def local_scales(strays: Vector) -> Vector:
    """Give the scale of the Laplace law of each value's neighbours in the order of size."""
    bins = max(strays.size // _NEIGHBOURS, 1)
    medians = np.array([np.median(part) for part in np.array_split(strays, bins)])
    padded = np.pad(medians, SMOOTH // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH), axis=1)
    # The median of |residual| of a Laplace law is its scale times ln 2.
    wide = np.interp(np.arange(strays.size), (np.arange(bins) + 0.5) * strays.size / bins, smooth) / math.log(
        2
    )
    return np.asarray(np.maximum(wide, 1e-6))


def merged_pieces(
    x: Vector, y: Vector, pieces: Sequence[CostPiece], price: float, floor: float
) -> tuple[CostPiece, ...]:
    """Join neighbouring pieces that one piece describes as well.

    The search compares medians with errors that few values tell badly: where these come out too small, noise
    pays for a boundary. Here all values of two pieces are compared, and their scale is what each description
    leaves: 2 n ln(loss of one piece / loss of two) must be more than the price of a boundary. What it pays
    least for goes first.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), as `sorted_costs` gives them.
    pieces : sequence of CostPiece
        Of a search.
    price : float
        Of a boundary, times ln(values): as the search charges it.
    floor : float
        Smallest share of a cost that matters.

    References
    ----------
    .. [1] Schwarz (1978), Ann. Statist. 6, for a Laplace law of unknown scale; relative scales are those of
           neighbours, as noise may change with size.
    """
    found = list(pieces)
    while len(found) > 1:
        worth, at, one = min(_worths(x, y, found, price, floor), key=itemgetter(0))
        if worth >= 0:
            break
        found[at : at + 2] = [one]
    return tuple(found)


def boundary_worths(
    x: Vector, y: Vector, pieces: Sequence[CostPiece], price: float, floor: float
) -> list[float]:
    """Give by how much each boundary is worth more than its price, as `merged_pieces` judges it."""
    return [worth for worth, _, _ in _worths(x, y, pieces, price, floor)]


def _worths(
    x: Vector, y: Vector, pieces: Sequence[CostPiece], price: float, floor: float
) -> list[tuple[float, int, CostPiece]]:
    """Give what each boundary is worth beyond its price, its number, and the piece without it."""
    ends = [piece.high for piece in pieces[:-1]]
    places = [0, *np.searchsorted(x, np.asarray(ends, dtype=np.float64), side="right").tolist(), x.size]
    strays = np.concatenate(
        [
            _strays(x[low:high], y[low:high], each)
            for each, (low, high) in zip(pieces, pairwise(places), strict=True)
        ]
    )
    scales = local_scales(strays)
    found = []
    for at in range(len(pieces) - 1):
        here = slice(places[at], places[at + 2])
        one = _one_piece(x[here], y[here], scales[here], pieces[at : at + 2])
        joined, apart = (
            float(np.sum((each + floor / 2) / scales[here]))
            for each in (_strays(x[here], y[here], one), strays[here])
        )
        count = here.stop - here.start
        worth = 2 * count * math.log(joined / apart) if apart > 0 else math.inf
        found.append((worth - price * math.log(max(count, 2)), at, one))
    return found


def _strays(x: Vector, y: Vector, piece: CostPiece) -> Vector:
    """Give the distances of values from a piece as log ratios; a piece that is negative is no curve there."""
    return np.asarray(np.abs(np.log(y / np.maximum(evaluate(piece, x), y.min(initial=math.inf) / 10))))


def _one_piece(x: Vector, y: Vector, scales: Vector, sides: Sequence[CostPiece]) -> CostPiece:
    """Give the piece of either kind, or the line, that describes the values of two pieces best."""
    kinds: dict[PieceName, None] = dict.fromkeys([*(side.kind for side in sides), "line"])
    fits = [medians_piece(x, y, kind) for kind in kinds]
    best = min(fits, key=lambda piece: float(np.sum(_strays(x, y, piece) / scales)))
    return replace(best, low=sides[0].low, high=sides[1].high)
