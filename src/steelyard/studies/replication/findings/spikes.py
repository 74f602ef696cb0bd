"""Spikes of a loop of calls, and what comes together with them.

A spike is a call, or several in a row, that takes longer than the median of its run by at least the `excess`.
The excess is one number for a whole cause tree, so that a program with shorter calls does not get spikes by
its shortness, and one in which calls of the same length are rarer is said to have fewer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.peaks.co_occurrence import explain
from steelyard.analyse.peaks.peak_search import ROBUST_FACTOR, find_episodes
from steelyard.analyse.peaks.periodicity import FEWEST_CALLS, find_period
from steelyard.studies.replication.values.run_events import events_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.peaks.co_occurrence import Explanation
    from steelyard.analyse.peaks.peak_search import Episodes
    from steelyard.analyse.peaks.periodicity import Period
    from steelyard.studies.replication.experiment_record import ExperimentRun

    Whole = NDArray[np.int64]

RARE: Final = 0.001
"""Share of the calls, the longest ones, among which spikes are looked for: what happens more often, such as
the first touch of a page of memory every thirty calls, is how the program works."""

LARGEST_SHARE: Final = 0.75
"""Share of the time above the median, of those calls, that is made up by the longest which set the excess."""

FEWEST_LONGEST: Final = 5
"""Calls that set the excess at least: one stall of the machine must not hide all other spikes."""

SLACK: Final = 0.5
"""Part of the length of the shortest of them from which a call is a spike."""

RULE: Final = (
    "half as far as the longest calls of as-it-is, which make up three quarters of what the longest "
    "thousandth of its calls takes above the median; never less than 10 MAD or the median itself"
)


@dataclass(frozen=True, slots=True)
class Spikes:
    """What is counted of one run, after its warm-up.

    Parameters
    ----------
    calls, count : int
        Calls that were looked at, and spikes among them.
    lost_ns : float
        Time of all spikes above the median [ns].
    explanation : Explanation or None
        What comes together with them, where that was asked for.
    period : Period or None
        Whether they have a period, where that was asked for.
    """

    calls: int
    count: int
    lost_ns: float
    explanation: Explanation | None
    period: Period | None


def measured_calls(run: ExperimentRun) -> tuple[Whole, Whole]:
    """Give begin and duration of the calls after the first half, which is warm-up as published."""
    table = run.table("calls")
    first = table.num_rows // 2
    start, duration = (table.column(name).to_numpy()[first:] for name in ("start_ns", "duration_ns"))
    return start, duration


def excess_of(duration: Whole) -> float:
    """Give the time above the median from which a call of the program as it is counts as a spike.

    Parameters
    ----------
    duration : ndarray
        Shape (n,), n >= 1 [ns].

    Examples
    --------
    >>> often, rare = np.tile([100] * 29 + [2000], 1000), np.full(20, 5100)
    >>> excess_of(np.concatenate([often, rare]))
    2500.0
    """
    median = float(np.median(duration))
    floor = max(ROBUST_FACTOR * float(np.median(np.abs(duration - median))), median)
    longest = np.sort(duration - median)[::-1][: max(math.ceil(RARE * duration.size), FEWEST_LONGEST)]
    above = longest[longest > floor]
    if not above.size:
        return floor
    sums = np.cumsum(above)
    enough = int(np.searchsorted(sums, LARGEST_SHARE * sums[-1])) + 1
    place = min(max(enough, FEWEST_LONGEST), above.size) - 1
    return max(floor, SLACK * float(above[place]))


def common_excess(found: Sequence[float]) -> float:
    """Give the middle one of the runs' numbers."""
    return float(np.median(np.array(found)))


def episodes_of(start: Whole, duration: Whole, excess: float) -> Episodes:
    """Give the spikes of some calls; neighbouring calls above the threshold are one.

    Examples
    --------
    >>> duration = np.array([10, 99, 98, 10, 10, 97, 10, 10])
    >>> found = episodes_of(np.cumsum(duration) - duration, duration, 50.0)
    >>> found.start_ns.tolist(), found.end_ns.tolist()
    ([10, 227], [207, 324])
    """
    median = float(np.median(duration))
    number = np.flatnonzero(duration > median + excess)
    return find_episodes(number, start[number], duration[number], median)


def spikes_of(run: ExperimentRun, excess: float, seed: int | None = None) -> Spikes:
    """Count the spikes of a run; with a seed, say when they come and what comes together with them."""
    start, duration = measured_calls(run)
    episodes = episodes_of(start, duration, excess)
    explanation, period = None, None
    if seed is not None:
        window = int(start[0]), int(start[-1] + duration[-1])
        explanation = explain(episodes, events_of(run), *window, seed=seed)
        call_ns = (window[1] - window[0]) / duration.size
        period = find_period(
            episodes.start_ns, *window, shortest_ns=FEWEST_CALLS * call_ns, resolution_ns=call_ns
        )
    return Spikes(int(duration.size), episodes.count, float(episodes.excess_ns.sum()), explanation, period)
