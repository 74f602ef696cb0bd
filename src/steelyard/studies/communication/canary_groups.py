"""Which runs found the two CPUs near to each other, and which far apart: by the canary.

Costs alone do not tell: with the CPUs far apart, small messages over shared memory cost twice as much and
medium ones the same, so that medians over all sizes hardly differ.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.communication.recorded import RecordedRun
    from steelyard.studies.communication.trace import Trace

GAP_RATIO: Final = 1.5
"""Neighbouring medians of the canary that differ by more are of two states.

SOURCE: two states of one host were seen to differ by a factor of five, and scatter within one by a tenth."""

NAMES: Final = {1: ("",), 2: ("near", "far")}


def canary_ns(trace: Trace) -> float | None:
    """Give the median round trip of a cache line between the endpoints' CPUs [ns], if it was timed."""
    values = trace.endpoints[0].blocks["canary_ns"]
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.median(known)) if known.size else None


def canary_groups(runs: Sequence[RecordedRun]) -> dict[tuple[int, int], str]:
    """Name the state of the host of each run, over all cells: it is the same host.

    Returns
    -------
    dict
        By cell and replication: empty text where all are alike or nothing was timed; ``near`` and ``far``
        where there are two states, ``distance-1`` and so on, nearest first, where there are more.
    """
    medians = {
        (run.cell, run.block): median
        for run in runs
        if run.trace is not None and (median := canary_ns(run.trace)) is not None
    }
    order = sorted(medians, key=lambda key: medians[key])
    # Between two hosts there is no canary, and nothing to begin with.
    number, numbers = 0, dict.fromkeys(order[:1], 0)
    for before, key in pairwise(order):
        if medians[key] > GAP_RATIO * medians[before]:
            number += 1
        numbers[key] = number
    names = NAMES.get(number + 1, tuple(f"distance-{each}" for each in range(1, number + 2)))
    return {
        (run.cell, run.block): names[numbers[run.cell, run.block]] if (run.cell, run.block) in numbers else ""
        for run in runs
    }
