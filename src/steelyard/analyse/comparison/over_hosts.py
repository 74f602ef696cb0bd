"""Ratios of two cells that were measured on the same hosts, and hosts that lie apart from most others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard.analyse.comparison.equivalence import OVER_HOSTS, Margin, RatioTest, exponential, student_test
from steelyard.analyse.intervals.describe import mean, standard_deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.intervals.combine import Sides

FEWEST_HOSTS: Final = 3
"""Of two hosts nobody can tell which one is the odd one."""


def ratio_over_hosts(cells: Sequence[Sides], margin: Margin | None = None) -> RatioTest:
    """Give the ratio second / first on a host like these, by Student's t over hosts.

    Each host compares the cells with each other on itself, so that its speed falls out; how much the ratio
    differs between hosts is the error. Of several cells each host gives the geometric mean.

    Parameters
    ----------
    cells : sequence of (ndarray, ndarray)
        Value of each host on both sides of each cell, all shape (hosts,), in the same order of hosts; not a
        number where a host has none. Hosts that lack a value count as no unit.
    margin : Margin or None
        Defaults to 2 % at level 0.95.

    Returns
    -------
    RatioTest
        No interval and p-values 1 for fewer than 2 hosts.

    References
    ----------
    .. [1] Student (1908); the host as a block: Kalibera & Jones (2013), "Rigorous benchmarking in reasonable
       time", on the highest random level.
    .. [2] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15 (two one-sided tests).

    Examples
    --------
    >>> found = ratio_over_hosts([(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.2, 3.31]))])
    >>> round(found.ratio, 3), round(found.low, 3), round(found.high, 3), found.units
    (1.101, 1.096, 1.106, (3, 3))
    """
    margin = margin or Margin()
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.array([np.log(second) - np.log(first) for first, second in cells])
    values = logarithms.mean(axis=0) if len(cells) else np.empty(0)
    values = values[np.isfinite(values)]
    units = (values.size, values.size)
    if not values.size:
        return RatioTest(math.nan, math.nan, math.nan, units, 1.0, 1.0, method=OVER_HOSTS)
    difference = mean(values)
    if values.size < 2:  # noqa: PLR2004 - one host says nothing of others
        return RatioTest(exponential(difference), math.nan, math.nan, units, 1.0, 1.0, method=OVER_HOSTS)
    error = standard_deviation(values) / math.sqrt(values.size)
    return student_test(difference, error, float(values.size - 1), margin, units, OVER_HOSTS)


@dataclass(frozen=True, slots=True)
class HostDeviation:
    """How far a host lies from the middle of all.

    Parameters
    ----------
    ratio : float
        Its geometric mean over the median of all hosts' geometric means.
    p_value : float
        Of: it is beyond the margin of no more than half of the hosts, on one side.
    """

    ratio: float
    p_value: float


def host_deviations(units: Sequence[NDArray[np.float64]], margin: float) -> tuple[HostDeviation, ...]:
    """Test of each host whether it is slower, or faster, than most hosts by more than a margin.

    A host is an outlier where it differs so from more than half of all hosts, itself counted; so of two
    equally large groups neither is one. One-sided Welch tests of its units against those of each other host
    are put together to one of "at least so many of these differences are real".

    Parameters
    ----------
    units : sequence of ndarray
        Positive values of the independent units of each host, each shape (n_i,), n_i >= 2.
    margin : float
        Largest ratio between hosts that is none, less 1.

    Returns
    -------
    tuple of HostDeviation
        In the order of the hosts, p-values 1 for fewer than three. They hold for one host and one cell;
        `holm` over all hosts and cells keeps the chance of any false outlier, however hosts depend on each
        other.

    References
    ----------
    .. [1] Benjamini & Heller (2008), Biometrics 64 (partial conjunction; valid under dependence).
    .. [2] Welch (1947), Biometrika 34; Satterthwaite (1946).

    Examples
    --------
    >>> near, far = np.array([1.0, 1.01, 0.99, 1.0, 1.01]), np.array([1.2, 1.21, 1.19, 1.2, 1.2])
    >>> [round(each.p_value, 3) for each in host_deviations([near, near * 1.001, far], 0.02)]
    [1.0, 1.0, 0.0]
    """
    logarithms = [np.log(each) for each in units]
    means = np.array([mean(each) for each in logarithms])
    ratios = np.exp(means - np.median(means)) if means.size else means
    if len(units) < FEWEST_HOSTS:
        return tuple(HostDeviation(float(ratio), 1.0) for ratio in ratios)
    sizes = np.array([each.size for each in logarithms], dtype=np.float64)
    shares = np.array([standard_deviation(each) ** 2 for each in logarithms]) / sizes
    p_slower = _p_beyond_most(means, shares, sizes, math.log1p(margin))
    p_faster = _p_beyond_most(-means, shares, sizes, math.log1p(margin))
    p_values = np.minimum(1.0, 2 * np.minimum(p_slower, p_faster))
    return tuple(HostDeviation(float(ratio), float(p)) for ratio, p in zip(ratios, p_values, strict=True))


def _p_beyond_most(
    means: NDArray[np.float64], shares: NDArray[np.float64], sizes: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """Give of each host the p-value of: its mean exceeds those of most hosts by the bound."""
    count = means.size
    needed = count // 2 + 1
    errors = shares[:, None] + shares[None, :]
    weights = shares**2 / (sizes - 1)
    excess = means[:, None] - means[None, :] - bound
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = errors**2 / (weights[:, None] + weights[None, :])
        p_values = special.stdtr(freedom, -excess / np.sqrt(errors))
    p_values = np.where(errors > 0, p_values, np.where(excess > 0, 0.0, 1.0))
    np.fill_diagonal(p_values, np.inf)
    nth = np.sort(p_values, axis=1)[:, needed - 1]
    return np.asarray(np.minimum(1.0, (count - needed) * nth))
