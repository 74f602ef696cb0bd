"""E2 and the causes: the response times of one loop of calls."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.intervals.value_counts import ValueCounts, count_values
from steelyard.analyse.series.warm_up import SeriesClass, classify_series
from steelyard.errors import DataError
from steelyard.studies.replication.run_parts import (
    LOOP,
    MEAN,
    P50,
    P99,
    STEADY_MEAN,
    WHOLE,
    CallSeries,
    Part,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from steelyard.analyse.series.warm_up import SeriesShape
    from steelyard.studies.replication.recorded import RecordedRun

    Vector = NDArray[np.float64]

BINS: Final = 500
"""Bins of calls of a figure: their medians show warm-up, and their maxima the spikes."""

SHAPE_BINS: Final = 100
"""Bins whose medians tell where the steady state begins, to a hundredth of the calls; the tests of more take
minutes."""

FEWEST_PER_BIN: Final = 20
MARGIN: Final = 0.02
"""Largest difference of levels that is no change; that of the classes of series."""

LOOP_KEY: Final = "loop_ns"
"""In the header: time of the whole loop, from before its first call to after its last one."""

MEASURED_KEY: Final = "measured_ns"
"""The same, without the calls that are warm-up by their number."""

CALLS_KEY: Final = "calls"


def call_parts(recorded: RecordedRun) -> Mapping[str, Part]:
    """Give what a loop of calls says.

    The first half of the calls is warm-up as in the source; `STEADY_MEAN` is the mean of the calls after
    the last change of level instead, where there is a steady state.

    Raises
    ------
    DataError
        If the run has neither calls nor the time of its loop.

    References
    ----------
    .. [1] Waller (2014), Performance Benchmarking of Application Monitoring Frameworks (MooBench): half of
       the calls are warm-up.
    """
    assert recorded.run is not None  # noqa: S101 - only runs that count are read
    table = recorded.run.table("calls")
    loop = _loop(recorded)
    if not table.num_rows:
        if loop is None:
            message = f"`{recorded.place}` has neither calls nor the time of its loop (`{LOOP_KEY}`)"
            raise DataError(message, hint="repeat the run", code="replication.calls")
        return {WHOLE: Part({LOOP: loop.per_call_ns}, _NOTHING, {"calls": loop.calls})}
    start = table.column("start_ns").to_numpy()
    duration = table.column("duration_ns").to_numpy()
    measured = duration[duration.size // 2 :]
    counts = count_values(measured)
    series = _series(start, duration)
    values = {MEAN: counts.mean, P50: counts.quantile(0.5), P99: counts.quantile(0.99)}
    if loop is not None:
        values[LOOP] = loop.per_call_ns
    if series.steady_from < duration.size:
        steady = duration[series.steady_from :]
        values[STEADY_MEAN] = float(steady.sum(dtype=np.int64)) / steady.size
    facts = {"calls": duration.size, "measured": counts.size, "sd_ns": counts.sd, "min_ns": counts.low}
    return {WHOLE: Part(values, counts, {**facts, "max_ns": counts.high}, series)}


_NOTHING: Final = ValueCounts(np.zeros(0), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class _Loop:
    calls: int
    per_call_ns: float


def _loop(recorded: RecordedRun) -> _Loop | None:
    """Give the time of the loop after its warm-up, or of the whole loop, over its calls."""
    header = recorded.header
    calls = _number(header.get(CALLS_KEY)) or _number(recorded.parameters.get(CALLS_KEY))
    warm_up = _number(header.get("warm_up_calls")) or 0.0
    measured, whole = _number(header.get(MEASURED_KEY)), _number(header.get(LOOP_KEY))
    if calls and measured and warm_up < calls:
        return _Loop(round(calls - warm_up), measured / (calls - warm_up))
    return _Loop(round(calls), whole / calls) if calls and whole else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None


def _series(start: NDArray[np.int64], duration: NDArray[np.int64]) -> CallSeries:
    """Give medians and maxima of bins of calls, and where the steady state begins."""
    length, whole = _bins(duration, BINS)
    count = whole.shape[0]
    largest = whole.max(axis=1).astype(np.float64)
    largest[-1] = max(largest[-1], float(duration[count * length :].max(initial=0)))
    begin_s = (start[: count * length : length] - start[0]) * 1e-9
    warm_up, steady_from = _shape_of(duration)
    return CallSeries(warm_up, steady_from, int(duration.size), begin_s, np.median(whole, axis=1), largest)


def _bins(duration: NDArray[np.int64], most: int) -> tuple[int, NDArray[np.int64]]:
    """Give the length of a bin, and the calls by bin without the rest; at least one bin."""
    bins = max(1, min(most, duration.size // FEWEST_PER_BIN))
    length = duration.size // bins
    return length, duration[: bins * length].reshape(bins, length)


def _shape_of(duration: NDArray[np.int64]) -> tuple[str, int]:
    """Give the class of a series of calls, and the first call of its steady state."""
    length, whole = _bins(duration, SHAPE_BINS)
    middle = np.median(whole, axis=1)
    if middle.size < 2 or not (middle > 0).all():  # noqa: PLR2004 - one bin has no shape
        return SeriesClass.FLAT.value, 0
    shape = classify_series(middle, margin=MARGIN)
    steady = _steady_bin(shape, int(middle.size))
    return shape.shape.value, int(duration.size) if steady is None else steady * length


def _steady_bin(shape: SeriesShape, bins: int) -> int | None:
    """Give the bin from which all levels are the last one, within the margin; none without steady state."""
    if shape.shape is SeriesClass.NO_STEADY_STATE:
        return None
    bounds = [0, *shape.changes, bins]
    last = shape.levels[-1]
    for (begin, _), level in zip(reversed(list(pairwise(bounds))), reversed(shape.levels), strict=True):
        if max(level, last) > (1 + MARGIN) * min(level, last):
            return bounds[bounds.index(begin) + 1]
    return 0
