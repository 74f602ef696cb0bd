"""Intervals of time: merged, overlapping, covered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Stamps = NDArray[np.int64]


def merge_intervals(start_ns: Stamps, end_ns: Stamps) -> tuple[Stamps, Stamps]:
    """Merge intervals that overlap or touch."""
    order = np.argsort(start_ns, kind="stable")
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order])
    if starts.size == 0:
        return starts, ends
    begins = np.flatnonzero(np.concatenate([[True], starts[1:] > ends[:-1]]))
    return starts[begins], ends[np.append(begins[1:] - 1, starts.size - 1)]


def overlap_any(starts: Stamps, ends: Stamps, first: Stamps, last: Stamps) -> NDArray[np.bool_]:
    """Whether each interval overlaps one of merged, sorted ones."""
    place = np.searchsorted(ends, first, side="left")
    known = place < starts.size
    return known & (starts[np.minimum(place, starts.size - 1)] <= last)


def share_of_shifts(starts: Stamps, ends: Stamps, lengths: Stamps, around: int) -> NDArray[np.float64]:
    """Share of all circular shifts with which an interval of each length overlaps an event."""
    gaps = np.sort(np.append(starts[1:] - ends[:-1], around - ends[-1] + starts[0]))
    below = np.concatenate([[0], np.cumsum(gaps)])
    place = np.searchsorted(gaps, lengths, side="right")
    reached = below[place] + lengths * (gaps.size - place)
    covered = float((ends - starts).sum())
    return np.asarray(np.minimum((covered + reached) / around, 1.0), dtype=np.float64)


def time_covered(starts: Stamps, ends: Stamps, until: Stamps) -> NDArray[np.float64]:
    """Time covered by merged, sorted intervals before each stamp [ns]."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, until, side="right")
    last = np.maximum(place - 1, 0)
    beyond = np.where(place > 0, np.maximum(ends[last] - until, 0), 0)
    return (before[place] - beyond).astype(np.float64)
