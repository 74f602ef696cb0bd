"""Stretches of a run in which messages cost the same, and which stretches are of one state.

A state of the host may cost small messages twice as much and medium ones the same: medians over all sizes
would hardly show it. Small and large messages are therefore looked at together and by themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.level_switches import SHORTEST, level_switches
from steelyard.analyse.cost_curve.median_line import median_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Whole = NDArray[np.int64]

SWITCH: Final = 1.25
"""Costs that differ by a smaller factor are those of one state; states differ by 1.4 to 5 times."""

SMALL: Final = 4096
"""Largest of the small messages [bytes]: what costs latency more than bandwidth."""

_SURE: Final = 4.0
_FEWEST: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A stretch of one run and what messages cost in it.

    Parameters
    ----------
    rows : ndarray of int
        Shape (n,): its rows in the table.
    log_cost : float
        Median log residual.
    parts, errors : tuple of float
        The same for small and for large messages, with standard errors; NaN for fewer than 20.
    """

    rows: Whole
    log_cost: float
    parts: tuple[float, float]
    errors: tuple[float, float]

    def distance(self, other: Level) -> float:
        """Give the largest sure difference of log costs, of small or of large messages, or 0."""
        found = 0.0
        for number in range(len(self.parts)):
            step = abs(self.parts[number] - other.parts[number])
            error = math.hypot(self.errors[number], other.errors[number])
            if step > _SURE * error:
                found = max(found, step)
        return found


def split_run(rows: Whole, size: Whole, residual: Vector) -> list[Level]:
    """Split a run where its level switches.

    Parameters
    ----------
    rows : ndarray of int
        Shape (k,), k >= 1: the run's rows of the table, in the order of measuring.
    size, residual : ndarray
        Of the whole table: bytes, and log of measured over the curve (NaN: not known).
    """
    seen = rows[np.isfinite(residual[rows])]
    places: list[int] = []
    for part in (seen, seen[size[seen] <= SMALL], seen[size[seen] > SMALL]):
        for place in level_switches(residual[part], math.log(SWITCH)):
            at = int(np.searchsorted(rows, part[place]))
            if all(abs(at - other) > SHORTEST for other in (0, *places, rows.size)):
                places.append(at)
    places.sort()
    while True:
        levels = [_level(part, size, residual) for part in np.split(rows, places)]
        steps = [one.distance(other) for one, other in pairwise(levels)]
        if not steps or min(steps) >= math.log(SWITCH):
            return levels
        del places[steps.index(min(steps))]


def _level(rows: Whole, size: Whole, residual: Vector) -> Level:
    known = rows[np.isfinite(residual[rows])]
    parts = [residual[known[size[known] <= SMALL]], residual[known[size[known] > SMALL]]]
    medians = [float(np.median(part)) if part.size >= _FEWEST else math.nan for part in parts]
    errors = [median_error(part) if part.size >= _FEWEST else math.nan for part in parts]
    whole = float(np.median(residual[known])) if known.size else 0.0
    return Level(rows, whole, (medians[0], medians[1]), (errors[0], errors[1]))


def grouped(levels: Sequence[Level]) -> list[int]:
    """Give the states of stretches as numbers, from the cheapest on; what does not surely differ shares one.

    Returns
    -------
    list of int
        From 0, one per stretch.
    """
    group = list(range(len(levels)))
    # The longest stretches are the best known: others join the nearest of them.
    order = sorted(range(len(levels)), key=lambda number: -levels[number].rows.size)
    heads: list[int] = []
    for number in order:
        near = min(heads, key=lambda head: levels[head].distance(levels[number]), default=None)
        if near is not None and levels[near].distance(levels[number]) < math.log(SWITCH):
            group[number] = near
        else:
            heads.append(number)
    ranks = {head: rank for rank, head in enumerate(sorted(heads, key=lambda head: levels[head].log_cost))}
    return [ranks[head] for head in group]
