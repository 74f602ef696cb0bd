"""The curve of what messages cost: the best pieces through medians, boundaries placed on raw values."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.known_places import with_known
from steelyard.analyse.cost_curve.median_line import evaluate
from steelyard.analyse.cost_curve.piece_search import (
    STRONG,
    CurveOptions,
    fit_pieces,
    positive_piece,
    sorted_costs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.analyse.cost_curve.known_places import KnownPlace
    from steelyard.model.cost_model import CostPiece

    Vector = NDArray[np.float64]

ENVELOPE: Final = 0.05
"""Share of the costs below their lower envelope: of random sizes this quantile agrees within a tenth with the
best case that benchmarks of one size at a time report."""


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
    used = options or CurveOptions()
    x, y = sorted_costs(size, seconds, used.fewest)
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

    A line that would say no positive time between the smallest and the largest value is a power law.

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
    x, y = sorted_costs(size, seconds, fewest=1)
    ends = [piece.high for piece in pieces if piece.high is not None]
    places = [0, *np.searchsorted(x, np.asarray(ends, dtype=np.float64), side="right").tolist(), x.size]
    found = []
    for piece, (begin, end) in zip(pieces, pairwise(places), strict=True):
        least = max(math.floor(piece.low) + 1.0, x[0])
        fitted = piece
        if end > begin:
            fitted = positive_piece(x[begin:end], y[begin:end], piece.kind, least, share)
        found.append(replace(fitted, low=piece.low, high=piece.high))
    return tuple(found)
