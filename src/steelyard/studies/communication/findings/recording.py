"""What a recording of a foreign program cannot say, as one finding per transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.model import Estimate, Evidence
from steelyard.model.cost_model import ROUND_TRIP
from steelyard.studies.analysis_parts import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.communication.cells import CellRecord
    from steelyard.studies.communication.trace import Trace

FEW: Final = 100
"""Messages from which on halves of a recording predict each other."""


def recording_findings(record: CellRecord) -> Iterator[Finding]:
    """Say what the curve of a recording is about, and what it cannot say; nothing of a measured cell."""
    traces = [run.trace for run in record.runs if run.trace is not None and run.trace.is_recording]
    if not traces:
        return
    first = traces[0]
    timed = record.operations.half_s
    sizes = np.unique(record.operations.size[timed > 0])
    untimed = sum(_untimed(trace) for trace in traces)
    share = first.endpoints[0].header.get("error_share")
    yield finding(
        "recording",
        dict(record.runs[0].levels),
        "of means" if first.repetitions is not None else "of single messages",
        estimates={
            "error": Estimate(
                None if share is None else 100 * float(share),
                "percent",
                "median of the standard errors that the tool prints, over its means",
            )
        },
        facts={
            "timed_as": first.timed_as,
            "messages": int(np.sum(timed > 0)),
            "untimed": untimed or None,
            "sizes": int(sizes.size),
            "files": ", ".join(dict.fromkeys(name for trace in traces for name in _files(trace))),
            "cannot": "; ".join(_cannot(record, traces)),
        },
        evidence=Evidence(
            record.runs[0].place, {}, ("op", "size", "start_ns", "end_ns"), "what was recorded"
        ),
    )


def _untimed(trace: Trace) -> int:
    """Count the operations behind the curve that took no time by their clock."""
    records = trace.endpoints[0].operations
    of_curve = records[records["op"] == trace.timed]
    return int(np.sum(of_curve["end_ns"] == of_curve["start_ns"]))


def _files(trace: Trace) -> list[str]:
    return [str(each) for each in trace.endpoints[0].header.get("files") or ()]


def _cannot(record: CellRecord, traces: list[Trace]) -> Iterator[str]:
    first = traces[0]
    if first.timed_as != ROUND_TRIP:
        yield (
            "it has no round trips, so its curve describes what was timed, which may end before a message "
            "arrives"
        )
    if first.repetitions is not None:
        low, high = first.repetitions
        of = "several repetitions" if not high else f"{low}" if low == high else f"{low} to {high}"
        yield (
            f"each time is a mean of {of}{' repetitions' if high else ''}: scatter, tail and outliers "
            "of single messages are not known"
        )
    if not any(len(trace.endpoints[1].operations) for trace in traces):
        yield "only one end was timed, so one-way times are unknown"
    else:
        reasons = [clock.reason for clock in record.clocks if clock.model is None and clock.reason]
        if reasons:
            yield f"one-way times are withheld: {reasons[0]}"
    if any(trace.endpoints[0].header.get("is_ordered") is True for trace in traces):
        yield (
            "messages were sent in the order of their sizes, so changes with time cannot be separated from "
            "changes with size"
        )
    if len(traces) == 1:
        yield "it is one recording, so the differences between launches are unknown"
    if int(np.sum(record.operations.half_s > 0)) < FEW and first.repetitions is None:
        yield "it has too few messages for a prediction to be judged"
