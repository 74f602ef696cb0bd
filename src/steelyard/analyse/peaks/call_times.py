"""Response times of very many calls: exact moments and quantiles in bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    Durations = NDArray[np.int64]

PUBLISHED_FACTOR: Final = 1.959964
"""Factor of MooBench's 95 % interval of the mean: factor times sd / sqrt(n)."""
PROBABILITIES: Final = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999)
KEPT: Final = 1 << 22
"""Values that are kept in memory between passes (32 MiB); more are read again."""
_LIMIT_NS: Final = 1 << 48


@dataclass(frozen=True, slots=True)
class CallTimes:
    """What is known of the response times of calls.

    Parameters
    ----------
    count : int
        Number of calls.
    mean_ns, sd_ns : float
        Mean and standard deviation (divisor n - 1; not a number for one call).
    min_ns, max_ns : int
        Shortest and longest.
    quantiles_ns : dict of float to float
        Quantiles by probability, as `numpy.quantile` defines them by default.
    mad_ns : float
        Median absolute deviation from the median, unscaled.
    least_deviation_ns : float
        Smallest deviation from the median that is not 0; 0 where all calls took the same time. Where the
        clock is coarser than the spread, `mad_ns` is 0 and this is its step.
    """

    count: int
    mean_ns: float
    sd_ns: float
    min_ns: int
    max_ns: int
    quantiles_ns: dict[float, float]
    mad_ns: float
    least_deviation_ns: float

    @property
    def median_ns(self) -> float:
        """The median [ns]."""
        return self.quantiles_ns[0.5]

    @property
    def cv(self) -> float:
        """Standard deviation over mean."""
        return self.sd_ns / self.mean_ns if self.mean_ns else math.nan

    @property
    def max_over_mean(self) -> float:
        """Longest call over mean."""
        return self.max_ns / self.mean_ns if self.mean_ns else math.nan

    @property
    def published_ci95_ns(self) -> float:
        """Half width of MooBench's interval of the mean, which takes calls for independent [ns]."""
        return PUBLISHED_FACTOR * self.sd_ns / math.sqrt(self.count)


def summarise(batches: Callable[[], Iterable[Durations]]) -> CallTimes:
    """Summarise response times, all of them exactly, in memory that does not grow with their number.

    Parameters
    ----------
    batches : callable
        Gives the durations [ns] in parts, each of shape (m,), from the beginning each time it is called. It
        is called up to four times: for the moments, the quantiles, and both again for the deviations from
        the median. Up to `KEPT` values are kept between the passes.

    Returns
    -------
    CallTimes

    Raises
    ------
    AnalysisError
        If there is no value, or one is negative or 2^48 ns (3 days) or longer.

    Examples
    --------
    >>> import numpy as np
    >>> times = summarise(lambda: [np.array([5, 1, 4]), np.array([2, 3])])
    >>> times.mean_ns, times.median_ns, times.mad_ns, times.max_ns
    (3.0, 3.0, 1.0, 5)
    >>> round(times.sd_ns, 9)
    1.58113883
    """
    source = _Repeated(batches)
    tally = _tally(source)
    extremes = tally.extremes
    if extremes is None:
        message = "there are no calls to summarise"
        raise AnalysisError(message, hint="the program ended before its first call", code="analysis.calls")
    quantiles = _quantiles(tally, source, PROBABILITIES)
    # Deviations are counted in halves: the median of an even number of values may lie between two.
    twice = round(2 * quantiles[0.5])

    def deviations() -> Iterator[Durations]:
        return (np.abs(2 * part - twice) for part in source())

    around = _tally(deviations)
    mad = _quantiles(around, deviations, (0.5,))[0.5] / 2
    return CallTimes(
        count=tally.count,
        mean_ns=tally.mean,
        sd_ns=tally.standard_deviation,
        min_ns=extremes[0],
        max_ns=extremes[1],
        quantiles_ns=quantiles,
        mad_ns=mad,
        least_deviation_ns=mad if mad > 0 else _least(deviations) / 2,
    )


class _Repeated:
    """Parts that can be gone through again; few values are kept, many are read again."""

    def __init__(self, batches: Callable[[], Iterable[Durations]]) -> None:
        self._batches = batches
        self._kept: list[Durations] | None = None

    def __call__(self) -> Iterator[Durations]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Durations] | None = []
        size = 0
        for batch in self._batches():
            part = np.ascontiguousarray(batch, dtype=np.int64)
            size += part.size
            if kept is not None and size <= KEPT:
                kept.append(part)
            else:
                kept = None
            yield part
        self._kept = kept


def _tally(parts: Callable[[], Iterable[Durations]]) -> _native.CallTally:
    tally = _native.CallTally()
    for part in parts():
        tally.add(part)
    return tally


def _quantiles(
    tally: _native.CallTally, parts: Callable[[], Iterable[Durations]], probabilities: tuple[float, ...]
) -> dict[float, float]:
    places = {share: (tally.count - 1) * share for share in probabilities}
    wanted = sorted({rank for place in places.values() for rank in (math.floor(place), math.ceil(place))})
    ranks = tally.ranks(wanted)
    for part in parts():
        ranks.add(part)
    found = dict(ranks.values())
    between = {}
    for share, place in places.items():
        low, high = found[math.floor(place)], found[math.ceil(place)]
        between[share] = low + (high - low) * (place - math.floor(place))
    return between


def _least(deviations: Callable[[], Iterable[Durations]]) -> int:
    least = _LIMIT_NS
    for part in deviations():
        positive = part[part > 0]
        if positive.size:
            least = min(least, int(positive.min()))
    return 0 if least == _LIMIT_NS else least
