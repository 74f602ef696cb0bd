"""The smallest lasting change that the test of a history would have seen."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import signal

from steelyard.analyse.largest_split import critical, exceeding, measure_split, null_table, permutation_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POWER: Final = 0.8
"""Share of series in which a change of the stated size is found."""

LARGEST_STEP: Final = 12.0
"""Largest step that is tried, in standard deviations of the noise; a test that misses it sees none."""

_SERIES: Final = 200
_LONG: Final = 1000
_SHORT: Final = 40
_ORDERS: Final = 20
_HALVINGS: Final = 7
_BURN_IN: Final = 200
_SEED: Final = 20_250_102


@lru_cache(maxsize=512)
def visible_step(
    size: int,
    draws: int,
    autocorrelation: float,
    most_dependent: float,
    error: float,
    *,
    is_independent: bool,
) -> float:
    """Give the step in the middle of a series that is found in 8 of 10 simulated series.

    Parameters
    ----------
    size : int
        Length of the series, from `length_of_table`.
    draws : int
        Series of the table of the test.
    autocorrelation : float
        Of neighbours, in [0, 1).
    most_dependent : float
        Above this estimated autocorrelation nothing is claimed.
    error : float
        Largest p-value of a change.
    is_independent : bool
        Whether the results are taken for independent. For long series the permutation test is stood in for
        by its limit, the test with independent normal series.

    Returns
    -------
    float
        In units of the noise as `measure_split` measures it; infinite where no step is found so often.
    """
    table = null_table(size, draws)
    bound = critical(table.sizes(0), error)
    rng = np.random.Generator(np.random.PCG64([_SEED, size, round(1000 * autocorrelation)]))
    count = _SERIES if size <= _LONG else _SERIES // 2
    shocks = rng.standard_normal((count, size + _BURN_IN))
    rows: Array = signal.lfilter([1.0], [1.0, -autocorrelation], shocks, axis=1)[:, _BURN_IN:]
    noise = float(np.median([measure_split(row).noise for row in rows]))
    after = np.arange(size) >= size // 2

    def is_seen(row: Array) -> bool:
        found = measure_split(row)
        if is_independent and size <= _SHORT:
            # The orders of few values with a step have larger splits than those of values without.
            orders = permutation_sizes(row, min(draws, math.ceil(_ORDERS / error)))
            return exceeding(orders, found.size) <= error
        if is_independent:
            return found.size >= bound
        return table.estimate(found) <= most_dependent and table.p_value(found) <= error

    def power(step: float) -> float:
        return sum(is_seen(row + step * noise * after) for row in rows) / count

    low, high = 0.0, LARGEST_STEP
    if power(high) < POWER:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
