"""Peaks: calls that took much longer than usual, their episodes and their rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from steelyard.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.peaks.call_times import CallTimes

ROBUST_FACTOR: Final = 10.0
"""Median absolute deviations above the median from which on a call is a peak."""
OVERDISPERSED: Final = 0.05
"""p-value of the dispersion test below which counts are no Poisson counts."""
_HINT: Final = "e.g. --threshold robust, --threshold sigma:3, --threshold absolute:1000000"


class Rule(StrEnum):
    """How the threshold follows from the calls."""

    ROBUST = "robust"
    SIGMA = "sigma"
    ABSOLUTE = "absolute"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Above what a call is a peak.

    Parameters
    ----------
    rule : Rule
        ``robust``: median + `value` median absolute deviations; ``sigma``: mean + `value` standard
        deviations; ``absolute``: `value` nanoseconds.
    value : float
        See above; above 0.
    """

    rule: Rule = Rule.ROBUST
    value: float = ROBUST_FACTOR

    def above_ns(self, times: CallTimes) -> float:
        """Give the threshold for some calls [ns]; a peak is strictly longer.

        Where more than half of the calls took the same time, as the clock tells it, the smallest deviation
        stands for the median absolute deviation.
        """
        if self.rule is Rule.ROBUST:
            spread = times.mad_ns if times.mad_ns > 0 else times.least_deviation_ns
            return times.median_ns + self.value * spread
        if self.rule is Rule.SIGMA:
            return times.mean_ns + self.value * (times.sd_ns if times.count > 1 else 0.0)
        return self.value

    @property
    def text(self) -> str:
        """The rule in words."""
        if self.rule is Rule.ROBUST:
            return f"median + {self.value:g} MAD"
        if self.rule is Rule.SIGMA:
            return f"mean + {self.value:g} sd"
        return f"{self.value:g} ns"


def parse_threshold(text: str) -> Threshold:
    """Read ``robust``, ``sigma:K`` or ``absolute:NS``.

    Raises
    ------
    UsageError
        If it is none of them.

    Examples
    --------
    >>> parse_threshold("sigma:3").text
    'mean + 3 sd'
    >>> parse_threshold("robust").text
    'median + 10 MAD'
    """
    name, colon, number = text.partition(":")
    try:
        rule = Rule(name)
        value = float(number) if colon else math.nan
    except ValueError:
        rule, value = Rule.ABSOLUTE, math.nan
    if rule is Rule.ROBUST and not colon:
        return Threshold()
    if not (math.isfinite(value) and value > 0):
        allowed = "`robust`, `robust:K`, `sigma:K` or `absolute:NS`, with K and NS above 0"
        message = f"`--threshold {text}`: allowed: {allowed}"
        raise UsageError(message, hint=_HINT)
    return Threshold(rule, value)


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """Runs of successive peaks, oldest first.

    Parameters
    ----------
    first : ndarray
        Shape (n,): number of the first call of each, from 0.
    calls : ndarray
        Shape (n,): how many successive peaks it is made of.
    start_ns, end_ns : ndarray
        Shape (n,): begin of its first and end of its last call [ns].
    excess_ns : ndarray
        Shape (n,): by how much its calls together were longer than the usual call [ns].
    worst_ns : ndarray
        Shape (n,): its longest call [ns].
    """

    first: NDArray[np.int64]
    calls: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    excess_ns: NDArray[np.float64]
    worst_ns: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many."""
        return int(self.first.size)


def find_episodes(
    number: NDArray[np.int64], start_ns: NDArray[np.int64], duration_ns: NDArray[np.int64], usual_ns: float
) -> Episodes:
    """Merge peaks of successive calls into episodes.

    Parameters
    ----------
    number : ndarray
        Shape (k,), ascending: numbers of the calls that are peaks.
    start_ns, duration_ns : ndarray
        Shape (k,): of the same calls [ns].
    usual_ns : float
        Duration of a usual call, the median [ns].

    Returns
    -------
    Episodes

    Examples
    --------
    >>> import numpy as np
    >>> found = find_episodes(np.array([4, 5, 9]), np.array([40, 60, 99]), np.array([20, 30, 25]), 10.0)
    >>> found.calls.tolist(), found.end_ns.tolist(), found.excess_ns.tolist()
    ([2, 1], [90, 124], [30.0, 15.0])
    """
    if number.size == 0:
        none = np.empty(0, np.int64)
        return Episodes(none, none, none, none, np.empty(0), none)
    begins = np.flatnonzero(np.diff(number, prepend=number[0] - 2) != 1)
    calls = np.diff(begins, append=number.size)
    lasts = begins + calls - 1
    return Episodes(
        first=number[begins],
        calls=calls.astype(np.int64),
        start_ns=start_ns[begins],
        end_ns=start_ns[lasts] + duration_ns[lasts],
        excess_ns=np.add.reduceat(duration_ns - usual_ns, begins),
        worst_ns=np.maximum.reduceat(duration_ns, begins),
    )


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happens, with its interval.

    Parameters
    ----------
    count : int
        How often it happened.
    exposure : float
        In how many calls, or seconds.
    value, low, high : float
        Per unit of exposure.
    method : str
        ``poisson`` (exact) or ``negative-binomial``.
    dispersion : float
        Variance beyond that of a Poisson count, over the squared expectation; 0: none.
    level : float
        Coverage of the interval.
    """

    count: int
    exposure: float
    value: float
    low: float
    high: float
    method: str
    dispersion: float
    level: float


