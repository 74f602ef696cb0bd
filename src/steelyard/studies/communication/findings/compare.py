"""Two data sets of one plan, regime by regime: boundaries, coefficients, levels and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.replicated_difference import RunValues, replicated_difference, verdicts
from steelyard.analyse.cost_curve.boundaries import NEAR
from steelyard.analyse.cost_curve.curve import fit_curve
from steelyard.analyse.cost_curve.median_line import evaluate, median_error, predict
from steelyard.analyse.cost_curve.piece_search import FEWEST, fit_pieces, sorted_costs
from steelyard.analyse.cost_curve.quantile_table import kolmogorov_distance
from steelyard.errors import AnalysisError
from steelyard.studies.communication.model.fit import FitOptions, for_recordings, judged_delay, measured
from steelyard.studies.communication.model.noise_classes import class_edges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.replicated_difference import Difference, Verdict
    from steelyard.model.cost_model import Boundary, CostPiece
    from steelyard.studies.communication.operations import Operations
    from steelyard.studies.communication.trace import Trace

    Vector = NDArray[np.float64]

MARGIN: Final = 0.02
"""Largest share of a cost that counts as no difference."""

ENOUGH: Final = 1000
"""Round trips in which a switch of the protocol is rarely missed."""

_FEWEST_IN_PIECE: Final = 4 * FEWEST


@dataclass(frozen=True, slots=True)
class BoundaryPair:
    """A switch of the protocol in either data set, and the boundary of the other that is nearest.

    Parameters
    ----------
    first, second : Boundary or None
        ``None`` where there is none within 5 %.
    verdict : str
        ``same`` if their intervals meet or they lie within the margin, ``different`` if not. Where one has
        none, ``different`` too, unless a data set is so small that it may have missed it: ``undecided``, as
        is every difference between two single runs.
    """

    first: Boundary | None
    second: Boundary | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CoefficientChange:
    """One coefficient of one regime in both data sets.

    Parameters
    ----------
    low, high : float
        Sizes of the regime [bytes]; `high` is the largest size measured in the last one.
    coefficient : str
        ``intercept`` and ``slope`` of a line, ``level`` of a constant, ``level`` and ``exponent`` of a power
        law.
    first, second : float
        Means over the runs.
    difference : Difference
        As a share of the cost at the end of the regime where the coefficient weighs most: what an intercept
        changes at its begin, a slope at its end.
    verdict : str
        ``same``, ``different``, ``undecided``.
    """

    low: float
    high: float
    coefficient: str
    first: float
    second: float
    difference: Difference
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LevelChange:
    """What messages of one regime cost as a whole.

    Parameters
    ----------
    low, high : float or None
        Sizes of the regime [bytes].
    difference : Difference
        Logarithm of the second data set's cost over the first one's.
    verdict : str
        ``same``, ``different``, ``undecided``.
    """

    low: float
    high: float | None
    difference: Difference
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two data sets side by side.

    Parameters
    ----------
    states : tuple of str
        Of the host, in either.
    runs : tuple of int
        In either.
    margin : float
        Share of a cost that counts as no difference.
    boundaries, coefficients, levels : tuple
        Ascending.
    noise : tuple of (float, float or None, float)
        Sizes of a class, and the largest distance of the two distributions of measured over the curve.
    """

    states: tuple[str, str]
    runs: tuple[int, int]
    margin: float
    boundaries: tuple[BoundaryPair, ...]
    coefficients: tuple[CoefficientChange, ...]
    levels: tuple[LevelChange, ...]
    noise: tuple[tuple[float, float | None, float], ...]

    @property
    def is_single(self) -> bool:
        """Whether each data set is one run, so that nothing can be claimed."""
        return self.runs == (1, 1)

    @property
    def differs(self) -> bool:
        """Whether a boundary, a coefficient or a whole regime is different."""
        return "different" in self._verdicts

    @property
    def is_undecided(self) -> bool:
        """Whether any of them is not decided."""
        return "undecided" in self._verdicts

    @property
    def _verdicts(self) -> set[str]:
        judged: tuple[BoundaryPair | CoefficientChange | LevelChange, ...] = (
            *self.boundaries,
            *self.coefficients,
            *self.levels,
        )
        return {each.verdict for each in judged}


