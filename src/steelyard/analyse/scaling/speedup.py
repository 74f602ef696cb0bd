"""Speed-up from trials: ratios of medians, resampled by block, and the line through them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.linear.model import linear_model
from steelyard.design.seeds import Purpose, generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

FEWEST_TRIALS: Final = 11
"""Trials from which the interval of a ratio of medians is called guaranteed.

With fewer the percentile interval of a median is too short; ``test_speedup.py`` simulates it.
"""

FEWEST_POINTS: Final = 3
"""A line through fewer points has no error."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A ratio of medians with its interval and the resamples behind it.

    Parameters
    ----------
    value, low, high : float
        Ratio, limits; limits are NaN with fewer than 2 trials.
    resampled : ndarray
        Shape (resamples,): the ratio of each resample.
    trials : int
        Trials of the side that has fewer.
    """

    value: float
    low: float
    high: float
    resampled: Vector
    trials: int

    @property
    def is_guaranteed(self) -> bool:
        """Whether there are enough trials for the nominal level."""
        return self.trials >= FEWEST_TRIALS


def draw_blocks(blocks: int, *, resamples: int, seed: int) -> NDArray[np.int64]:
    """Draw which blocks make up each resample.

    Trials of one block share its disturbances, whatever their cell; resampling whole blocks keeps that
    relation in every ratio and every fit that is made of the same draws.

    Parameters
    ----------
    blocks : int
        Blocks of the study, at least 1.
    resamples : int
        At least 1.
    seed : int
        Seed of the plan; stream `Purpose.RESAMPLING`.

    Returns
    -------
    ndarray
        Shape (resamples, blocks), positions of blocks from 0.
    """
    return generator(seed, Purpose.RESAMPLING).integers(0, blocks, size=(resamples, blocks))


def median_of(values: Vector) -> float:
    """Give the median of what is there; NaN where nothing is.

    Examples
    --------
    >>> median_of(np.array([3.0, np.nan, 1.0]))
    2.0
    """
    kept = values[np.isfinite(values)]
    return float(np.median(kept)) if kept.size else math.nan


def resampled_medians(values: Vector, draws: NDArray[np.int64]) -> Vector:
    """Give the median of each resample.

    Parameters
    ----------
    values : ndarray
        Shape (blocks,): one value per block, NaN where the block has none.
    draws : ndarray
        Shape (resamples, blocks), from `draw_blocks`.

    Returns
    -------
    ndarray
        Shape (resamples,); NaN for a resample without a value.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resample without a value is NaN, as promised
        return np.asarray(np.nanmedian(values[draws], axis=1))


def ratio_of_medians(
    numerator: Vector, denominator: Vector, draws: NDArray[np.int64], *, level: float = 0.95
) -> Ratio:
    """Give median(numerator) / median(denominator) with a percentile interval over resampled blocks.

    Parameters
    ----------
    numerator, denominator : ndarray
        Shape (blocks,), same unit, positive; NaN where a block has no trial.
    draws : ndarray
        Shape (resamples, blocks).
    level : float
        Coverage in (0, 1).

    References
    ----------
    .. [1] Davison & Hinkley (1997), Bootstrap Methods and their Application, section 3.8: hierarchical
       data are resampled at the top level, here the block.

    Examples
    --------
    >>> draws = draw_blocks(5, resamples=1000, seed=1)
    >>> ratio_of_medians(np.array([20.0, 21, 19, 20, 22]), np.array([10.0, 10, 10, 10, 10]), draws).value
    2.0
    """
    trials = min(int(np.isfinite(side).sum()) for side in (numerator, denominator))
    below = median_of(denominator)
    value = median_of(numerator) / below if below > 0 else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = resampled_medians(numerator, draws) / resampled_medians(denominator, draws)
    low, high = limits_of(resampled, level) if trials > 1 else (math.nan, math.nan)
    return Ratio(value, low, high, resampled, trials)


def limits_of(resampled: Vector, level: float = 0.95) -> tuple[float, float]:
    """Give the percentile limits of resampled values, which may be infinite; NaN where there is none."""
    kept = resampled[~np.isnan(resampled)]
    if kept.size == 0:
        return math.nan, math.nan
    # Order statistics, not means of two: between a finite and an infinite one there is none.
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)


def shy_percent(speedup: ArrayLike, workers: ArrayLike) -> Vector:
    """Give how far a speed-up stays below the number of workers [percent].

    Examples
    --------
    >>> round(float(shy_percent(12.50104, 13)), 5)
    3.83815
    """
    ideal = np.asarray(workers, dtype=np.float64)
    return np.asarray(100 * (ideal - np.asarray(speedup, dtype=np.float64)) / ideal)


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The line of speed-up on workers.

    Parameters
    ----------
    slope, intercept, r_squared : float
        Of ordinary least squares.
    low, high : float
        Interval of the slope from the trials; NaN where only medians exist.
    p_one : float
        Two-sided p-value of slope 1 by the heteroscedasticity-robust error HC3; NaN below 3 points.
    """

    slope: float
    intercept: float
    r_squared: float
    low: float
    high: float
    p_one: float


def fit_slope(workers: Vector, speedups: Vector, resampled: Vector | None = None) -> Slope:
    """Fit a line to speed-ups.

    Parameters
    ----------
    workers, speedups : ndarray
        Shape (n,), n >= 2 distinct numbers of workers.
    resampled : ndarray or None
        Shape (resamples, n): the speed-ups of each resample.

    References
    ----------
    .. [1] Long & Ervin (2000), American Statistician 54: HC3 for few observations.

    Examples
    --------
    >>> found = fit_slope(np.array([1.0, 2, 3, 7]), np.array([0.98601, 1.95762, 2.92583, 6.79893]))
    >>> round(found.slope, 6), round(found.r_squared, 7)
    (0.968626, 0.9999997)
    """
    model = linear_model(workers, speedups, names=("workers", "speedup"))
    low = high = p_one = math.nan
    if resampled is not None:
        centred = workers - workers.mean()
        low, high = limits_of(resampled @ centred / float(centred @ centred))
    slope = float(model.coefficients[1])
    error = float(model.hc3_errors[1])
    if workers.size >= FEWEST_POINTS and math.isfinite(error) and error > 0:
        p_one = _native.student_two_sided((slope - 1) / error, model.residual_df)
    return Slope(slope, float(model.coefficients[0]), model.r_squared, low, high, p_one)
