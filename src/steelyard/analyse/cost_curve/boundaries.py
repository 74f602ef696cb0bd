"""Which boundaries of a curve of costs are switches and which only approximate a bend, by resampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.known_places import MEANT
from steelyard.analyse.cost_curve.median_line import CUT, evaluate, median_piece
from steelyard.analyse.cost_curve.merged_pieces import boundary_worths
from steelyard.analyse.cost_curve.mixture_zone import zone_end
from steelyard.analyse.cost_curve.piece_search import search_pieces
from steelyard.analyse.cost_curve.segments import Replicates, SegmentOptions, seen_points
from steelyard.model.cost_model import Boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.known_places import KnownPlace
    from steelyard.analyse.cost_curve.piece_search import CurveOptions
    from steelyard.model.cost_model import BoundarySource, CostPiece

    Vector = NDArray[np.float64]
    Whole = NDArray[np.int64]

NEAR: Final = 0.05
"""Boundaries that differ by less, as a share, are the same."""

BESIDE: Final = 5
"""So are those with no more values between them, within what is meant by a known place, of a clear step."""

CLEAR: Final = math.log(1.5)
"""A step that no knee has: approximations of a bend do not reach it."""

RECURRENT: Final = 0.9
"""A switch is found in at least this share of resamples."""

SMALLEST_JUMP: Final = 0.05
"""Steps of the cost that are smaller, as a log ratio, are none."""

SURE: Final = 4.0
"""A step is larger than so many of its standard errors: its place was chosen among many."""

WINDOW: Final = 300
"""Values on either side that a step is judged by, at most."""

LEVEL: Final = 0.95
"""Of the intervals."""

INTERVAL_RESAMPLES: Final = 100

KNOWN: Final = 20.0
"""Where a boundary is worth less than so much beyond its price, its place lies between its neighbours, and is
not known better. SOURCE: simulated, sizes with one to three values: of boundaries worth more 97 % of the
intervals hold the planted break, of those worth less than 10 half."""

_FEWEST: Final = 12


@dataclass(frozen=True, slots=True)
class BoundaryEvidence:
    """What is known about one boundary.

    Parameters
    ----------
    boundary : Boundary
        As the model keeps it.
    step, step_error : float
        Logarithm of the cost right of it over the cost left of it, by the values on either side alone, and
        its standard error.
    declared : str
        What else says that something changes here: a parameter of the library, or what was measured; empty
        where nothing does.
    mixed : tuple of float or None
        Smallest and largest size between which values of both sides were seen.
    mixed_count : int
        How many values there belong to the other side's curve.
    """

    boundary: Boundary
    step: float
    step_error: float
    declared: str
    mixed: tuple[float, float] | None
    mixed_count: int


@dataclass(frozen=True, slots=True)
class Resampling:
    """How values are drawn again.

    Parameters
    ----------
    groups : ndarray of int
        Shape (n,): block of each value; blocks are drawn whole, so that what neighbours share stays.
    runs : ndarray of int
        Shape (n,): run of each value; from 3 runs on, runs are drawn first, then blocks of each.
    resamples, seed : int
        Draws, and the seed of their generator.
    """

    groups: Whole
    runs: Whole
    resamples: int = 50
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What resamples say of one boundary: how often it was near, or beside; steps; and its interval."""

    near: float
    beside: float
    steps: list[float]
    limits: tuple[float, float]