def estimate_rate(counts: Sequence[int], exposures: Sequence[float], *, level: float = 0.95) -> Rate:
    """Estimate a rate from the counts of several runs, or of successive parts of one run.

    Parameters
    ----------
    counts : sequence of int
        Per run or part.
    exposures : sequence of float
        Calls or seconds of each, above 0.
    level : float
        Coverage in (0, 1).

    Returns
    -------
    Rate
        With the exact Poisson interval; where Pearson's test finds the counts over-dispersed
        (p < `OVERDISPERSED`), with a negative-binomial one: the dispersion by moments, and the logarithm of
        the rate by Student's t with one degree of freedom less than there are counts.

    Raises
    ------
    AnalysisError
        If there is no exposure.

    References
    ----------
    .. [1] Garwood (1936), Biometrika 28, 437: exact limits of a Poisson mean.
    .. [2] Cameron & Trivedi (2013), "Regression Analysis of Count Data", ch. 3.3: the variance
       m + a m^2, and its estimate by moments.

    Examples
    --------
    >>> rate = estimate_rate([3, 2, 4, 1], [100.0] * 4)
    >>> rate.method, rate.value, round(rate.low, 5), round(rate.high, 5)
    ('poisson', 0.025, 0.01199, 0.04598)
    """
    observed = np.asarray(counts, dtype=np.float64)
    exposed = np.asarray(exposures, dtype=np.float64)
    exposure = float(exposed.sum())
    if not exposure > 0:
        message = "a rate needs calls to count in; there are none"
        raise AnalysisError(message, hint="the run ended before its first call", code="analysis.calls")
    total = int(observed.sum())
    rate = total / exposure
    dispersion, p_value = _dispersion(observed, rate * exposed)
    tail = (1 - level) / 2
    if total == 0 or p_value >= OVERDISPERSED or dispersion <= 0:
        low = stats.chi2.ppf(tail, 2 * total) / 2 / exposure if total else 0.0
        high = stats.chi2.ppf(1 - tail, 2 * total + 2) / 2 / exposure
        return Rate(total, exposure, rate, float(low), float(high), "poisson", 0.0, level)
    expected = rate * exposed
    relative = math.sqrt(float((expected + dispersion * expected**2).sum())) / total
    width = float(stats.t.ppf(1 - tail, observed.size - 1)) * relative
    low, high = rate * math.exp(-width), rate * math.exp(width)
    return Rate(total, exposure, rate, low, high, "negative-binomial", dispersion, level)


def _dispersion(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> tuple[float, float]:
    """Dispersion by moments, and the p-value of Pearson's test for none."""
    used = expected > 0
    freedom = int(used.sum()) - 1
    if freedom < 1:
        return 0.0, 1.0
    pearson = float(((observed[used] - expected[used]) ** 2 / expected[used]).sum())
    surplus = ((observed[used] - expected[used]) ** 2 - expected[used]) / expected[used] ** 2
    dispersion = float(surplus.sum()) / freedom
    return max(dispersion, 0.0), float(stats.chi2.sf(pearson, freedom))


@dataclass(frozen=True, slots=True)
class RateRatio:
    """How often something happens here, over how often it happens there.

    Parameters
    ----------
    value, low, high : float
        Contender over baseline; infinite where the baseline has none.
    p_value : float
        Of no difference, two-sided.
    is_guaranteed : bool
        Whether both counts look like Poisson counts; otherwise the interval is too short.
    level : float
        Coverage of the interval.
    """

    value: float
    low: float
    high: float
    p_value: float
    is_guaranteed: bool
    level: float


def rate_ratio(baseline: Rate, contender: Rate, *, level: float = 0.95) -> RateRatio:
    """Compare two rates by the conditional binomial test.

    Given both counts together, that of the contender is binomial with a probability that only depends on the
    ratio of the rates.

    Raises
    ------
    AnalysisError
        If neither has happened.

    References
    ----------
    .. [1] Przyborowski & Wilenski (1940), Biometrika 31, 313; limits by Clopper & Pearson (1934).

    Examples
    --------
    >>> few, many = estimate_rate([10], [1000.0]), estimate_rate([40], [1000.0])
    >>> found = rate_ratio(few, many)
    >>> round(found.value, 9), round(found.low, 2), round(found.high, 2), found.p_value < 0.001
    (4.0, 1.97, 8.97, True)
    """
    together = baseline.count + contender.count
    if together == 0:
        message = "cannot compare rates: neither side has a peak"
        raise AnalysisError(message, hint="measure longer, or lower the threshold", code="analysis.peaks")
    share = contender.exposure / (baseline.exposure + contender.exposure)
    test = stats.binomtest(contender.count, together, share)
    limits = test.proportion_ci(level, method="exact")
    scale = baseline.exposure / contender.exposure

    def odds(probability: float) -> float:
        return math.inf if probability >= 1 else probability / (1 - probability) * scale

    value = odds(contender.count / together)
    is_guaranteed = baseline.method == contender.method == "poisson"
    return RateRatio(
        value, odds(float(limits.low)), odds(float(limits.high)), float(test.pvalue), is_guaranteed, level
    )
