"""How much slower the service is beside the jobs than before them: one ratio per trial, one per policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from steelyard.analyse.comparison.equivalence import exponential
from steelyard.analyse.intervals.describe import mean, quantile, standard_deviation
from steelyard.analyse.intervals.estimate import interval
from steelyard.errors import AnalysisError
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from steelyard.studies.colocation.observed import Observed
    from steelyard.studies.colocation.windows import Window

    Vector = NDArray[np.float64]

LEVEL: Final = 0.95
RESAMPLES: Final = 999
ENOUGH_TRIALS: Final = 5
"""SOURCE: docs/concepts/intervals.md; with fewer units an interval over them is not guaranteed."""

FEWEST_VALUES: Final = 30
"""A series shorter than this does not show its correlation, so no interval is made of one trial."""

FEWEST_BEYOND: Final = 5
"""Values beyond a quantile without which nothing is said of it."""

TAIL_CAUTION: Final = 2
"""Factor of the distance of the limits of a tail inside one trial: near saturation a queue swings for longer
than blocks of neighbours last. Measured with the queue of the tests (four servers, arrivals by chance, 6 s
before and 10 s beside, nothing planted): without the factor 3, 10, 23 and 38 % of the trials alarm at 50, 70,
85 and 90 % load."""

MEAN: Final = "mean"
P50: Final = "p50"
P99: Final = "p99"
P999: Final = "p99.9"
PROBABILITIES: Final = {P50: 0.5, P99: 0.99, P999: 0.999}
JUDGED: Final = (MEAN, P50, P99)
"""Statistics of the latency that a policy must leave alone to isolate."""

NORMAL: Final = float(special.ndtri((1 + LEVEL) / 2))
OVER_TRIALS: Final = "Student's t over the trials"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number beside the jobs, before them, and the ratio of both with its limits.

    Parameters
    ----------
    before, beside, ratio : float
        Of one trial; latencies in s.
    low, high : float
        Limits of the ratio; infinite where there are none.
    method : str
        How they were found.
    is_guaranteed : bool
        Whether the procedure keeps its level here.
    sizes : tuple of int
        Values before and beside.
    """

    before: float
    beside: float
    ratio: float
    low: float
    high: float
    method: str
    is_guaranteed: bool
    sizes: tuple[int, int]

    @property
    def log_error(self) -> float:
        """Standard error of the logarithm of the ratio, as its limits tell; infinite without limits."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low > 0):
            return math.inf
        return (math.log(self.high) - math.log(self.low)) / (2 * NORMAL)


def latencies(observed: Observed, window: Window, statistic: str) -> Vector:
    """Give the values of a stretch, in order of time: of each request, or of each bin where only those are
    known.
    """  # noqa: D205 - one sentence
    if observed.requests is not None:
        return observed.requests.latency_s[window.holds(observed.requests.intended_s)]
    bins = observed.bins
    has_median = statistic == P50 and bool(np.isfinite(bins.p50_s).any())
    values = bins.p99_s if statistic == P99 else bins.p50_s if has_median else bins.mean_s
    chosen = values[window.holds(bins.start_s, bins.width_s)]
    return chosen[np.isfinite(chosen)]


def of_values(observed: Observed, statistic: str) -> str:
    """Give the statistic to take of `latencies`: where only bins are known, the mean of their percentiles."""
    return MEAN if observed.requests is None and statistic == P99 else statistic


def needs_limits(trials: int) -> bool:
    """Tell whether limits inside a trial count: with enough trials only their scatter does.

    Examples
    --------
    >>> needs_limits(1), needs_limits(5)
    (True, False)
    """
    return trials < ENOUGH_TRIALS


def trial_ratio(observed: Observed, statistic: str, seed: int, *, has_limits: bool = True) -> Ratio | None:
    """Compare a statistic of the latencies of one trial, beside the jobs over before them.

    Latencies of neighbouring requests resemble each other, since they wait in the same queue: a mean is
    compared by batches or the effective size, a quantile by resampling blocks of neighbours.

    Parameters
    ----------
    observed : Observed
        The trial.
    statistic : str
        `MEAN`, `P50`, `P99` or `P999`. Where only bins are known, the median of a phase is that of the
        medians of its bins, or of their means, the 99th percentile the mean of those of its bins, and there
        is no `P999`.
    seed : int
        Of the resampling.
    has_limits : bool
        Whether limits are computed.

    Returns
    -------
    Ratio or None
        ``None`` where there are too few values to say anything.
    """
    if observed.requests is None and statistic == P999:
        return None
    return ratio_of(
        latencies(observed, observed.phases.before, statistic),
        latencies(observed, observed.phases.beside, statistic),
        of_values(observed, statistic),
        seed,
        has_limits=has_limits,
    )


def ratio_of(
    before: Vector, beside: Vector, statistic: str, seed: int, *, has_limits: bool = True
) -> Ratio | None:
    """Compare a statistic of two stretches of series of positive values; ``None`` for too few.

    Limits are left out where enough trials make them by their scatter (`needs_limits`).
    """
    sizes = (int(before.size), int(beside.size))
    p = PROBABILITIES.get(statistic)
    if min(sizes) == 0 or (p is not None and min(sizes) * (1 - p) < FEWEST_BEYOND):
        return None
    first, second = (mean(part) if p is None else quantile(part, p) for part in (before, beside))
    if not (first > 0 and second > 0):
        return None
    plain = Ratio(first, second, second / first, -math.inf, math.inf, "too short", False, sizes)  # noqa: FBT003
    if not has_limits or min(sizes) < FEWEST_VALUES:
        return plain
    try:
        found = interval(
            before,
            other=beside,
            statistic="mean" if p is None else ("quantile", p),
            block=None if p is None else "auto",
            level=LEVEL,
            resamples=RESAMPLES,
            seed=seed,
        )
    except AnalysisError:
        return plain
    low, high, method = found.low, found.high, found.method
    if p is not None:
        low, high = (found.estimate * (limit / found.estimate) ** TAIL_CAUTION for limit in (low, high))
        method = f"{method}, limits {TAIL_CAUTION} times as far on the logarithm"
    return Ratio(first, second, found.estimate, low, high, method, found.guaranteed, sizes)


def ratios_beside(
    pairs: Sequence[tuple[Observed, Observed]], statistic: str, seeds: Iterable[int]
) -> list[Ratio]:
    """Compare a statistic of the latencies beside the jobs, the second trial of each pair over the first."""
    has_limits = needs_limits(len(pairs))
    found = []
    for pair, seed in zip(pairs, seeds, strict=False):
        first, second = (latencies(trial, trial.phases.beside, statistic) for trial in pair)
        found.append(ratio_of(first, second, of_values(pair[0], statistic), seed, has_limits=has_limits))
    return [each for each in found if each is not None]


def combined(ratios: Sequence[Ratio]) -> Estimate:
    """Give the ratio over the trials of a cell.

    With five trials the trial is the unit: Student's t on the logarithms of their ratios. With two to four,
    whose scatter is hardly known, the limits allow for both levels, the scatter over the trials and the
    errors of the series inside each; they are not guaranteed. The limits of a single trial come from its
    series and say nothing about other trials.

    Parameters
    ----------
    ratios : sequence of Ratio
        At least one.

    References
    ----------
    .. [1] Student (1908); Kalibera & Jones (2013): the unit is the highest level that is repeated.
    """
    measurements = sum(sum(each.sizes) for each in ratios)
    if len(ratios) == 1:
        only = ratios[0]
        return Estimate(
            only.ratio,
            "ratio",
            f"{only.method}, one trial",
            finite(only.low),
            finite(only.high),
            LEVEL if math.isfinite(only.low) and math.isfinite(only.high) else None,
            units=1,
            measurements=measurements,
            guaranteed=only.is_guaranteed,
        )
    logarithms = np.log([each.ratio for each in ratios])
    inside = math.sqrt(mean(np.array([each.log_error**2 for each in ratios])))
    if len(ratios) >= ENOUGH_TRIALS or not math.isfinite(inside):
        return over_trials(logarithms, measurements)
    half = NORMAL * math.hypot(standard_deviation(logarithms), inside) / math.sqrt(len(ratios))
    centre = mean(logarithms)
    return Estimate(
        exponential(centre),
        "ratio",
        "scatter over the trials and inside them, on the logarithm",
        finite(exponential(centre - half)),
        finite(exponential(centre + half)),
        LEVEL,
        units=len(ratios),
        measurements=measurements,
        guaranteed=False,
    )


def over_trials(logarithms: NDArray[np.float64], measurements: int) -> Estimate:
    """Give a ratio with Student's limits from its logarithm in each trial; at least two."""
    count = int(logarithms.size)
    centre, half = mean(logarithms), _half_width(logarithms)
    return Estimate(
        exponential(centre),
        "ratio",
        f"{OVER_TRIALS}, on the logarithm",
        finite(exponential(centre - half)),
        finite(exponential(centre + half)),
        LEVEL,
        units=count,
        measurements=measurements,
        guaranteed=count >= ENOUGH_TRIALS,
    )


def mean_over_trials(values: Sequence[float], unit: str, method: str, measurements: int = 0) -> Estimate:
    """Give the mean of one number per trial, with Student's limits where there are several."""
    numbers = np.array(values, dtype=np.float64)
    if numbers.size < 2:  # noqa: PLR2004 - one trial has no spread
        return Estimate(
            finite(mean(numbers)), unit, f"{method}, one trial", units=1, measurements=measurements
        )
    centre, half = mean(numbers), _half_width(numbers)
    return Estimate(
        finite(centre),
        unit,
        f"{method}; {OVER_TRIALS}",
        finite(centre - half),
        finite(centre + half),
        LEVEL,
        units=int(numbers.size),
        measurements=measurements,
        guaranteed=numbers.size >= ENOUGH_TRIALS,
    )


def _half_width(values: Vector) -> float:
    t = float(special.stdtrit(values.size - 1, (1 + LEVEL) / 2))
    return t * standard_deviation(values) / math.sqrt(values.size)
