"""The largest split of a series: what is measured of it, and how large it is by chance.

Used by `history`, whose description says which test is made of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHORTEST: Final = 2
"""Fewest results of a segment: one result alone cannot be told from an outlier."""

RULED_OUT: Final = 0.1
"""An autocorrelation is ruled out if so rough a series is rarer than half of this by either estimate."""

CUT_OFF: Final = 3.0
"""Farthest that a value counts from the median, in standard deviations of the noise."""

TRIMMED_SHARE: Final = 0.03
"""Largest steps left out of the noise and of the roughness, which changes of level would inflate."""

_SEED: Final = 20_250_101
_BURN_IN: Final = 200
_VALUES_AT_ONCE: Final = 300_000
_EXACT_LENGTH: Final = 40
_GRID: Final = (*(round(0.05 * step, 2) for step in range(20)), 0.975)


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured of each row: largest split, its place, and two estimates of dependence."""

    sizes: Array
    positions: NDArray[np.int64]
    roughness: Array
    residual_correlation: Array


def measure_split(rows: Array) -> Measured:
    """Measure the largest split of each row, and how neighbours depend on each other.

    The roughness is the ratio of trimmed squared differences at lags 2 and 1, 1 + rho without trimming: it
    forgets levels, however many there are. The correlation of neighbours is that of what is left when the two
    sides of the split have lost their means: it is more precise, for series of one change.

    Parameters
    ----------
    rows : ndarray
        Shape (m, n), n >= 6, finite; a series per row, none constant.
    """
    scaled, roughness = _scaled(rows)
    sums, sizes = _splits(scaled)
    place = sizes.argmax(axis=1)
    index = np.arange(place.size)
    positions = place + SHORTEST
    count = rows.shape[1]
    left = np.arange(count)[None, :] < positions[:, None]
    share = sums[index, place][:, None]
    grand = scaled.mean(axis=1, keepdims=True)
    left_mean = grand + share / positions[:, None]
    right_mean = grand - share / (count - positions)[:, None]
    rest = scaled - np.where(left, left_mean, right_mean)
    total = (rest**2).sum(axis=1)
    neighbours = (rest[:, 1:] * rest[:, :-1]).sum(axis=1)
    return Measured(
        sizes[index, place], positions, roughness, neighbours / np.where(total > 0, total, np.inf)
    )


def _scaled(rows: Array) -> tuple[Array, Array]:
    """Give the rows in units of their noise, cut off around the median, and their roughness."""
    trimmed = max(1, math.ceil(TRIMMED_SHARE * rows.shape[1]))
    squares = np.sort((rows[:, 1:] - rows[:, :-1]) ** 2, axis=1)
    near = squares[:, :-trimmed].mean(axis=1)
    near = np.where(near > 0, near, squares.mean(axis=1))
    far = np.sort((rows[:, 2:] - rows[:, :-2]) ** 2, axis=1)[:, : -2 * trimmed].mean(axis=1)
    scale = np.sqrt(near / 2)[:, None]
    middle = np.median(rows, axis=1, keepdims=True)
    return np.clip((rows - middle) / scale, -CUT_OFF, CUT_OFF), far / near


def _splits(scaled: Array) -> tuple[Array, Array]:
    """Give, for each row and split, the centred sum of the first side and the standardised difference."""
    count = scaled.shape[1]
    sums = np.cumsum(scaled - scaled.mean(axis=1, keepdims=True), axis=1)[:, SHORTEST - 1 : count - SHORTEST]
    left = np.arange(SHORTEST, count - SHORTEST + 1)
    return sums, np.abs(sums) / np.sqrt(left * (count - left) / count)


