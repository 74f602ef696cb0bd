"""Peaks of the runs of a cell: how large, how often, when, with which period, and with what they come."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.peaks.call_times import summarise
from steelyard.analyse.peaks.co_occurrence import VerdictKind, explain
from steelyard.analyse.peaks.peak_search import estimate_rate, find_episodes
from steelyard.analyse.peaks.periodicity import FEWEST_CALLS, find_period
from steelyard.analyse.peaks.spike_timeline import spike_timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.peaks.call_times import CallTimes
    from steelyard.analyse.peaks.co_occurrence import Explanation
    from steelyard.analyse.peaks.event_kinds import Events
    from steelyard.analyse.peaks.peak_search import Episodes, Rate, Threshold
    from steelyard.analyse.peaks.periodicity import Period
    from steelyard.analyse.peaks.spike_timeline import Timeline

    Whole = NDArray[np.int64]

ADDED_UP: Final = "begins are sums of durations, without what passed between calls"
PARTS: Final = 20
"""Parts of a single run in which peaks are counted, to see whether they come in clusters."""


@dataclass(frozen=True, slots=True)
class CallSeries:
    """The calls of one run.

    Parameters
    ----------
    cell : Mapping
        Labels of its cell, by name.
    name : str
        Of the run, for the reader.
    batches : callable
        Gives begin and duration of the calls in parts, from the first one each time [ns].
    is_stamped : bool
        Whether begins were recorded; otherwise they are sums of the durations before.
    events : callable or None
        Gives what was recorded beside the calls, if the run was watched.
    """

    cell: Mapping[str, str]
    name: str
    batches: Callable[[], Iterator[tuple[Whole, Whole]]]
    is_stamped: bool = True
    events: Callable[[], Sequence[Events]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RunPeaks:
    """Peaks of one run.

    Parameters
    ----------
    name : str
        Of the run.
    times : CallTimes
        Of its calls.
    threshold_ns : float
        Above what a call is a peak [ns].
    peak_calls : int
        Calls above it.
    episodes : Episodes
        Peaks of successive calls, merged.
    part_counts, part_calls : tuple of int
        Episodes and calls in each of `PARTS` parts of the run.
    timeline : Timeline
        When the episodes came.
    period : Period
        Whether they have a period.
    explanation : Explanation or None
        With what they come; ``None`` if the run was not watched.
    """

    name: str
    times: CallTimes
    threshold_ns: float
    peak_calls: int
    episodes: Episodes
    part_counts: tuple[int, ...]
    part_calls: tuple[int, ...]
    timeline: Timeline
    period: Period
    explanation: Explanation | None


@dataclass(frozen=True, slots=True, eq=False)
class CellPeaks:
    """Peaks of the runs of a cell.

    Parameters
    ----------
    cell : Mapping
        Labels of the cell, by name.
    times : CallTimes
        Of the calls of all runs together.
    rate : Rate
        Episodes per call. The unit is the run; of a single one, its parts.
    runs : tuple of RunPeaks
        Each run.
    """

    cell: Mapping[str, str]
    times: CallTimes
    rate: Rate
    runs: tuple[RunPeaks, ...]

    @property
    def causes(self) -> Counter[str]:
        """How many watched runs name which cause; `unexplained` and `too few peaks` stand for none."""
        found = [run.explanation for run in self.runs if run.explanation is not None]
        return Counter(
            each.cause if each.verdict is VerdictKind.NAMED and each.cause else each.verdict.value
            for each in found
        )


def peaks_of_run(series: CallSeries, threshold: Threshold) -> RunPeaks:
    """Find the peaks of one run.

    Parameters
    ----------
    series : CallSeries
        Its calls.
    threshold : Threshold
        Above what a call is a peak; what it follows from is taken of this run.

    Raises
    ------
    AnalysisError
        If there are no calls.
    """
    times = summarise(lambda: (durations for _, durations in series.batches()))
    above = threshold.above_ns(times)
    number, starts, durations, (begin, end) = _collect(series, above)
    episodes = find_episodes(number, starts, durations, times.median_ns)
    edges = np.linspace(0, times.count, min(PARTS, times.count) + 1).astype(np.int64)
    counts = np.histogram(episodes.first, bins=edges)[0] if episodes.count else np.zeros(edges.size - 1)
    explanation = None
    if series.events is not None:
        explanation = explain(episodes, series.events(), begin, end)
    return RunPeaks(
        name=series.name,
        times=times,
        threshold_ns=above,
        peak_calls=int(number.size),
        episodes=episodes,
        part_counts=tuple(int(count) for count in counts),
        part_calls=tuple(int(calls) for calls in np.diff(edges)),
        timeline=spike_timeline(episodes, begin, end),
        period=_period_of(series, episodes, (begin, end), times),
        explanation=explanation,
    )


def _period_of(series: CallSeries, episodes: Episodes, window: tuple[int, int], times: CallTimes) -> Period:
    """Look for a period; where begins are added up, what lies between calls is missing, so no interval."""
    found = find_period(
        episodes.start_ns,
        *window,
        shortest_ns=FEWEST_CALLS * max(times.mean_ns, 1.0),
        resolution_ns=(window[1] - window[0]) / times.count,
    )
    if series.is_stamped or not found.is_periodic:
        return found
    return replace(found, low_ns=math.nan, high_ns=math.nan, why_no_interval=ADDED_UP)


def peaks_of_cell(runs: Sequence[CallSeries], threshold: Threshold) -> CellPeaks:
    """Find the peaks of all runs of a cell, each by its own threshold.

    Parameters
    ----------
    runs : sequence of CallSeries
        One or more, of the same cell.
    threshold : Threshold
        Above what a call is a peak.

    Raises
    ------
    AnalysisError
        If there are no calls.
    """
    found = tuple(peaks_of_run(each, threshold) for each in runs)
    if len(found) == 1:
        times = found[0].times
        rate = estimate_rate(found[0].part_counts, found[0].part_calls)
    else:
        times = summarise(lambda: (durations for each in runs for _, durations in each.batches()))
        rate = estimate_rate([each.episodes.count for each in found], [each.times.count for each in found])
    return CellPeaks(runs[0].cell, times, rate, found)


def _collect(series: CallSeries, above: float) -> tuple[Whole, Whole, Whole, tuple[int, int]]:
    """Go through the calls and keep the peaks, with begin and end of the run."""
    numbers, starts, durations = [], [], []
    before, begin, end = 0, 0, 0
    for start, duration in series.batches():
        if start.size == 0:
            continue
        begin = int(start[0]) if before == 0 else begin
        end = int(start[-1] + duration[-1])
        high = np.flatnonzero(duration > above)
        numbers.append(high + before)
        starts.append(start[high])
        durations.append(duration[high])
        before += start.size
    return np.concatenate(numbers), np.concatenate(starts), np.concatenate(durations), (begin, end)
