"""How far devices differ, and where one more device of the same kind would lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard.analyse.intervals.describe import mean, standard_deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FEWEST_DEVICES: Final = 3
"""Two devices tell nothing of the scatter of devices that a prediction could rest on."""


@dataclass(frozen=True, slots=True)
class DeviceScatter:
    """Scatter over devices, on the logarithm of run values.

    Parameters
    ----------
    between_sd, within_sd : float
        Standard deviation of devices, and of runs on one device: relative to the mean. `within_sd` is not a
        number where each device has one run.
    low, high : float
        Limits of the ratio of a new device to the middle of these devices.
    level : float
        Coverage of the limits.
    devices : int
        Number of devices.
    """

    between_sd: float
    within_sd: float
    low: float
    high: float
    level: float
    devices: int


def device_scatter(runs: Sequence[NDArray[np.float64]], level: float = 0.95) -> DeviceScatter | None:
    """Give the device's component of variance and the limits for a new device.

    Parameters
    ----------
    runs : sequence of ndarray
        Run values of each device, positive, same unit; each shape (n_i,), n_i >= 1.
    level : float
        Coverage in (0, 1).

    Returns
    -------
    DeviceScatter or None
        ``None`` for fewer than three devices. The limits are those of a new device's mean over as many runs:
        the scatter of the observed means, which holds that of the runs too.

    References
    ----------
    .. [1] Searle, Casella & McCulloch (1992), Variance Components, section 3.6 (analysis of variance, unequal
       numbers); a negative component counts as 0.
    .. [2] Hahn & Meeker (1991), Statistical Intervals, section 4.7 (prediction of one further value).

    Examples
    --------
    >>> found = device_scatter([np.array([1.0, 1.02]), np.array([1.1, 1.12]), np.array([0.9, 0.92])])
    >>> round(found.between_sd, 3), round(found.low, 2), round(found.high, 2)
    (0.099, 0.61, 1.64)
    """
    if len(runs) < FEWEST_DEVICES:
        return None
    logarithms = [np.log(each) for each in runs]
    means = np.array([mean(each) for each in logarithms])
    count = len(runs)
    half = float(special.stdtrit(count - 1, (1 + level) / 2)) * standard_deviation(means)
    half *= math.sqrt(1 + 1 / count)
    between, within = _components(logarithms, means)
    return DeviceScatter(between, within, math.exp(-half), math.exp(half), level, count)


def _components(logarithms: Sequence[NDArray[np.float64]], means: NDArray[np.float64]) -> tuple[float, float]:
    """Give the standard deviations between and within devices."""
    sizes = np.array([each.size for each in logarithms], dtype=np.float64)
    total, count = float(sizes.sum()), len(logarithms)
    if total == count:
        return standard_deviation(means), math.nan
    grand = mean(np.concatenate(list(logarithms)))
    mean_square = float((sizes * (means - grand) ** 2).sum()) / (count - 1)
    inside = math.fsum(
        float(((each - middle) ** 2).sum()) for each, middle in zip(logarithms, means, strict=True)
    ) / (total - count)
    per_device = (total - float((sizes**2).sum()) / total) / (count - 1)
    return math.sqrt(max(0.0, (mean_square - inside) / per_device)), math.sqrt(inside)


@dataclass(frozen=True, slots=True)
class BetweenHosts:
    """The component of variance between hosts, on the logarithm of unit values.

    Parameters
    ----------
    sd, low, high : float
        Standard deviation between hosts, relative to the mean, with its limits; these are not numbers where
        no host has two units.
    within_sd : float
        Of units on one host; not a number where no host has two.
    p_value : float
        Test of no component at all; 1 where there is no test.
    hosts, units : int
        Their numbers.
    """

    sd: float
    low: float
    high: float
    within_sd: float
    p_value: float
    hosts: int
    units: int


def variance_between(units: Sequence[NDArray[np.float64]], level: float = 0.95) -> BetweenHosts | None:
    """Give the component of variance between hosts with an interval, from two hosts on.

    Parameters
    ----------
    units : sequence of ndarray
        Positive values of the independent units of each host, each shape (n_i,), n_i >= 1.
    level : float
        Coverage in (0, 1), at least, for normal effects.

    Returns
    -------
    BetweenHosts or None
        ``None`` for fewer than two hosts. The interval of two hosts is so wide that it says little.

    References
    ----------
    .. [1] Williams (1962), Biometrika 49, 278; Tukey (1951), Biometrics 7, 33: limits of a component, with
       coverage of at least the level.
    .. [2] Thomas & Hultquist (1978), Ann. Statist. 6, 582: unequal numbers by unweighted means and the
       harmonic mean of the numbers.

    Examples
    --------
    >>> found = variance_between([np.array([1.0, 1.02]), np.array([1.1, 1.12]), np.array([0.9, 0.92])])
    >>> round(found.sd, 3), round(found.low, 3), round(found.high, 2)
    (0.099, 0.047, 0.62)
    """
    count = len(units)
    if count < 2:  # noqa: PLR2004 - one host has no scatter
        return None
    logarithms = [np.log(each) for each in units]
    means = np.array([mean(each) for each in logarithms])
    sizes = np.array([each.size for each in logarithms], dtype=np.float64)
    total = int(sizes.sum())
    between_free, within_free = count - 1, total - count
    of_means = standard_deviation(means) ** 2
    if within_free == 0:
        return BetweenHosts(math.sqrt(of_means), math.nan, math.nan, math.nan, 1.0, count, total)
    within = (
        math.fsum(float(((each - middle) ** 2).sum()) for each, middle in zip(logarithms, means, strict=True))
        / within_free
    )
    size = count / float((1 / sizes).sum())
    square = size * of_means
    tail = (1 - level) / 2

    def limit(p: float) -> float:
        ratio = float(special.fdtri(between_free, within_free, p))
        alone = float(special.chdtri(between_free, 1 - p)) / between_free
        return math.sqrt(max(0.0, square - within * ratio) / (size * alone))

    if within > 0:
        p_value = float(special.fdtrc(between_free, within_free, square / within))
    else:
        p_value = 0.0 if square > 0 else 1.0
    sd = math.sqrt(max(0.0, square - within) / size)
    return BetweenHosts(sd, limit(1 - tail), limit(tail), math.sqrt(within), p_value, count, total)
