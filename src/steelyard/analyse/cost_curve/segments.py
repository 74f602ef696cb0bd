"""Piecewise models with searched or given breakpoints, and what is known about each breakpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.mixture_zone import mixture_zone
from steelyard.analyse.cost_curve.pieces import Breakpoint, Piece, PieceKind, SegmentedModel
from steelyard.analyse.intervals.bootstrap import require_level
from steelyard.analyse.linear.model import LinearModel, linear_model
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

REPEATS: Final = 4
"""From this many values per distinct x on, `replicates` decides what the search sees."""


MOST_POINTS: Final = 20_000_000
"""A search holds about 200 bytes per point: 4 GB at this number."""


class Replicates(StrEnum):
    """What the search sees where sizes repeat."""

    AUTO = "auto"
    ALL = "all"
    MEDIANS = "medians"


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How breaks are searched.

    Parameters
    ----------
    break_penalty : float
        Price of one break in squared sigmas, in units of ln(number of points), >= 0.
    slope_penalty : float
        Price of a slope or exponent in the same units, >= 0.
    shortest : int
        Fewest distinct x in a piece, >= 1.
    proportional : bool
        Whether noise is a share of the level (times) or the same everywhere.
    floor : float
        Smallest difference that matters in practice, >= 0; as a share of the level where noise is
        proportional. Joins the estimated noise: sigma_eff^2 = sigma^2 + floor^2.
    robust : bool
        Whether residuals beyond 3 sigma are cut to 3 sigma.
    line, power : bool
        Which kinds a piece may have beside the constant.
    budget : int
        Costs evaluated before the search stops with a stated gap.
    """

    break_penalty: float = 6.0
    slope_penalty: float = 1.0
    shortest: int = 3
    proportional: bool = True
    floor: float = 0.1
    robust: bool = True
    line: bool = True
    power: bool = True
    budget: int = 100_000_000


def fit_segments(  # noqa: PLR0913 - keyword-only options
    x: ArrayLike,
    y: ArrayLike,
    *,
    breaks: Sequence[float] | None = None,
    log: bool = False,
    options: SegmentOptions | None = None,
    replicates: Replicates | str = Replicates.AUTO,
    names: tuple[str, str] = ("x", "y"),
    resamples: int = 400,
    level: float = 0.95,
    seed: int = 0,
) -> SegmentedModel:
    """Fit a piecewise model; pieces need not meet.

    Parameters
    ----------
    x, y : array_like
        Shape (n,), n >= 4, finite, any order. NumPy, Arrow and Polars columns alike.
    breaks : sequence of float or None
        Given breakpoints, ascending: a piece contains low <= x < high. ``None`` searches them.
    log : bool
        With given breaks: fit power laws instead of lines. A search chooses the kind of each piece itself.
    options : SegmentOptions or None
        By default noise is proportional where everything is positive, and constant (no power laws)
        otherwise.
    replicates : Replicates
        Where x repeat, ``medians`` searches on one median per x, because with many values per x every
        small lack of fit is significant; ``auto`` does so from 4 values per x on.
    names : tuple of str
        Of x and y, for the summaries.
    resamples, level, seed
        Bootstrap of the breakpoints; resamples 0 leaves the intervals out.

    Returns
    -------
    SegmentedModel

    Raises
    ------
    AnalysisError
        If there are fewer than 4 points, or more than 20 million for a search, a value is not finite, or a
        given break leaves a piece without points.
    UsageError
        If the level is none.

    References
    ----------
    .. [1] Jackson et al. (2005), optimal partitioning. Own deviation: positions are discarded by lower
           bounds, which cannot change the optimum; costs are cut at 3 sigma around an iterated curve.

    Examples
    --------
    >>> sizes = np.arange(1.0, 201.0)
    >>> model = fit_segments(sizes, np.where(sizes <= 80, 5.0, 2.0 + 0.1 * sizes) + sizes % 3 * 0.01)
    >>> [(piece.kind.value, piece.low, piece.high) for piece in model.pieces]
    [('constant', 1.0, 80.0), ('line', 81.0, 200.0)]
    """
    require_level(level)
    places, values = _pair(x, y)
    chosen = options if options is not None else default_options(places, values)
    if breaks is not None:
        wanted = PieceKind.POWER if log else PieceKind.LINE
        return _given((places, values), sorted(breaks), names, wanted)
    if places.size > MOST_POINTS:
        message = f"{places.size} points are given; a search for breaks takes at most {MOST_POINTS}"
        hint = "give one median of y per x, or a random part of the points, or the breaks themselves"
        raise AnalysisError(message, hint=hint, code="analysis.too-many")
    seen_x, seen_y, on_medians = seen_points(places, values, Replicates(replicates))
    found = _native.fit_segments(seen_x, seen_y, chosen)
    starts = [piece[1] for piece in found["pieces"][1:]]
    intervals: list[tuple[float, float]] | list[None] = [None] * len(starts)
    if resamples > 0 and starts:
        intervals = _native.break_intervals(
            seen_x, seen_y, chosen, starts, resamples=resamples, level=level, seed=seed
        )
    edges = [-math.inf, *starts, math.inf]
    pieces = tuple(
        _searched_piece(row, (places, values), (low, high), names)
        for row, (low, high) in zip(found["pieces"], pairwise(edges), strict=True)
    )
    between = tuple(
        _breakpoint(
            left, right, interval, (places, values, found["sigma"] if chosen.proportional else math.nan)
        )
        for (left, right), interval in zip(pairwise(pieces), intervals, strict=True)
    )
    return SegmentedModel(
        pieces=pieces,
        breakpoints=between,
        cost=found["cost"],
        bound=found["bound"],
        sigma=found["sigma"],
        is_searched=True,
        on_medians=on_medians,
        level=level,
        is_proportional=chosen.proportional,
    )


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    places, values = (np.ascontiguousarray(np.asarray(each, dtype=np.float64)) for each in (x, y))
    if places.ndim != 1 or places.shape != values.shape:
        message = f"x has the shape {places.shape} and y {values.shape}; both must be (n,)"
        raise AnalysisError(message, hint="give one y per x")
    for name, column in (("x", places), ("y", values)):
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            message = f"{name} number {bad[0]} (from 0) is {column[bad[0]]}; every value must be finite"
            raise AnalysisError(message, hint="leave these rows out, or find out where they come from")
    return places, values


