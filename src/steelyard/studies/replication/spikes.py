"""Spikes of a loop of calls, and how many of them stand beside an event of each possible cause.

A spike is a call, or several in a row, that takes longer than the median of its run by at least the `excess`.
The excess is one number for a whole cause tree, so that a program with shorter calls does not get spikes by
its shortness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.warm_up import OUTLIER_DEVIATIONS
from steelyard.studies.replication.run_events import events_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.record.experiment import ExperimentRun
    from steelyard.studies.replication.run_events import Stretches

    Whole = NDArray[np.int64]

RULE: Final = "longer than the median of its run by 10 MAD and by the median itself, both of as-it-is"
SHIFTS: Final = 20
"""Cyclic shifts of the events that say how many spikes they would stand beside by chance."""

_GOLDEN: Final = 0.6180339887498949
"""Its multiples, modulo one, fill an interval evenly, and follow no period of events."""


@dataclass(frozen=True, slots=True)
class Spikes:
    """What is counted of one run, after its warm-up.

    Parameters
    ----------
    calls, count : int
        Calls that were looked at, and spikes among them.
    beside : mapping
        By name of a cause: spikes during which one of its events lies.
    by_chance : mapping
        By name of a cause: how many it would be on average if its events were shifted in time.
    """

    calls: int
    count: int
    beside: Mapping[str, int]
    by_chance: Mapping[str, float]


def measured_calls(run: ExperimentRun) -> tuple[Whole, Whole]:
    """Give begin and duration of the calls after the first half, which is warm-up as published."""
    table = run.table("calls")
    first = table.num_rows // 2
    return tuple(table.column(name).to_numpy()[first:] for name in ("start_ns", "duration_ns"))


def excess_of(durations: Sequence[Whole]) -> float:
    """Give the time above the median from which a call is a spike, from the runs of the program as it is.

    Parameters
    ----------
    durations : sequence of ndarray
        Each shape (n,), n >= 1 [ns].

    Returns
    -------
    float
        The larger one of 10 MAD and the median, each the median over runs [ns].

    Examples
    --------
    >>> excess_of([np.array([100, 101, 99, 100, 100])])
    100.0
    """
    medians = [float(np.median(each)) for each in durations]
    deviations = [
        float(np.median(np.abs(each - middle))) for each, middle in zip(durations, medians, strict=True)
    ]
    return max(OUTLIER_DEVIATIONS * float(np.median(deviations)), float(np.median(medians)))


def spikes_of(run: ExperimentRun, excess: float) -> Spikes:
    """Count the spikes of a run and those beside events; see `run_events` for the causes."""
    start, duration = measured_calls(run)
    begin, end = spike_stretches(start, duration, excess)
    beside: dict[str, int] = {}
    by_chance: dict[str, float] = {}
    for name, events in events_of(run).items():
        beside[name] = touched((begin, end), events)
        by_chance[name] = _by_chance((begin, end), events, (int(start[0]), int(start[-1] + duration[-1])))
    return Spikes(int(duration.size), int(begin.size), beside, by_chance)


def spike_stretches(start: Whole, duration: Whole, excess: float) -> tuple[Whole, Whole]:
    """Give begin and end of every spike [ns]; neighbouring calls above the threshold are one.

    Examples
    --------
    >>> duration = np.array([10, 99, 98, 10, 10, 97, 10, 10])
    >>> begin, end = spike_stretches(np.cumsum(duration) - duration, duration, 50.0)
    >>> begin.tolist(), end.tolist()
    ([10, 227], [207, 324])
    """
    is_spike = duration > np.median(duration) + excess
    edges = np.diff(np.concatenate([[False], is_spike, [False]]).astype(np.int8))
    first, after = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return start[first], start[after] + duration[after]


def touched(spikes: Stretches, events: Stretches) -> int:
    """Count the spikes during which an event lies, or one of which a part lies."""
    begins, ends = np.sort(events[0]), np.sort(events[1])
    begun = np.searchsorted(begins, spikes[1], side="right")
    over = np.searchsorted(ends, spikes[0], side="left")
    return int((begun > over).sum())


def _by_chance(spikes: Stretches, events: Stretches, span: tuple[int, int]) -> float:
    """Give the mean number of spikes beside an event when all events are moved in time together."""
    low, high = span
    length = max(high - low, 1)
    inside = (events[1] >= low) & (events[0] <= high)
    begin, size = events[0][inside], (events[1] - events[0])[inside]
    if not begin.size or not spikes[0].size:
        return 0.0
    found = []
    for number in range(1, SHIFTS + 1):
        moved = low + (begin - low + round(length * (number * _GOLDEN % 1))) % length
        found.append(touched(spikes, (moved, moved + size)))
    return sum(found) / SHIFTS
