"""The smallest lasting change that the search of a history would have found."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POWER: Final = 0.8
"""Share of series in which a change of the stated size is found."""

LARGEST_STEP: Final = 20.0
"""Largest step that is tried, in standard deviations of the noise; a search that misses it sees none."""

_VALUES: Final = 4000
_SERIES: Final = (20, 100)
_HALVINGS: Final = 7
_BURN_IN: Final = 100
_RUNS: Final = 10
_SEED: Final = 20_250_102


@lru_cache(maxsize=512)
def visible_step(size: int, allowed: float, autocorrelation: float, between: float, least: float) -> float:
    """Give the step in the middle of a series that is found in 8 of 10 simulated series.

    Parameters
    ----------
    size : int
        Results of the series, 6 or more.
    allowed : float
        Autocorrelation that is allowed for, in [0, 0.7].
    autocorrelation : float
        Of neighbouring results, at most the one allowed for.
    between : float
        Share of the variance that lies between results, in [0, 1]; the rest is the error of the means of ten
        runs.
    least : float
        What the logarithm of the evidence must exceed.

    Returns
    -------
    float
        In standard deviations of the noise; infinite where no step is found so often.
    """
    fewest, most = _SERIES
    count = min(max(_VALUES // size, fewest), most)
    rng = np.random.Generator(np.random.PCG64([_SEED, size, round(1000 * autocorrelation)]))
    shocks = rng.standard_normal((count, size + _BURN_IN)) * math.sqrt(1 - autocorrelation**2)
    rows = np.empty_like(shocks)
    path = np.zeros(count)
    for place in range(size + _BURN_IN):
        path = autocorrelation * path + shocks[:, place]
        rows[:, place] = path
    rows = math.sqrt(between) * rows[:, _BURN_IN:] + math.sqrt(1 - between) * rng.standard_normal(
        (count, size)
    )
    is_mixed = between < 1
    runs = np.full(size, float(_RUNS) if is_mixed else 1.0)
    squares = np.full(size, (1 - between) * _RUNS * (_RUNS - 1))
    after = np.arange(size) >= size // 2

    def power(step: float) -> float:
        looks = (
            _native.level_looks(row + step * after, runs, squares, allowed, first=size)[0] for row in rows
        )
        return sum(bool(evidence >= least) for evidence in looks) / count

    low, high = 0.0, LARGEST_STEP
    if power(high) < POWER:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