def judge_boundaries(
    data: tuple[Vector, Vector],
    pieces: Sequence[CostPiece],
    plan: Resampling,
    options: CurveOptions,
    known: Sequence[KnownPlace] = (),
) -> tuple[BoundaryEvidence, ...]:
    """Judge the boundaries between pieces.

    A boundary is a ``protocol`` switch if it lies where a limit was measured; or if the cost has a step there
    and a limit is declared there (up to 15 % above it, as messages may go the other way before the limit, or
    5 % below), or at least 90 % of the resamples have a boundary within 5 %, or of a step of
    half and more a few values beside it.
    Everything else is a ``knot``.

    Parameters
    ----------
    data : tuple of ndarray
        Sizes and costs, shape (n,), as `sorted_costs` gives them; `plan` is in the same order.
    pieces : sequence of CostPiece
        As `fit_curve` gives them for the same known places.
    known : sequence of KnownPlace
        Limits that were measured, or that the library declares.

    Returns
    -------
    tuple of BoundaryEvidence
        One per boundary, ascending. Intervals hold 95 %, as `fit_segments` gives them: what the data do not
        refute, between the largest size surely before the boundary and the smallest surely beyond. Where the
        values hardly pay for a boundary, it reaches to the neighbouring ones. A measured place has no other.

    References
    ----------
    .. [1] Davison & Hinkley (1997), section 3.8: resampling of nested groups.
    """
    x, y = data
    ends = [piece.high for piece in pieces if piece.high is not None]
    if not ends:
        return ()
    generator = np.random.default_rng(plan.seed)
    windows = [_window(x, ends, number) for number in range(len(ends))]
    counts, beside = [0] * len(ends), [0] * len(ends)
    steps: list[list[float]] = [[] for _ in ends]
    for _ in range(plan.resamples):
        times = _drawn(plan, generator)
        rows = np.repeat(np.arange(x.size), times)
        found = [piece.high for piece in search_pieces(x[rows], y[rows], options) if piece.high is not None]
        for number, end in enumerate(ends):
            counts[number] += any(_is_near(other, end) for other in found)
            beside[number] += any(_is_near(other, end) or _is_beside(x, other, end) for other in found)
            low, high = windows[number]
            here = np.repeat(np.arange(low, high), times[low:high])
            steps[number].append(_step(x[here], y[here], end))
    price = options.break_penalty + options.slope_penalty
    worths = boundary_worths(x, y, pieces, price, options.floor)
    intervals = [
        limits if worth > KNOWN else _between_neighbours(x, ends, number)
        for number, (limits, worth) in enumerate(
            zip(boundary_intervals(x, y, ends, plan.seed), worths, strict=True)
        )
    ]
    return tuple(
        _evidence(
            data,
            pieces,
            number,
            _Drawn(
                counts[number] / max(plan.resamples, 1),
                beside[number] / max(plan.resamples, 1),
                steps[number],
                intervals[number],
            ),
            known,
        )
        for number in range(len(ends))
    )


def _is_near(one: float, other: float) -> bool:
    return abs(math.log(max(one, 1.0) / max(other, 1.0))) <= NEAR


def _is_beside(x: Vector, one: float, other: float) -> bool:
    """Tell whether so few values lie between two places that resamples can hardly keep them apart."""
    places = np.searchsorted(x, [one, other], side="right")
    is_close = abs(math.log(max(one, 1.0) / max(other, 1.0))) <= MEANT
    return is_close and abs(int(places[0]) - int(places[1])) <= BESIDE


def _between_neighbours(x: Vector, ends: Sequence[float], number: int) -> tuple[float, float]:
    """Give the ends of the two pieces of a boundary: it lies between them."""
    return [float(x[0]), *ends][number], [*ends, float(x[-1])][number + 1]


def boundary_intervals(x: Vector, y: Vector, ends: Sequence[float], seed: int) -> list[tuple[float, float]]:
    """Give the 95 % interval of each boundary, the others kept, as `fit_segments` does.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), as `sorted_costs` gives them.
    ends : sequence of float
        Largest size of each piece but the last, ascending.

    Returns
    -------
    list of tuple of float
        The largest size surely before, and the smallest surely beyond; an end without sizes of its own on
        either side has no more than itself.
    """
    sizes, costs, _ = seen_points(np.maximum(x, 1.0), y, Replicates.AUTO)
    places = np.searchsorted(sizes, np.asarray(ends), side="right")
    inside = [number for number, place in enumerate(places) if 0 < place < sizes.size]
    starts = [float(sizes[places[number]]) for number in inside]
    if not starts or len(set(starts)) < len(starts):
        return [(end, end) for end in ends]
    found = _native.break_intervals(
        sizes,
        costs,
        SegmentOptions(floor=0.0),
        starts,
        resamples=INTERVAL_RESAMPLES,
        level=LEVEL,
        seed=seed,
    )
    limits = dict(zip(inside, found, strict=True))
    return [limits.get(number, (end, end)) for number, end in enumerate(ends)]


def _window(x: Vector, ends: Sequence[float], number: int) -> tuple[int, int]:
    """Give the rows around a boundary that belong to its two pieces, at most `WINDOW` on either side."""
    before = ends[number - 1] if number else -1.0
    after = ends[number + 1] if number + 1 < len(ends) else math.inf
    low, at, high = np.searchsorted(x, [before, ends[number], after], side="right")
    return max(int(low), int(at) - WINDOW), min(int(high), int(at) + WINDOW)


