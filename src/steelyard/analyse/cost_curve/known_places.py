"""Places where something else than the costs says that a curve may change: candidates for boundaries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.median_line import BIN, evaluate, medians_piece, predict
from steelyard.analyse.cost_curve.merged_pieces import local_scales
from steelyard.analyse.cost_curve.piece_search import (
    BINS,
    FEWEST,
    REACH,
    STRONG,
    best_place,
    search_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.piece_search import CurveOptions
    from steelyard.model.cost_model import CostPiece

    Vector = NDArray[np.float64]

MEANT: Final = 0.15
"""A searched boundary that lies nearer to an exact place, as a log ratio, may be the one there."""

REFUTED: Final = 0.8
"""An exact place is refuted by a larger share of the messages between it and a searched boundary."""


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """Where something else than the costs says that they may change.

    Parameters
    ----------
    name : str
        What says so.
    low, high : float
        Bytes: the largest size before the change lies in [low, high]; both are the same where it is exact.
    is_measured : bool
        Whether it was measured, or only declared.
    """

    name: str
    low: float
    high: float
    is_measured: bool


def with_known(
    x: Vector, y: Vector, options: CurveOptions, known: Sequence[KnownPlace]
) -> tuple[CostPiece, ...]:
    """Search pieces, and again with each known place as a boundary.

    Near an exact place a searched boundary is that place, unless four of five messages between the two follow
    the curve that the search gave them: in front of a limit messages may go either way, and the search ends
    wherever some of them happen to. Elsewhere a known place is a boundary if the criterion says so.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), as `sorted_costs` gives them.

    References
    ----------
    .. [1] Schwarz (1978), Ann. Statist. 6: -2 ln(likelihood) + p ln n, here for log residuals of a Laplace
           law whose scale is that of their neighbours. Own deviation: a searched place counts for two of the
           p parameters, a known one for none (Zhang & Siegmund 2007, Biometrics 63: one is too little).
    """
    best = search_pieces(x, y, options)
    if not known:
        return best
    scales = local_scales(np.abs(np.log(y / np.maximum(predict(best, x), y.min() / 10))))
    kept: list[float] = []
    score = _criterion((x, y, scales), best, 0.0)
    spared = 0.0
    for place in known:
        at = _place_of(x, y, place)
        if at is None or at in kept:
            continue
        given = sorted([*kept, at])
        if np.diff([0, *np.searchsorted(x, given, side="right"), x.size]).min() < FEWEST:
            continue  # too few messages between two known places: the surer one is kept
        pieces = _searched_between(x, y, given, options)
        # A place in an interval was chosen among its sizes.
        is_exact = place.low == place.high
        saved = spared + (_SEARCHED if is_exact else _SEARCHED / 2)
        other = _criterion((x, y, scales), pieces, saved)
        end = _nearest_end(best, at)
        is_meant = is_exact and end is not None and not _is_refuted((x, y), best, end, at)
        if is_meant or other <= score - (STRONG if end is None else 0.0):
            kept, best, score, spared = given, pieces, other, saved
    return best


def _nearest_end(pieces: Sequence[CostPiece], at: float) -> float | None:
    """Give the boundary that may be the one at a known place."""
    ends = [piece.high for piece in pieces if piece.high is not None]
    apart = {end: abs(math.log(max(end, 1.0) / max(at, 1.0))) for end in ends}
    return min((end for end in ends if apart[end] <= MEANT), key=lambda end: apart[end], default=None)


def _is_refuted(data: tuple[Vector, Vector], pieces: Sequence[CostPiece], end: float, at: float) -> bool:
    """Say whether messages between a boundary and a known place follow the side the search gave them."""
    x, y = data
    number = next(number for number, piece in enumerate(pieces) if piece.high == end)
    between = slice(*sorted(np.searchsorted(x, [end, at], side="right").tolist()))
    if between.stop == between.start:
        return False
    left, right = (
        np.abs(np.log(y[between] / np.maximum(evaluate(side, x[between]), y.min() / 10)))
        for side in pieces[number : number + 2]
    )
    follow = right < left if at > end else left < right
    return bool(follow.mean() > REFUTED)


_SEARCHED: Final = 2.0
_COEFFICIENTS: Final = {"constant": 1, "line": 2, "power": 2}


def _criterion(data: tuple[Vector, Vector, Vector], pieces: Sequence[CostPiece], spared: float) -> float:
    """Give the criterion of pieces, `spared` parameters of which were known."""
    x, y, scales = data
    fitted = predict(pieces, x)
    if float(fitted.min()) <= 0:
        return math.inf
    loss = float(np.sum(np.abs(np.log(y / fitted)) / scales))
    count = sum(_COEFFICIENTS[piece.kind] for piece in pieces) + _SEARCHED * (len(pieces) - 1) - spared
    return 2 * loss + count * math.log(x.size)


def _place_of(x: Vector, y: Vector, place: KnownPlace) -> float | None:
    """Give where a boundary would lie; ``None`` where too few sizes lie on either side to tell."""
    low, high = (int(each) for each in np.searchsorted(x, [place.low, place.high], side="right"))
    if min(low, x.size - high) < FEWEST:
        return None
    if place.low == place.high:
        return place.high
    reach = REACH * max(BIN, -(-x.size // BINS))
    begin, end = max(low - reach, 0), min(high + reach, x.size)
    parts = (slice(begin, max(low, begin + 1)), slice(min(high, end - 1), end))
    sides = tuple(medians_piece(x[part], y[part], "constant") for part in parts)
    inside = best_place(x[low:high], y[low:high], (sides[0], sides[1])) if high > low else 0
    return float(x[low + inside - 1]) if low + inside else place.low


def _searched_between(
    x: Vector, y: Vector, given: Sequence[float], options: CurveOptions
) -> tuple[CostPiece, ...]:
    """Search each part between given boundaries by itself."""
    places = [0, *np.searchsorted(x, np.asarray(given), side="right").tolist(), x.size]
    limits: list[float | None] = [-1.0, *given, None]
    found: list[CostPiece] = []
    for number, (begin, end) in enumerate(pairwise(places)):
        part = search_pieces(x[begin:end], y[begin:end], options)
        low = limits[number]
        first = replace(part[0], low=-1.0 if low is None else low)
        rest = [first, *part[1:]]
        rest[-1] = replace(rest[-1], high=limits[number + 1])
        found += rest
    return tuple(found)
