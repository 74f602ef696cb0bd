"""The curve of what messages cost: the best pieces through medians, boundaries placed on raw values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.median_line import (
    BIN,
    binned_medians,
    evaluate,
    median_piece,
    medians_piece,
    predict,
)
from steelyard.analyse.segments import SegmentOptions
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.model.cost_model import CostPiece, PieceName

    Vector = NDArray[np.float64]

FEWEST: Final = 8
"""Operations that a curve needs."""

BINS: Final = 400
"""Medians that a search sees at most."""

ENVELOPE: Final = 0.05
"""Share of the costs below their lower envelope: of random sizes this quantile agrees within a tenth with the
best case that benchmarks of one size at a time report."""

STRONG: Final = 6.0
"""A criterion smaller by more is strong evidence (Kass & Raftery 1995, J. Am. Stat. Assoc. 90)."""

MEANT: Final = 0.15
"""A searched boundary that lies nearer to an exact place, as a log ratio, may be the one there."""

REFUTED: Final = 0.8
"""An exact place is refuted by a larger share of the messages between it and a searched boundary."""

_ROUNDS: Final = 2
_REACH: Final = 3
_LINE: Final = 2
_SMOOTH: Final = 9


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
    """

    break_penalty: float = 3.0
    slope_penalty: float = 1.0
    floor: float = 0.01
    shortest: int = 3


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


def fit_curve(
    size: ArrayLike,
    seconds: ArrayLike,
    options: CurveOptions | None = None,
    known: Sequence[KnownPlace] = (),
) -> tuple[CostPiece, ...]:
    """Fit pieces to the medians of costs; they need not meet.

    Values are put in bins by the rank of their size, and the exact search of `_native.fit_segments` runs
    over the bins' medians with noise as a share of the level. Then each boundary is placed between raw
    values where the sum of absolute log residuals is smallest, and each piece is fitted again to all its
    values by `median_piece`. A known place is a boundary if the curve with it is the better one by a
    criterion that charges a searched place and spares a known one (`with_known`).

    Parameters
    ----------
    size, seconds : array_like
        Shape (n,), n >= 8: bytes >= 0, and positive costs, in any order.
    known : sequence of KnownPlace
        Candidates, the surest first.

    Returns
    -------
    tuple of CostPiece
        With standard errors. The first holds 0, the last has no end.

    Raises
    ------
    AnalysisError
        If there are fewer than 8 values, or one is not positive and finite.

    References
    ----------
    .. [1] Jackson et al. (2005), optimal partitioning; see `fit_segments`.

    Examples
    --------
    >>> sizes = np.arange(1.0, 4001.0)
    >>> pieces = fit_curve(sizes, np.where(sizes <= 1000, 5e-6, 9e-6 + 1e-9 * sizes) * (1 + sizes % 5 / 100))
    >>> [(piece.kind, piece.high) for piece in pieces]
    [('constant', 1000.0), ('line', None)]
    """
    x, y = sorted_costs(size, seconds)
    used = options or CurveOptions()
    found = with_known(x, y, used, known)
    ends = [piece.high for piece in found if piece.high is not None]
    powers = fit_pieces(x, y, ends, [piece.kind for piece in found])
    if all(piece.kind != "power" for piece in powers):
        return powers
    lines = fit_pieces(x, y, ends, ["line" if piece.kind == "power" else piece.kind for piece in found])
    places = [0, *np.searchsorted(x, np.asarray(ends), side="right").tolist(), x.size]
    here = [slice(begin, end) for begin, end in pairwise(places)]
    return tuple(
        power if power.kind != "power" or _is_better(power, line, x[part], y[part]) else line
        for power, line, part in zip(powers, lines, here, strict=True)
    )


def _is_better(power: CostPiece, line: CostPiece, x: Vector, y: Vector) -> bool:
    """Say whether a power law describes values clearly better than a line, which is what links cost."""
    fits = [evaluate(piece, x) for piece in (power, line)]
    if float(fits[1].min()) <= 0:
        return True
    losses = [float(np.abs(np.log(y / fit)).sum()) for fit in fits]
    if losses[0] <= 0 or losses[1] <= losses[0]:
        return losses[1] > losses[0]
    return 2 * x.size * math.log(losses[1] / losses[0]) > STRONG


def envelope(
    size: ArrayLike, seconds: ArrayLike, pieces: Sequence[CostPiece], share: float = ENVELOPE
) -> tuple[CostPiece, ...]:
    """Fit the lower envelope of costs: pieces of the same kinds between the same ends, at a small quantile.

    It is what messages cost when nothing gets in their way, which is also what benchmarks of one size at a
    time report; the rest is noise that only adds.

    Parameters
    ----------
    size, seconds : array_like
        As for `fit_curve`.
    pieces : sequence of CostPiece
        The curve of medians.
    share : float
        Part of the values below the envelope, in (0, 1).

    Raises
    ------
    AnalysisError
        As `fit_curve`.

    Examples
    --------
    >>> sizes = np.arange(1.0, 2001.0)
    >>> costs = (4e-6 + 1e-9 * sizes) * (1 + np.arange(2000) * 7 % 100 / 100)
    >>> (piece,) = envelope(sizes, costs, fit_curve(sizes, costs))
    >>> round(piece.base * 1e6, 1)
    4.2
    """
    x, y = sorted_costs(size, seconds)
    ends = [piece.high for piece in pieces if piece.high is not None]
    places = [0, *np.searchsorted(x, np.asarray(ends, dtype=np.float64), side="right").tolist(), x.size]
    found = []
    for piece, (begin, end) in zip(pieces, pairwise(places), strict=True):
        fitted = median_piece(x[begin:end], y[begin:end], piece.kind, share) if end > begin else piece
        found.append(replace(fitted, low=piece.low, high=piece.high))
    return tuple(found)


