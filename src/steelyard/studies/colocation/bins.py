"""Requests and iterations in bins of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

BIN_S: Final = 0.1
"""SOURCE: the bins of the figures of the SCHED_BE evaluation."""


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """The requests of a trial, in order of the time at which each was due.

    Parameters
    ----------
    intended_s : ndarray
        Shape (n,): when each was due, from the begin of the trial [s].
    latency_s : ndarray
        Shape (n,): from then to the answer [s]; of an unanswered request how long nobody had answered when
        the trial ended, which is a lower bound.
    is_answered, is_long : ndarray
        Shape (n,), bool.
    late_s : ndarray
        Shape (n,): sent later than due [s]; NaN where it was never sent.
    """

    intended_s: Vector
    latency_s: Vector
    is_answered: NDArray[np.bool_]
    is_long: NDArray[np.bool_]
    late_s: Vector

    def where(self, chosen: NDArray[np.bool_]) -> Requests:
        """Give some of the requests."""
        return Requests(
            self.intended_s[chosen],
            self.latency_s[chosen],
            self.is_answered[chosen],
            self.is_long[chosen],
            self.late_s[chosen],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """A trial in bins of time.

    Parameters
    ----------
    start_s : ndarray
        Shape (n,): begin of each bin, from the begin of the trial [s].
    width_s : float
        Their length [s].
    count, unanswered : ndarray
        Shape (n,): requests that were due in it, and how many of them were never answered; NaN where a
        file does not say.
    mean_s, p50_s, p99_s : ndarray
        Shape (n,): of their latencies [s]; NaN in a bin without requests.
    iterations : ndarray
        Shape (n,): iterations of the jobs that ended in it.
    """

    start_s: Vector
    width_s: float
    count: Vector
    unanswered: Vector
    mean_s: Vector
    p50_s: Vector
    p99_s: Vector
    iterations: Vector


def bin_trial(requests: Requests, iterations_s: Vector, end_s: float, width_s: float = BIN_S) -> Bins:
    """Put the requests (by the time they were due) and the iterations (by their end) into bins.

    Parameters
    ----------
    requests : Requests
        All of a trial.
    iterations_s : ndarray
        Shape (m,): ends of iterations, from the begin of the trial [s].
    end_s : float
        End of the trial [s]; above 0.
    width_s : float
        Length of a bin [s].

    Returns
    -------
    Bins
        Every request and every iteration up to the end is in one bin.
    """
    bins = max(int(np.ceil(end_s / width_s - 1e-9)), 1)
    place = np.clip((requests.intended_s / width_s).astype(np.int64), 0, bins - 1)
    bounds = np.searchsorted(np.sort(place, kind="stable"), np.arange(bins + 1))
    order = np.argsort(place, kind="stable")
    latencies, is_lost = requests.latency_s[order], ~requests.is_answered[order]
    rows = np.full((bins, 3), np.nan)
    for number in range(bins):
        inside = np.sort(latencies[bounds[number] : bounds[number + 1]])
        if inside.size:
            rows[number] = (float(np.mean(inside)), quantile(inside, 0.5), quantile(inside, 0.99))
    lost = np.add.reduceat(np.append(is_lost, 0), bounds[:-1]) * (np.diff(bounds) > 0)
    ended = np.clip((iterations_s / width_s).astype(np.int64), 0, bins - 1)
    return Bins(
        start_s=np.arange(bins, dtype=np.float64) * width_s,
        width_s=width_s,
        count=np.diff(bounds).astype(np.float64),
        unanswered=lost.astype(np.float64),
        mean_s=rows[:, 0],
        p50_s=rows[:, 1],
        p99_s=rows[:, 2],
        iterations=np.bincount(ended, minlength=bins).astype(np.float64),
    )