def permutation_p(values: Array, size: float, draws: int) -> float:
    """Give the share of orders of the same values whose largest split is at least as large.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 6, not constant.
    size : float
        Largest split of the values as they are, from `measure_split`.
    draws : int
        Random orders.
    """
    scaled = _scaled(values[None, :])[0][0]
    generator = np.random.Generator(np.random.PCG64([_SEED, values.size]))
    orders = generator.permuted(np.tile(scaled, (draws, 1)), axis=1)
    return _exceeding(np.sort(_splits(orders)[1].max(axis=1)), size)


def length_of_table(size: int) -> int:
    """Give the length whose table is used: exact for short series, in steps of about 5 % for long ones."""
    if size <= _EXACT_LENGTH:
        return size
    return round(_EXACT_LENGTH * 1.05 ** round(math.log(size / _EXACT_LENGTH) / math.log(1.05)))


@dataclass(frozen=True, slots=True, eq=False)
class NullTable:
    """What is measured of series without change, for each autocorrelation of the grid.

    `medians` and `low` are pairs: for the roughness, and for the correlation of what is left.
    """

    medians: tuple[Array, Array]
    low: tuple[Array, Array]
    splits: tuple[Array, ...]

    def estimate(self, found: Measured) -> Array:
        """Give the smaller of the autocorrelations whose series typically look like this."""
        return _estimate(self.medians, found)

    def p_value(self, found: Measured) -> float:
        """Give the largest p-value over the autocorrelations that are not ruled out."""
        size = float((found.sizes * shrinking(self.estimate(found)))[0])
        plausible = (found.roughness[0] >= self.low[0]) & (found.residual_correlation[0] >= self.low[1])
        plausible[0] = True
        chosen = (splits for splits, is_plausible in zip(self.splits, plausible, strict=True) if is_plausible)
        return max(_exceeding(splits, size) for splits in chosen)


def _estimate(medians: tuple[Array, Array], found: Measured) -> Array:
    by_roughness = np.interp(found.roughness, medians[0], _GRID)
    smaller: Array = np.minimum(by_roughness, np.interp(found.residual_correlation, medians[1], _GRID))
    return smaller


def _exceeding(ascending: Array, size: float) -> float:
    above = ascending.size - int(np.searchsorted(ascending, size * (1 - 1e-9)))
    return (1 + above) / (1 + ascending.size)


def shrinking(autocorrelation: Array) -> Array:
    """Give the square root of the effective share of a series: (1 - rho) / (1 + rho)."""
    share: Array = np.sqrt((1 - autocorrelation) / (1 + autocorrelation))
    return share


def _simulated(size: int, draws: int, step: int) -> Measured:
    """Measure series of one autocorrelation of the grid, in portions that fit a cache."""
    generator = np.random.Generator(np.random.PCG64([_SEED, size, step]))
    portion = max(1, _VALUES_AT_ONCE // (size + _BURN_IN))
    parts = []
    for begin in range(0, draws, portion):
        shocks = generator.standard_normal((min(portion, draws - begin), size + _BURN_IN))
        parts.append(measure_split(signal.lfilter([1.0], [1.0, -_GRID[step]], shocks, axis=1)[:, _BURN_IN:]))
    return Measured(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("sizes", "positions", "roughness", "residual_correlation")
        )
    )


@lru_cache(maxsize=64)
def null_table(size: int, draws: int) -> NullTable:
    """Simulate series without change; the same arguments give the same table.

    Parameters
    ----------
    size : int
        Length of a series, from `length_of_table`.
    draws : int
        Series for each autocorrelation.
    """
    found = [_simulated(size, draws, step) for step in range(len(_GRID))]

    def rising(probability: float) -> tuple[Array, Array]:
        rough = [float(np.quantile(each.roughness, probability)) for each in found]
        rest = [float(np.quantile(each.residual_correlation, probability)) for each in found]
        return np.maximum.accumulate(rough), np.maximum.accumulate(rest)

    medians = rising(0.5)
    splits = tuple(np.sort(each.sizes * shrinking(_estimate(medians, each))) for each in found)
    return NullTable(medians, rising(RULED_OUT / 2), splits)