def compare(
    first: Sequence[Trace],
    second: Sequence[Trace],
    options: FitOptions | None = None,
    *,
    margin: float = MARGIN,
) -> Comparison:
    """Compare two data sets regime by regime.

    Regimes are the pieces of the curve of both data sets together. Every run is fitted by itself in each, so
    that a difference is judged by how much runs of one data set differ.

    Parameters
    ----------
    first, second : sequence of Trace
        Runs of one plan.
    options : FitOptions or None
        As for `model_of`, for both; a state is looked up in either.
    margin : float
        Largest share of a cost that counts as no difference, in (0, 1).

    Raises
    ------
    AnalysisError
        As `model_of`; if the margin is not in (0, 1).
    """
    if not 0 < margin < 1:
        message = f"margin `{margin}` is not a share of a cost; allowed: between 0 and 1"
        raise AnalysisError(message, hint="give for example 0.02")
    used = for_recordings([*first, *second], options or FitOptions())
    sides = [measured(traces, used) for traces in (first, second)]
    halves = [side.half for side in sides]
    pieces = fit_curve(
        np.concatenate([half.size for half in halves]),
        np.concatenate([half.half_s for half in halves]),
        used.curve,
    )
    judged = [judged_delay(half, used)[1] for half in halves]
    unlike: Verdict = "undecided" if len(first) + len(second) <= 2 else "different"  # noqa: PLR2004 - one run each
    missing = unlike if min(len(half) for half in halves) >= ENOUGH else "undecided"
    sides_found = [tuple(each.boundary for each in side) for side in judged]
    boundaries = _boundaries(sides_found, margin, (unlike, missing))
    coefficients = _coefficients(halves, pieces, margin)
    return Comparison(
        states=(sides[0].state, sides[1].state),
        runs=(len(first), len(second)),
        margin=margin,
        boundaries=boundaries,
        coefficients=coefficients,
        levels=_levels(halves, pieces, margin),
        noise=_noise(halves, used),
    )


def _boundaries(
    sides: Sequence[tuple[Boundary, ...]], margin: float, verdicts_apart: tuple[Verdict, Verdict]
) -> tuple[BoundaryPair, ...]:
    unlike, missing = verdicts_apart
    found: list[BoundaryPair] = []
    taken: set[float] = set()
    for boundary in sides[0]:
        other = _nearest(boundary, sides[1])
        if "protocol" not in {boundary.kind, other.kind if other else "knot"}:
            continue
        if other is not None:
            taken.add(other.at)
        is_met = other is not None and _met(boundary, other, margin)
        verdict: Verdict = "same" if is_met else missing if other is None else unlike
        found.append(BoundaryPair(boundary, other, verdict))
    found += [
        BoundaryPair(None, each, missing)
        for each in sides[1]
        if each.kind == "protocol" and each.at not in taken
    ]
    return tuple(sorted(found, key=lambda pair: (pair.first or pair.second or sides[0][0]).at))


def _nearest(boundary: Boundary, others: Sequence[Boundary]) -> Boundary | None:
    near = [each for each in others if _apart(each, boundary) <= NEAR]
    return min(near, key=lambda each: abs(each.at - boundary.at), default=None)


def _met(one: Boundary, other: Boundary, margin: float) -> bool:
    return _apart(one, other) <= margin or (one.low <= other.high and other.low <= one.high)


def _apart(one: Boundary, other: Boundary) -> float:
    return abs(math.log(max(one.at, 1.0) / max(other.at, 1.0)))


def _coefficients(
    halves: Sequence[Operations], pieces: Sequence[CostPiece], margin: float
) -> tuple[CoefficientChange, ...]:
    largest = float(max(half.size.max() for half in halves))
    ends = [piece.high for piece in pieces if piece.high is not None]
    kinds = [piece.kind for piece in pieces]
    fits = [
        [
            fit_pieces(*sorted_costs(half.size[half.run == run], half.half_s[half.run == run]), ends, kinds)
            for run in np.unique(half.run)
            if int(np.sum(half.run == run)) >= FEWEST
        ]
        for half in halves
    ]
    rows: list[tuple[float, float, str, float, float, Difference]] = []
    for number, piece in enumerate(pieces):
        runs = [[fit[number] for fit in side if _is_held(fit[number], piece)] for side in fits]
        if not all(runs):
            continue
        bounds = (max(piece.low, 1.0), largest if piece.high is None else piece.high)
        rows += [
            (piece.low, bounds[1], name, *means, replicated_difference(*values, margin))
            for name, means, values in _numbers(piece, bounds, runs)
        ]
    judged = verdicts([row[-1] for row in rows], margin)
    return tuple(CoefficientChange(*row, verdict) for row, verdict in zip(rows, judged, strict=True))


