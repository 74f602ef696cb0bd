"""Bounds of a group-sequential test: how far a statistic must lie out at each look.

Looking at the data again and again and stopping at the first "significant" look raises the rate of
false alarms without limit. Here every look spends a part of one error rate, and the bound of a look
follows from what is left, given the looks before.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FARTHEST_Z: Final = 8.5
"""The normal distribution beyond holds 1e-17, less than a double resolves beside 1."""

_BOUND_PRECISION: Final = 1e-11
"""Bisecting is enough: importing a solver would take 0.15 s of CPU before the first run."""
_FEWEST_POINTS: Final = 201
_MOST_POINTS: Final = 3001
_POINTS_PER_SD: Final = 4


def pocock_spending(error: float, fraction: float) -> float:
    """Give the error that may be spent up to a fraction of the largest experiment.

    Parameters
    ----------
    error : float
        Error rate of the whole procedure, in (0, 1).
    fraction : float
        Part of the largest experiment that is over; clipped to [0, 1].

    Returns
    -------
    float
        ``error * ln(1 + (e - 1) * fraction)``: 0 at the begin, `error` at the end.

    References
    ----------
    .. [1] Lan & DeMets (1983), Biometrika 70, alpha*_2 (Pocock-like).

    Examples
    --------
    >>> pocock_spending(0.05, 1.0), pocock_spending(0.05, 0.0)
    (0.05, 0.0)
    """
    part = min(max(fraction, 0.0), 1.0)
    return error * math.log1p((math.e - 1) * part)


def staged_spending(error: float, fraction: float) -> float:
    """Give the error that may be spent by an experiment that goes on after its end, each time with as much.

    Parameters
    ----------
    error : float
        Error rate of each stage, in (0, 1).
    fraction : float
        Part of the first stage that is over; beyond 1 of the next one, and so on.

    Examples
    --------
    >>> staged_spending(0.05, 1.0), staged_spending(0.05, 2.0)
    (0.05, 0.1)
    """
    before = max(math.ceil(fraction) - 1, 0)
    return before * error + pocock_spending(error, fraction - before)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Where the sum of scores is after a look, given that no look so far ended the test.

    `places` and `masses` have shape (m,): points, and density times weight of integration; `bound` is the
    last look's, as z.
    """

    information: float
    places: NDArray[np.float64]
    masses: NDArray[np.float64]
    bound: float


def crossing_bounds(information: tuple[float, ...], spent: tuple[float, ...], sides: int) -> list[float]:
    """Give the bound of each look, so that the looks together err exactly as often as they may.

    Under the null hypothesis the sum of scores is a random walk with independent normal steps. The bound
    ``z_k`` solves P(no look before k crosses, look k crosses) = ``spent[k] - spent[k - 1]``, computed by
    recursive numerical integration of the density of the walk inside the bounds.

    Parameters
    ----------
    information : tuple of float
        Information at each look, ascending; here the number of blocks.
    spent : tuple of float
        Error spent up to each look, in (0, 1), not descending.
    sides : int
        1: only large values cross. 2: large and small values cross, each with half of the error.

    Returns
    -------
    list of float
        Bounds as z; infinite where a look may spend nothing.

    Raises
    ------
    AnalysisError
        If information or error spent does not ascend.

    References
    ----------
    .. [1] Armitage, McPherson & Rowe (1969), J. R. Stat. Soc. A 132 (the recursion).
    .. [2] Jennison & Turnbull (2000), Group Sequential Methods, ch. 7 and 19. Deviation: equally spaced
       points with Simpson's weights.

    Examples
    --------
    >>> [round(z, 3) for z in crossing_bounds((1.0,), (0.05,), 2)]
    [1.96]
    """
    steps = itertools.pairwise(information)
    if any(after <= before for before, after in steps) or list(spent) != sorted(spent):
        message = f"looks do not ascend: information {information}, error spent {spent}"
        raise AnalysisError(message)
    return [_walk(information[: k + 1], spent[: k + 1], sides).bound for k in range(len(information))]


@lru_cache(maxsize=4096)
def _walk(information: tuple[float, ...], spent: tuple[float, ...], sides: int) -> _Walk:
    now = information[-1]
    if len(information) == 1:
        bound = -float(scipy.special.ndtri(spent[0] / sides)) if spent[0] > 0 else math.inf
        places, weights = _points(now, bound, sides)
        density = np.exp(-(places**2) / (2 * now)) / math.sqrt(2 * math.pi * now)
        return _Walk(now, places, weights * density, bound)
    before = _walk(information[:-1], spent[:-1], sides)
    bound = _solve(before, now, spent[-1] - spent[-2], sides)
    places, weights = _points(now, bound, sides)
    variance = now - before.information
    steps = np.exp(-((places[:, None] - before.places[None, :]) ** 2) / (2 * variance))
    density = steps @ before.masses / math.sqrt(2 * math.pi * variance)
    return _Walk(now, places, weights * density, bound)


def _solve(before: _Walk, now: float, error: float, sides: int) -> float:
    """Find the bound that is crossed first at this look with the given probability."""
    scale = math.sqrt(now)
    step = math.sqrt(now - before.information)

    def crossed(bound: float) -> float:
        above = scipy.special.ndtr((before.places - bound * scale) / step)
        below = scipy.special.ndtr((-bound * scale - before.places) / step) if sides > 1 else 0.0
        return float(before.masses @ (above + below))

    if error <= 0 or crossed(FARTHEST_Z) >= error:
        return math.inf
    if crossed(0.0) <= error:
        return 0.0
    low, high = 0.0, FARTHEST_Z
    while high - low > _BOUND_PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if crossed(middle) > error else (low, middle)
    return (low + high) / 2


def _points(information: float, bound: float, sides: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give points inside the bounds, close enough for a next step of one unit, and Simpson's weights."""
    high = min(bound, FARTHEST_Z)
    low = -high if sides > 1 else -FARTHEST_Z
    wanted = (high - low) * math.sqrt(information) * _POINTS_PER_SD
    count = int(min(max(wanted, _FEWEST_POINTS), _MOST_POINTS)) | 1
    places = np.linspace(low, high, count) * math.sqrt(information)
    weights = np.full(count, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return places, weights * (places[1] - places[0]) / 3