def default_options(x: Vector, y: Vector) -> SegmentOptions:
    """Give proportional noise where everything is positive, constant noise without power laws elsewhere."""
    options = SegmentOptions()
    if y.size and y.min() <= 0:
        return replace(options, proportional=False, floor=0.0, power=False)
    if x.size and x.min() <= 0:
        return replace(options, power=False)
    return options


def seen_points(x: Vector, y: Vector, replicates: Replicates) -> tuple[Vector, Vector, bool]:
    """Give what a search sees: all points, or the median of each x where x repeat; and whether the latter."""
    distinct, inverse = np.unique(x, return_inverse=True)
    wanted = replicates is Replicates.MEDIANS or (
        replicates is Replicates.AUTO and x.size >= REPEATS * distinct.size and distinct.size >= REPEATS
    )
    if not wanted:
        return x, y, False
    order = np.lexsort((y, inverse))
    groups = np.split(y[order], np.flatnonzero(np.diff(inverse[order])) + 1)
    return distinct, np.array([np.median(group) for group in groups]), True


def _searched_piece(
    row: tuple[str, float, float, int, float, float],
    data: tuple[Vector, Vector],
    edges: tuple[float, float],
    names: tuple[str, str],
) -> Piece:
    kind, low, high, _, base, slope = row
    inside = (data[0] >= edges[0]) & (data[0] < edges[1])
    here = (data[0][inside], data[1][inside])
    model = fit_kind(PieceKind(kind), *here, names)
    return Piece(
        PieceKind(kind),
        low,
        high,
        model,
        math.exp(base) if kind == "power" else base,
        slope,
        *here,
        is_robust=True,
    )


def fit_kind(kind: PieceKind, x: Vector, y: Vector, names: tuple[str, str]) -> LinearModel:
    """Fit one kind of model to all points by least squares."""
    if kind is PieceKind.CONSTANT:
        return linear_model(None, y, names=(names[1],))
    return linear_model(x, y, log=kind is PieceKind.POWER, names=names)


def _given(
    data: tuple[Vector, Vector], breaks: Sequence[float], names: tuple[str, str], wanted: PieceKind
) -> SegmentedModel:
    x, y = data
    edges = [-math.inf, *breaks, math.inf]
    pieces = []
    for low, high in pairwise(edges):
        inside = (x >= low) & (x < high)
        if not inside.any():
            message = f"no point lies between the breaks {low:g} and {high:g}"
            hint = f"x goes from {x.min():g} to {x.max():g}; give breaks inside" if x.size else "give data"
            raise AnalysisError(message, hint=hint)
        places, values = x[inside], y[inside]
        lowest, highest = float(places.min()), float(places.max())
        kind = wanted if lowest < highest else PieceKind.CONSTANT
        model = fit_kind(kind, places, values, names)
        base = float(model.coefficients[0])
        slope = float(model.coefficients[-1]) if kind is not PieceKind.CONSTANT else 0.0
        base = 10.0**base if kind is PieceKind.POWER else base
        pieces.append(Piece(kind, lowest, highest, model, base, slope, places, values, is_robust=False))
    between = tuple(
        Breakpoint(float(at), left.high, right.low, None, None, 0)
        for at, (left, right) in zip(breaks, pairwise(pieces), strict=True)
    )
    return SegmentedModel(
        pieces=tuple(pieces),
        breakpoints=between,
        cost=math.nan,
        bound=math.nan,
        sigma=math.nan,
        is_searched=False,
        on_medians=False,
        level=math.nan,
        is_proportional=default_options(x, y).proportional,
    )


def _breakpoint(
    left: Piece,
    right: Piece,
    interval: tuple[float, float] | None,
    data: tuple[Vector, Vector, float],
) -> Breakpoint:
    below, above = left.high, right.low
    at = math.sqrt(below) * math.sqrt(above) if below > 0 else (below + above) / 2
    zone, count = mixture_zone(left, right, at, data)
    return Breakpoint(at, below, above, interval, zone, count)
