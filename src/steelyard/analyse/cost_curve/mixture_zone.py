"""Where points of two regimes lie side by side around a breakpoint."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.pieces import Piece

    Vector = NDArray[np.float64]


def mixture_zone(
    left: Piece, right: Piece, at: float, data: tuple[Vector, Vector, float]
) -> tuple[tuple[float, float] | None, int]:
    """Find where points follow the curve of the other side, where two curves can be told apart.

    A point counts if it lies within 3 sigma of the other side's curve and beyond 3 sigma of its own.
    Going away from the break, the zone ends where fewer than one in ten of 20 neighbours counts.
    """
    x, y, sigma = data
    clear = 3.0 * sigma
    here, there = float(left.predict(at)), float(right.predict(at))
    if math.isnan(sigma) or min(here, there) <= 0 or abs(here - there) < 2 * clear * max(here, there):
        return None, 0
    order = np.argsort(x, kind="stable")
    places, values = x[order], y[order]
    ends = []
    total = 0
    for own, other, mask in ((left, right, places < at), (right, left, places >= at)):
        near_x, near_y = places[mask], values[mask]
        if own is left:
            near_x, near_y = near_x[::-1], near_y[::-1]
        mine, others = own.predict(near_x), other.predict(near_x)
        strays = (np.abs(near_y - others) <= clear * np.abs(others)) & (np.abs(near_y - mine) > clear * mine)
        last = zone_end(strays)
        total += int(strays[:last].sum())
        ends.append(float(near_x[last - 1]) if last else (left.high if own is left else right.low))
    return ((ends[0], ends[1]), total) if total else (None, 0)


def zone_end(strays: NDArray[np.bool_], window: int = 20, share: float = 0.1) -> int:
    """Give how many points, counted from the break, belong to the zone: up to its last stray."""
    reach = 0
    while reach < strays.size:
        block = strays[reach : reach + window]
        if block.sum() < share * window:
            break
        reach += window
    found = np.flatnonzero(strays[:reach])
    return int(found[-1]) + 1 if found.size else 0
