"""Where a long noisy series switches its level: large lasting steps, placed to within some values."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

SHORTEST: Final = 100
"""Fewest values of a level."""

_PENALTY: Final = 5.0
_REACH: Final = 200
_CUT: Final = 3.0


def level_switches(values: Vector, smallest: float, *, shortest: int = SHORTEST) -> tuple[int, ...]:
    """Find the positions where a new level begins.

    Values are cut at three robust deviations around their median, robust change points are proposed, levels
    that differ by less than `smallest` are joined, the least different first, and every position is moved to
    where absolute distances to the levels on either side are smallest.

    Parameters
    ----------
    values : ndarray
        Shape (n,), finite, in the order of measuring.
    smallest : float
        Smallest difference of medians that is a switch, positive.
    shortest : int
        Fewest values of a level.

    Returns
    -------
    tuple of int
        Ascending, 0 excluded.

    References
    ----------
    .. [1] Jackson et al. (2005), optimal partitioning, with the cost of Laplace noise (`change_points`).

    Examples
    --------
    >>> noise = np.sin(np.arange(2000.0) ** 2) / 10
    >>> level_switches(noise + np.where(np.arange(2000) < 1200, 0.0, 0.5), 0.2)
    (1200,)
    """
    if values.size < 2 * shortest:
        return ()
    centre = float(np.median(values))
    scale = 1.4826 * float(np.median(np.abs(values - centre)))
    reach = max(_CUT * scale, 2 * smallest)
    cut = np.clip(values, centre - reach, centre + reach)
    found = _native.change_points(cut, penalty=_PENALTY, shortest=shortest)
    for _ in range(2):
        found = _joined(cut, list(found), smallest)
        found = _placed(cut, found, shortest)
    return tuple(_joined(cut, found, smallest))


def _medians(values: Vector, places: Sequence[int]) -> Vector:
    edges = [0, *places, values.size]
    return np.array([np.median(values[begin:end]) for begin, end in pairwise(edges)])


def _joined(values: Vector, places: list[int], smallest: float) -> list[int]:
    while places:
        steps = np.abs(np.diff(_medians(values, places)))
        least = int(np.argmin(steps))
        if steps[least] >= smallest:
            break
        del places[least]
    return places


def _placed(values: Vector, places: list[int], shortest: int) -> list[int]:
    found: list[int] = []
    levels = _medians(values, places)
    for number, place in enumerate(places):
        before = found[-1] if found else 0
        after = places[number + 1] if number + 1 < len(places) else values.size
        low = max(place - _REACH, before + shortest)
        high = min(place + _REACH, after - shortest)
        if low >= high:
            found.append(place)
            continue
        near = values[low:high]
        loss = np.cumsum(np.abs(near - levels[number]) - np.abs(near - levels[number + 1]))
        found.append(low + int(np.argmin(np.concatenate([[0.0], loss]))))
    return found
