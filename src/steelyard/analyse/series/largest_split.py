"""The largest split of a series: what is measured of it, and how large it is by chance.

Used to confirm the changes of a series of iterations (`warm_up`). Measuring and simulating are native
(``crates/stats/src/split.rs``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RULED_OUT: Final = 0.1
"""An autocorrelation is ruled out if so rough a series is rarer than half of this by either estimate."""

_SEED: Final = 20_250_101
_EXACT_LENGTH: Final = 40
_COARSE: Final = 4
"""The autocorrelation is estimated from so much fewer series: the whole grid needs them, the test only those
autocorrelations that are not ruled out."""

_GRID: Final = (*(round(0.05 * step, 2) for step in range(20)), 0.975)


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured of a series.

    Parameters
    ----------
    size : float
        Largest standardised difference of the two sides, over all splits.
    position : int
        First value of the second side.
    roughness : float
        Ratio of trimmed squared differences at lags 2 and 1; 1 + rho without trimming. It forgets levels,
        however many there are.
    residual_correlation : float
        Correlation of neighbours in what is left when the two sides have lost their means. More precise, for
        series of one change.
    noise : float
        Standard deviation of the noise, from trimmed differences of neighbours.
    """

    size: float
    position: int
    roughness: float
    residual_correlation: float
    noise: float


def measure_split(values: Array) -> Measured:
    """Measure the largest split of a series, and how neighbours depend on each other.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 6, finite, not constant.
    """
    return Measured(*_native.measure_split(values))


def length_of_table(size: int) -> int:
    """Give the length whose table is used: exact for short series, in steps of some 5 % for long ones."""
    if size <= _EXACT_LENGTH:
        return size
    return round(_EXACT_LENGTH * 1.05 ** round(math.log(size / _EXACT_LENGTH) / math.log(1.05)))


@dataclass(frozen=True, slots=True, eq=False)
class NullTable:
    """What is measured of series without change, for each autocorrelation of the grid.

    Parameters
    ----------
    length, draws : int
        Length of a series, and series for each autocorrelation.
    medians, low : tuple of ndarray
        Medians and low quantiles over the grid, of the roughness and of the correlation of what is left.
    """

    length: int
    draws: int
    medians: tuple[Array, Array]
    low: tuple[Array, Array]

    def estimate(self, found: Measured) -> float:
        """Give the smaller of the autocorrelations whose series typically look like this."""
        return float(_estimate(self.medians, found.roughness, found.residual_correlation))

    def p_value(self, found: Measured) -> float:
        """Give the largest p-value over the autocorrelations that are not ruled out."""
        size = found.size * float(shrinking(self.estimate(found)))
        return max(exceeding(self.sizes(step), size) for step in self._plausible(found))

    def _plausible(self, found: Measured) -> list[int]:
        plausible = (found.roughness >= self.low[0]) & (found.residual_correlation >= self.low[1])
        plausible[0] = True
        return [int(step) for step in np.flatnonzero(plausible)]

    def sizes(self, step: int) -> Array:
        """Give the shrunk sizes of one autocorrelation, ascending."""
        return _sizes_by_chance(self, step)


@lru_cache(maxsize=512)
def _sizes_by_chance(table: NullTable, step: int) -> Array:
    sizes, roughness, residual = _simulated(table.length, table.draws, (_GRID[step],))[0]
    return np.sort(sizes * shrinking(_estimate(table.medians, roughness, residual)))


def _estimate(medians: tuple[Array, Array], roughness: Array | float, residual: Array | float) -> Array:
    by_roughness = np.interp(roughness, medians[0], _GRID)
    smaller: Array = np.minimum(by_roughness, np.interp(residual, medians[1], _GRID))
    return smaller


def exceeding(ascending: Array, size: float) -> float:
    """Give the p-value of a size: the share of sizes by chance that are as large, itself counted."""
    above = ascending.size - int(np.searchsorted(ascending, size * (1 - 1e-9)))
    return (1 + above) / (1 + ascending.size)


def shrinking(autocorrelation: Array | float) -> Array:
    """Give the square root of the effective share of a series: (1 - rho) / (1 + rho)."""
    rho = np.asarray(autocorrelation)
    share: Array = np.sqrt((1 - rho) / (1 + rho))
    return share


@lru_cache(maxsize=256)
def null_table(size: int, draws: int) -> NullTable:
    """Simulate series without change; the same arguments give the same table.

    Parameters
    ----------
    size : int
        Length of a series, from `length_of_table`.
    draws : int
        Series for each autocorrelation.
    """
    found = _simulated(size, max(draws // _COARSE, 1), _GRID)

    def rising(probability: float) -> tuple[Array, Array]:
        rough, rest = (np.quantile(found[:, which], probability, axis=1) for which in (1, 2))
        return np.maximum.accumulate(rough), np.maximum.accumulate(rest)

    return NullTable(size, draws, rising(0.5), rising(RULED_OUT / 2))


def _simulated(size: int, draws: int, grid: tuple[float, ...]) -> Array:
    """Give sizes, roughness and residual correlation of simulated series, shape (len(grid), 3, draws)."""
    rows = _native.simulated_splits(size, draws, np.array(grid), seed=_SEED)
    return rows.reshape(len(grid), draws, 4)[:, :, [0, 2, 3]].transpose(0, 2, 1)