def sorted_costs(size: ArrayLike, seconds: ArrayLike) -> tuple[Vector, Vector]:
    """Check costs and put them in the order of size, then cost.

    Raises
    ------
    AnalysisError
        As `fit_curve`.
    """
    x, y = (np.asarray(each, dtype=np.float64) for each in (size, seconds))
    if x.size < FEWEST:
        message = f"{x.size} operations of one kind are too few for a curve; at least {FEWEST} are needed"
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
    width = max(min(BIN, x.size // (4 * FEWEST)), -(-x.size // BINS), 1)
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
        _median_errors(x, y, (places, medians)),
    )["pieces"]
    ends = [math.sqrt(left[2] * right[1]) for left, right in pairwise(found)]
    # What falls with size is the cost of no message.
    kinds: list[PieceName] = [_name(row[0]) if row[5] > 0 else "constant" for row in found]
    pieces = fit_pieces(x, y, ends, kinds, is_quick=True)
    for _ in range(_ROUNDS if ends else 0):
        ends = _placed(x, y, ends, pieces)
        pieces = fit_pieces(x, y, ends, kinds, is_quick=True)
    return pieces


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
    scales = _local_scales(np.abs(np.log(y / np.maximum(predict(best, x), y.min() / 10))))
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
_NEIGHBOURS: Final = 25


def _local_scales(strays: Vector) -> Vector:
    """Give the scale of the Laplace law of each value's neighbours in the order of size."""
    bins = max(strays.size // _NEIGHBOURS, 1)
    medians = np.array([np.median(part) for part in np.array_split(strays, bins)])
    padded = np.pad(medians, _SMOOTH // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, _SMOOTH), axis=1)
    # The median of |residual| of a Laplace law is its scale times ln 2.
    wide = np.interp(np.arange(strays.size), (np.arange(bins) + 0.5) * strays.size / bins, smooth) / math.log(
        2
    )
    return np.asarray(np.maximum(wide, 1e-6))


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
    reach = _REACH * max(BIN, -(-x.size // BINS))
    begin, end = max(low - reach, 0), min(high + reach, x.size)
    parts = (slice(begin, max(low, begin + 1)), slice(min(high, end - 1), end))
    sides = tuple(medians_piece(x[part], y[part], "constant") for part in parts)
    inside = _best_place(x[low:high], y[low:high], (sides[0], sides[1])) if high > low else 0
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


def _name(kind: str) -> PieceName:
    return "power" if kind == "power" else "line" if kind == "line" else "constant"


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
    padded = np.pad(scatter, _SMOOTH // 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, _SMOOTH), axis=1)
    # SOURCE: 1.4826 from median deviation to sigma, sqrt(pi / 2) to the error of a median (normal values).
    errors = 1.2533 * 1.4826 * smooth / np.sqrt(counts)
    return np.asarray(np.maximum(errors, 1e-6))


def _placed(x: Vector, y: Vector, ends: Sequence[float], pieces: Sequence[CostPiece]) -> list[float]:
    """Move each end to where the values of one curve stop and those of the next begin."""
    found: list[float] = []
    borders = [0.0, *ends, float(x[-1])]
    span = _REACH * max(BIN, -(-x.size // BINS))
    for number, end in enumerate(ends):
        before = found[-1] if found else borders[0]
        at = int(np.searchsorted(x, end, side="right"))
        low = max(at - span, int(np.searchsorted(x, math.sqrt(max(before, 1.0) * end), side="right")))
        high = min(at + span, int(np.searchsorted(x, math.sqrt(end * borders[number + 2]), side="right")))
        place = _best_place(x[low:high], y[low:high], (pieces[number], pieces[number + 1]))
        found.append(float(x[low + place - 1]) if place and low + place < x.size else end)
    return found


def _best_place(x: Vector, y: Vector, sides: tuple[CostPiece, CostPiece]) -> int:
    """Give how many neighbouring values belong to the first of two curves; 0 where that cannot be told."""
    fits = [evaluate(side, x) for side in sides]
    if x.size < _LINE or min(float(fit.min()) for fit in fits) <= 0:
        return 0
    left, right = (np.abs(np.log(y / fit)) for fit in fits)
    # No value weighs more than the step between the curves, so that none has to be cut.
    loss = np.concatenate([[0.0], np.cumsum(left - right)])
    # Only between different sizes can a boundary lie.
    is_border = np.concatenate([[True], np.diff(x) > 0, [True]])
    return int(np.argmin(np.where(is_border, loss, np.inf)))


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
        Whether medians of some values are fitted, by robust least squares, instead of all values.
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
            piece = median_piece(x[here], y[here], kinds[number])
        found.append(replace(piece, low=lows[number], high=highs[number]))
    return tuple(found)
