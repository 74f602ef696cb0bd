"""Bootstrap intervals of one sample, all from one pass of the native kernels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAD_SCALE: Final = 1.482602218505602
"""1 / (standard normal quantile of 0.75): makes the MAD estimate sigma for normal data (R's `mad`)."""


class Statistic(StrEnum):
    """What two samples are compared on."""

    MEAN = "mean"
    SD = "sd"
    MEDIAN = "median"
    MAD = "mad"
    CV = "cv"

    @property
    def is_location(self) -> bool:
        """Whether the statistic says where the values lie, rather than how far they scatter."""
        return self in {Statistic.MEAN, Statistic.MEDIAN}


@dataclass(frozen=True, slots=True)
class Resampling:
    """How much is resampled, and from which stream.

    Parameters
    ----------
    seed : int
        The plan's seed, at least 0.
    cell : int
        What tells two samples of one study apart, at least 0; the same pair gives the same numbers.
    resamples : int
        At least 1; 1000 is the published rule's.
    level : float
        Nominal coverage in (0, 1).
    """

    seed: int
    cell: int
    resamples: int = 1000
    level: float = 0.95


Limits = tuple[float, float]


def require_level(level: object, least: float = 0) -> None:
    """Check that a confidence level is one, and not one in percent.

    Parameters
    ----------
    level : object
        What was given.
    least : float
        What it must exceed.

    Raises
    ------
    UsageError
        If it is not a number between that and 1.
    """
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not least < level < 1:
        message = f"`level` is {level!r}; allowed: between {least:g} and 1, both excluded"
        raise UsageError(message, hint="95 % is `level=0.95`")


@dataclass(frozen=True, slots=True)
class Intervals:
    """An estimate with the usual bootstrap intervals; limits that do not exist are not numbers."""

    estimate: float
    percentile: Limits
    basic: Limits
    bca: Limits
    studentised: Limits

    def scaled(self, factor: float) -> Intervals:
        """Give the same in another unit."""
        parts = (self.percentile, self.basic, self.bca, self.studentised)
        return Intervals(self.estimate * factor, *((low * factor, high * factor) for low, high in parts))


def bootstrap_intervals(
    values: NDArray[np.float64], resampling: Resampling, statistics: tuple[Statistic, ...] = tuple(Statistic)
) -> dict[Statistic, Intervals]:
    """Bootstrap statistics of one sample.

    Mean, sd and cv come from one pass; the median and the MAD from a second.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 2, finite, any order, any unit.
    resampling : Resampling
        Numbers of resamples and stream.
    statistics : tuple of Statistic
        Which to give.

    Returns
    -------
    dict
        Intervals by statistic, in the unit of the values (`cv`: ratio sd over mean).

    Raises
    ------
    AnalysisError
        If the sample has fewer than 2 values or one that is not finite.

    References
    ----------
    .. [1] Davison & Hinkley (1997), ch. 5; replicate quantiles as in R's `boot.ci` (normal interpolation).

    Examples
    --------
    >>> found = bootstrap_intervals(np.array([1.0, 2.0, 3.0, 4.0]), Resampling(seed=1, cell=0))
    >>> found[Statistic.MEAN].estimate
    2.5
    """
    found: dict[Statistic, Intervals] = {}
    resamples, level, seed, cell = resampling.resamples, resampling.level, resampling.seed, resampling.cell
    moments = (Statistic.MEAN, Statistic.SD, Statistic.CV)
    if any(statistic in moments for statistic in statistics):
        lengths = np.array([values.size], dtype=np.int64)
        table = _native.moment_bootstrap(
            values, lengths, resamples=resamples, level=level, seed=seed, cell=cell
        )
        found |= {statistic: _intervals(row) for statistic, row in zip(moments, table, strict=True)}
    if Statistic.MEDIAN in statistics:
        table = _native.quantile_bootstrap(
            values, [0.5], [], resamples=resamples, level=level, seed=seed, cell=cell
        )
        found[Statistic.MEDIAN] = _intervals(table[0])
    if Statistic.MAD in statistics:
        table = _native.deviation_bootstrap(values, resamples=resamples, level=level, seed=seed, cell=cell)
        found[Statistic.MAD] = _intervals(table[1]).scaled(MAD_SCALE)
    return {statistic: found[statistic] for statistic in statistics}


def interquartile_range(values: NDArray[np.float64], resampling: Resampling) -> Intervals:
    """Bootstrap the difference of the quartiles (type 7) by order statistics.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 1, finite, any order.
    resampling : Resampling
        Numbers of resamples and stream.

    Returns
    -------
    Intervals
        In the unit of the values; percentile and basic limits only.
    """
    table = _native.quantile_bootstrap(
        values,
        [0.25, 0.75],
        [(0, 1)],
        resamples=resampling.resamples,
        level=resampling.level,
        seed=resampling.seed,
        cell=resampling.cell,
    )
    return _intervals(table[2])


def _intervals(row: NDArray[np.float64]) -> Intervals:
    estimate, *limits = (float(value) for value in row)
    low = limits[0::2]
    high = limits[1::2]
    return Intervals(estimate, *zip(low, high, strict=True))
