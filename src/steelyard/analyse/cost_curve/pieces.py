"""A piecewise model: its pieces, and what is known about the breakpoints between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.cost_curve.noise import noise_around
from steelyard.analyse.linear.deviations import CurveKind, deviations

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from steelyard.analyse.cost_curve.noise import NoiseModel
    from steelyard.analyse.linear.deviations import Scale
    from steelyard.analyse.linear.model import LinearModel

    Vector = NDArray[np.float64]


class PieceKind(StrEnum):
    """What one piece is."""

    CONSTANT = "constant"
    LINE = "line"
    POWER = "power"


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where one piece ends and the next begins.

    Parameters
    ----------
    at : float
        Between the last x below and the first x above (geometric middle where both are positive).
    below, above : float
        These two x.
    interval : tuple of float or None
        Bootstrap interval at the level of the call; ``None`` for a given breakpoint.
    mixed : tuple of float or None
        Smallest and largest x between which points of both regimes were seen; ``None`` where the
        change is clean.
    mixed_points : int
        How many points lie on the other side's curve there.
    """

    at: float
    below: float
    above: float
    interval: tuple[float, float] | None
    mixed: tuple[float, float] | None
    mixed_points: int


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One piece: its points and the model R would fit to them.

    Parameters
    ----------
    kind : PieceKind
        A power law is a line on log10 scales.
    low, high : float
        Smallest and largest x in it.
    model : LinearModel
        Least squares over all raw points of the piece, nothing cut.
    base, slope : float
        The curve the search worked with (robust): level or intercept, and slope; for a power law its
        factor and exponent.
    x, y : ndarray
        Shape (n,): its points, in the order of the input.
    is_robust : bool
        Whether the curve is that of a search, fitted to shares and cut, or that of `model`.
    """

    kind: PieceKind
    low: float
    high: float
    model: LinearModel
    base: float
    slope: float
    x: Vector
    y: Vector
    is_robust: bool

    def deviations(self) -> tuple[Scale, Vector]:
        """Give factors of the robust curve, or differences from it, whichever grow less with it."""
        return deviations(self.predict(self.x), self.y)

    def noise(self, *, seed: int = 0) -> NoiseModel:
        """Say which law the deviations from the robust curve follow, if any."""
        line = CurveKind.LINE_OF_SHARES if self.is_robust else CurveKind.LINE
        kind = CurveKind.POWER if self.kind is PieceKind.POWER else line
        return noise_around(self.predict(self.x), self.y, kind=kind, seed=seed)

    def predict(self, x: ArrayLike) -> Vector:
        """Give the robust curve of the search at x."""
        values = np.asarray(x, dtype=np.float64)
        if self.kind is PieceKind.POWER:
            with np.errstate(over="ignore", under="ignore", divide="ignore"):
                found = np.asarray(self.base * values**self.slope)
                is_beyond = ~(np.isfinite(found) & (found > 0))
                if is_beyond.any():
                    # A factor or a power near the ends of what numbers hold.
                    found = np.where(
                        is_beyond, np.exp(np.log(self.base) + self.slope * np.log(values)), found
                    )
            return found
        return np.asarray(self.base + self.slope * values)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedModel:
    """A piecewise model.

    Parameters
    ----------
    pieces : tuple of Piece
        In the order of x.
    breakpoints : tuple of Breakpoint
        Between them.
    cost, bound : float
        Cost of the partition and a lower bound of every partition's cost, in squared sigmas; NaN for
        given breaks.
    sigma : float
        Noise the search used, the floor included; a share of the level where noise is proportional.
    is_searched, on_medians : bool
        Whether breaks were searched, and whether on the medians of repeated x.
    level : float
        Of the breakpoints' intervals.
    is_proportional : bool
        Whether noise is a share of the level.
    """

    pieces: tuple[Piece, ...]
    breakpoints: tuple[Breakpoint, ...]
    cost: float
    bound: float
    sigma: float
    is_searched: bool
    on_medians: bool
    level: float
    is_proportional: bool

    @property
    def gap(self) -> float:
        """How much cheaper another partition could be at most; 0: proven optimal."""
        rounding = 1e-9 * (1.0 + abs(self.cost))
        difference = self.cost - self.bound
        return 0.0 if difference <= rounding else difference

    def noise(self, *, seed: int = 0) -> tuple[NoiseModel, ...]:
        """Say for each piece which law its noise follows, if any."""
        return tuple(piece.noise(seed=seed) for piece in self.pieces)

    def predict(self, x: ArrayLike) -> Vector:
        """Give the robust curve at x; the nearest piece serves beyond the data."""
        values = np.asarray(x, dtype=np.float64)
        at = np.searchsorted([point.at for point in self.breakpoints], values, side="right")
        found = np.empty_like(values)
        for number, piece in enumerate(self.pieces):
            found[at == number] = piece.predict(values[at == number])
        return found