def _drawn(plan: Resampling, generator: np.random.Generator) -> Whole:
    """Give how often each value is drawn."""
    runs = np.unique(plan.runs)
    chosen = generator.choice(runs, runs.size) if runs.size > 2 else runs  # noqa: PLR2004 - of 2 runs half of the draws lack one
    times = np.zeros(plan.groups.size, dtype=np.int64)
    for run in chosen:
        inside = plan.runs == run
        groups, place = np.unique(plan.groups[inside], return_inverse=True)
        counts = np.bincount(generator.integers(0, groups.size, groups.size), minlength=groups.size)
        times[inside] += counts[place]
    return times


def _step(x: Vector, y: Vector, end: float) -> float:
    """Give the log ratio of power laws fitted to either side, at the boundary."""
    at = int(np.searchsorted(x, end, side="right"))
    if min(at, x.size - at) < _FEWEST:
        return math.nan
    sides = [median_piece(x[:at], y[:at], "power"), median_piece(x[at:], y[at:], "power")]
    left, right = (side.at(end) for side in sides)
    return math.log(right / left)


def _evidence(
    data: tuple[Vector, Vector],
    pieces: Sequence[CostPiece],
    number: int,
    drawn: _Drawn,
    known: Sequence[KnownPlace],
) -> BoundaryEvidence:
    steps, limits = drawn.steps, drawn.limits
    x, y = data
    ends = [piece.high for piece in pieces if piece.high is not None]
    at = ends[number]
    low, high = _window(x, ends, number)
    step = _step(x[low:high], y[low:high], at)
    finite = np.array([each for each in steps if math.isfinite(each)])
    error = float(finite.std(ddof=1)) if finite.size > 2 else math.nan  # noqa: PLR2004 - a spread of two is none
    exact = next((each for each in known if each.is_measured and each.low == each.high == at), None)
    # An exact place is a boundary itself, or the costs refute it.
    ranges = [each for each in known if each.low < each.high]
    near = [each for each in ranges if each.low * (1 - MEANT) <= at <= each.high * (1 + NEAR)]
    named = exact or min(near, key=lambda each: (not each.is_measured, abs(each.high - at)), default=None)
    recurrence = drawn.beside if abs(step) > CLEAR else drawn.near
    is_step = abs(step) > max(SMALLEST_JUMP, SURE * error)
    is_switch = exact is not None or (is_step and (recurrence >= RECURRENT or named is not None))
    zone, count = _mixed(data, (pieces[number], pieces[number + 1]), at, (low, high))
    source: BoundarySource = "search"
    if named is not None:
        source = "measured" if exact is not None else "declared"
    boundary = Boundary(
        at,
        at if exact is not None else min(limits[0], at),
        at + 1 if exact is not None else max(limits[1], at),
        recurrence,
        "protocol" if is_switch else "knot",
        source,
    )
    return BoundaryEvidence(boundary, step, error, "" if named is None else named.name, zone, count)


def _mixed(
    data: tuple[Vector, Vector], sides: tuple[CostPiece, CostPiece], at: float, rows: tuple[int, int]
) -> tuple[tuple[float, float] | None, int]:
    """Find where values follow the curve of the other side, where two curves can be told apart.

    A value is astray if it is within three deviations, and less than half of the step, of the other side's
    curve and no nearer than that to its own. Going away from the boundary, the zone ends where fewer than one
    in ten of 20 neighbours is.
    """
    x, y = (column[slice(*rows)] for column in data)
    fits = [evaluate(side, x) for side in sides]
    if x.size == 0 or min(float(fit.min()) for fit in fits) <= 0:
        return None, 0
    logs = [np.log(y / fit) for fit in fits]
    own = np.where(x <= at, *logs)
    clear = CUT * 1.4826 * float(np.median(np.abs(own)))
    apart = abs(float(np.log(evaluate(sides[1], [at])[0] / evaluate(sides[0], [at])[0])))
    if apart < clear:
        return None, 0
    reach = min(clear, apart / 2)
    middle = int(np.searchsorted(x, at, side="right"))
    left = ((np.abs(logs[1]) <= reach) & (np.abs(logs[0]) > reach))[:middle][::-1]
    right = ((np.abs(logs[0]) <= reach) & (np.abs(logs[1]) > reach))[middle:]
    lasts = zone_end(left), zone_end(right)
    count = int(left[: lasts[0]].sum() + right[: lasts[1]].sum())
    low = float(x[middle - lasts[0]]) if lasts[0] else at
    high = float(x[middle + lasts[1] - 1]) if lasts[1] else at
    return ((low, high), count) if count else (None, 0)
