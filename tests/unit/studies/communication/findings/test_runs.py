"""Which launches are named as ended early."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.studies.communication.findings.runs import ended_findings
from steelyard.studies.communication.recorded import RecordedRun, read_trace_after
from steelyard.studies.communication.trace import BLOCK, OPERATION, PROBE, Endpoint, Trace, write_trace

if TYPE_CHECKING:
    from pathlib import Path

PLANNED, WARM_UP = 3200, 200


def recorded(folder: Path, *, finished: int, is_complete: bool) -> RecordedRun:
    rows = np.zeros(finished, OPERATION)
    rows["seq"] = np.arange(finished)
    rows["start_ns"], rows["end_ns"] = 10 + np.arange(finished), 11 + np.arange(finished)
    header = {"planned": PLANNED, "is_complete": is_complete}
    ends = [Endpoint({**header, "rank": rank}, rows, np.zeros(0, BLOCK)) for rank in (0, 1)]
    write_trace(folder, Trace((ends[0], ends[1]), np.zeros(0, PROBE)))
    trace, problem, count = read_trace_after(folder, WARM_UP)
    return RecordedRun(0, 0, {"transport": "tcp"}, "completed", "", folder, trace, problem, count)


def test_a_complete_launch_is_not_named_although_its_warm_up_is_left_out(tmp_path: Path) -> None:
    run = recorded(tmp_path, finished=PLANNED, is_complete=True)
    assert run.trace is not None
    assert len(run.trace.endpoints[0].operations) == PLANNED - WARM_UP
    assert list(ended_findings([run])) == []


@pytest.mark.parametrize("finished", [3000, 201, 200, 17])
def test_a_launch_that_a_budget_ended_is_named_with_all_that_it_finished(
    tmp_path: Path, finished: int
) -> None:
    run = recorded(tmp_path, finished=finished, is_complete=False)
    (found,) = ended_findings([run])
    assert found.verdict == ("out of time" if finished > WARM_UP else "no trace")
    assert (found.facts["operations"], found.facts["planned"]) == (finished, PLANNED if run.trace else None)
    (failed,) = ended_findings([replace(run, status="signalled")])
    assert failed.verdict == "signalled"