def _is_held(fitted: CostPiece, piece: CostPiece) -> bool:
    return fitted.count >= _FEWEST_IN_PIECE and fitted.kind == piece.kind


def _levels(
    halves: Sequence[Operations], pieces: Sequence[CostPiece], margin: float
) -> tuple[LevelChange, ...]:
    """Compare what messages of a regime cost as a whole: medians of measured over the common curve."""
    ends = np.array([piece.high for piece in pieces if piece.high is not None])
    rows: list[tuple[CostPiece, Difference]] = []
    for number, piece in enumerate(pieces):
        sides = []
        for half in halves:
            here = half.where(np.searchsorted(ends, half.size, side="left") == number)
            logs = np.log(here.half_s / evaluate(piece, here.size))
            parts = [logs[here.run == run] for run in np.unique(here.run)]
            parts = [part for part in parts if part.size >= _FEWEST_IN_PIECE]
            errors = np.array([median_error(part) for part in parts])
            sides.append(RunValues(np.array([np.median(part) for part in parts]), errors))
        if all(side.values.size for side in sides):
            rows.append((piece, replicated_difference(sides[0], sides[1], margin)))
    judged = verdicts([difference for _, difference in rows], margin)
    return tuple(
        LevelChange(piece.low, piece.high, difference, verdict)
        for (piece, difference), verdict in zip(rows, judged, strict=True)
    )


def _numbers(
    piece: CostPiece, bounds: tuple[float, float], runs: Sequence[Sequence[CostPiece]]
) -> list[tuple[str, tuple[float, float], tuple[RunValues, RunValues]]]:
    """Give each coefficient: its name, its means, and its values per run as shares of the cost."""
    low, high = (float(each) for each in evaluate(piece, np.array(bounds)))
    if piece.kind == "power":
        middle = math.sqrt(bounds[0] * bounds[1])
        level = [np.array([each.at(middle) for each in side]) for side in runs]
        errors = [np.array([(each.base_error or 0.0) / each.base for each in side]) for side in runs]
        # At the middle of the sizes the errors of level and exponent hardly depend on each other.
        tilt = math.log(bounds[1] / bounds[0]) / 2
        spans = [np.array([(each.slope_error or 0.0) * tilt for each in side]) for side in runs]
        least = [np.minimum(*pair) for pair in zip(errors, spans, strict=True)]
        return [
            _row("level", level, [np.log(each) for each in level], least),
            _row("exponent", *_shares(runs, "slope", tilt)),
        ]
    base = _shares(runs, "base", 1 / low)
    if piece.kind == "constant":
        return [_row("level", *base)]
    return [_row("intercept", *base), _row("slope", *_shares(runs, "slope", bounds[1] / high))]


def _shares(
    runs: Sequence[Sequence[CostPiece]], name: str, unit: float
) -> tuple[list[Vector], list[Vector], list[Vector]]:
    values = [np.array([getattr(each, name) for each in side]) for side in runs]
    errors = [np.array([getattr(each, f"{name}_error") or 0.0 for each in side]) for side in runs]
    return values, [each * unit for each in values], [each * unit for each in errors]


def _row(
    name: str, values: Sequence[Vector], shares: Sequence[Vector], errors: Sequence[Vector]
) -> tuple[str, tuple[float, float], tuple[RunValues, RunValues]]:
    means = (float(values[0].mean()), float(values[1].mean()))
    return name, means, (RunValues(shares[0], errors[0]), RunValues(shares[1], errors[1]))


def _noise(
    halves: Sequence[Operations], options: FitOptions
) -> tuple[tuple[float, float | None, float], ...]:
    """Compare the noise around either data set's own curve."""
    curves = [fit_curve(half.size, half.half_s, options.curve) for half in halves]
    ratios = [half.half_s / predict(curve, half.size) for half, curve in zip(halves, curves, strict=True)]
    edges = class_edges(halves[0].size.astype(np.float64), ())
    found: list[tuple[float, float | None, float]] = []
    for low, high in zip((-1.0, *edges), (*edges, None), strict=True):
        parts = [
            ratio[(half.size > low) & (half.size <= (math.inf if high is None else high))]
            for half, ratio in zip(halves, ratios, strict=True)
        ]
        if min(part.size for part in parts) > 0:
            found.append((low, high, kolmogorov_distance(parts[0], parts[1])))
    return tuple(found)
