"""A run as a few numbers: what the readers of the experiments give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.analyse.intervals.value_counts import ValueCounts

WHOLE: Final = ""
"""Name of the only part of a run without operations."""

THROUGHPUT: Final = "throughput"
MEAN: Final = "mean"
STEADY_MEAN: Final = "steady_mean"
P50: Final = "p50"
P90: Final = "p90"
P99: Final = "p99"
LOOP: Final = "loop"
REACHED: Final = "reached"
FAILED_SHARE: Final = "failed_share"

UNITS: Final = {
    THROUGHPUT: "operations/s",
    MEAN: "ns",
    STEADY_MEAN: "ns",
    P50: "ns",
    P90: "ns",
    P99: "ns",
    LOOP: "ns",
    REACHED: "requests/s",
    FAILED_SHARE: "percent",
}
"""Unit of each metric."""


@dataclass(frozen=True, slots=True, eq=False)
class CallSeries:
    """What is kept of the order of the calls of a run.

    Parameters
    ----------
    warm_up : str
        Class of the series of medians: ``flat``, ``warm-up``, ``slow-down``, ``no steady state``.
    steady_from : int
        First call of the steady state; the number of calls where there is none.
    calls : int
        All calls of the run.
    start_s : ndarray
        Shape (n_bins,), begin of each bin of calls since the first call [s].
    middle_ns, largest_ns : ndarray
        Shape (n_bins,), median and maximum of each bin.
    """

    warm_up: str
    steady_from: int
    calls: int
    start_s: NDArray[np.float64]
    middle_ns: NDArray[np.float64]
    largest_ns: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Numbers of one part of a run: of one operation, or of the whole.

    Parameters
    ----------
    values : mapping
        Metric to the run's number: the unit of analysis.
    pooled : ValueCounts
        The single values that published rules pool over runs; empty where there are none.
    facts : mapping
        What else is counted.
    series : CallSeries or None
        Where the part is a loop of calls.
    """

    values: Mapping[str, float]
    pooled: ValueCounts
    facts: Mapping[str, float] = field(default_factory=dict)
    series: CallSeries | None = None
