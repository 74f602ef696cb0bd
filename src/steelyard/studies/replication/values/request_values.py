"""E3 and E4: the requests of one deployment under load, by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.value_counts import count_values
from steelyard.errors import DataError
from steelyard.studies.replication.run_parts import (
    FAILED_SHARE,
    MEAN,
    P50,
    P90,
    P99,
    REACHED,
    THROUGHPUT,
    WHOLE,
    Part,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from steelyard.studies.replication.recorded import RecordedRun

NS_PER_S: Final = 1e9
NS_PER_MS: Final = 1e6
SAID_KEY: Final = "reached"
"""In the header: what a user's own benchmark says it has reached."""
FIRST_GOOD: Final = 200
FIRST_BAD: Final = 400
"""Statuses of HTTP from 200 and below 400 are answers that were asked for."""


def request_parts(recorded: RecordedRun) -> Mapping[str, Part]:
    """Give latencies by operation, and for the whole run the throughput reached and the share of failures.

    Requests that were due before the measurement began are warm-up. Latency counts from the time at which a
    request was due. The mean is that of good answers; in a percentile a request without a good answer stands
    as the largest, as long as the longest one was waited for: dropping requests makes no service faster. A
    benchmark that leaves a summary of itself only is taken at its word.

    Raises
    ------
    DataError
        If the run has no requests after its warm-up.
    """
    assert recorded.run is not None  # noqa: S101 - only runs that count are read
    table = recorded.run.table("requests")
    if not table.num_rows and recorded.header.get(SAID_KEY):
        return {WHOLE: _said_of_itself(recorded.header[SAID_KEY])}
    intended = table.column("intended_ns").to_numpy()
    kept = intended >= int(recorded.header.get("measure_start_ns") or 0)
    if not kept.any():
        message = f"`{recorded.place}` has no requests after its warm-up"
        raise DataError(message, hint="its log says what the load driver did", code="replication.requests")
    intended = intended[kept]
    received = table.column("received_ns").to_numpy()[kept]
    status = table.column("status").to_numpy()[kept]
    operation = np.array(table.column("operation").to_pylist(), dtype=object)[kept]
    good = (received > 0) & (status >= FIRST_GOOD) & (status < FIRST_BAD)
    latency = received - intended
    longest_ns = int(max(int(received.max()), _end_of(recorded)) - int(intended.min()))
    parts = {WHOLE: _whole(intended, received, good)}
    for name in sorted(set(operation)):
        chosen = operation == name
        parts[str(name)] = _of_operation(latency[chosen & good], int(chosen.sum()), longest_ns)
    return parts


def _end_of(recorded: RecordedRun) -> int:
    """Give when the driver stopped to wait for answers [ns]; 0 where it does not say."""
    end = (recorded.header.get("driver") or {}).get("end_ns")
    return int(end) if isinstance(end, int | float) else 0


def _whole(intended: NDArray[np.int64], received: NDArray[np.int64], good: NDArray[np.bool_]) -> Part:
    """Give throughput and failures; the time is that from the first due request to the last answer."""
    end = max(int(intended.max()), int(received.max()))
    seconds = (end - int(intended.min())) / NS_PER_S
    failed = int((~good).sum())
    values = {FAILED_SHARE: 100 * failed / good.size}
    if seconds > 0:
        values[REACHED] = float(good.sum()) / seconds
    facts = {"requests": good.size, "failed": failed, "unanswered": int((received <= 0).sum())}
    return Part(values, count_values(np.zeros(0)), facts)


def _said_of_itself(said: Mapping[str, float | None]) -> Part:
    """Give what a benchmark says it has reached; there are no single values to pool."""
    scales = {
        THROUGHPUT: ("throughput_per_s", 1.0),
        P90: ("p90_ms", NS_PER_MS),
        FAILED_SHARE: ("errors_percent", 1.0),
    }
    values = {
        metric: scale * value
        for metric, (key, scale) in scales.items()
        if (value := said.get(key)) is not None
    }
    return Part(values, count_values(np.zeros(0)))


def _of_operation(latency: NDArray[np.int64], asked: int, longest_ns: int) -> Part:
    counts = count_values(latency)
    failed = asked - counts.size
    values = {FAILED_SHARE: 100 * failed / asked}
    if counts.size:
        values[MEAN] = counts.mean
    ranked = count_values(np.concatenate([latency, np.full(failed, longest_ns)])) if failed else counts
    values |= {P50: ranked.quantile(0.5), P99: ranked.quantile(0.99)}
    return Part(values, counts, {"requests": asked, "failed": failed})
