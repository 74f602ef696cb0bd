"""What the trials of a colocation measured: what two results are compared by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.studies.colocation.trial import read_trial
from steelyard.studies.run_values import gathered, latencies, values_of_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.analyse.comparison.agreement import CellValues
    from steelyard.model import Plan
    from steelyard.studies.run_values import Value


def cell_values(result: Path, plan: Plan) -> Iterator[CellValues]:
    """Give what each cell measured, one value for each repetition."""
    return gathered(plan, values_of_files(result, _of_trial))


def _of_trial(folder: Path) -> Iterator[Value]:
    if not (folder / "trial.json").exists():
        return
    trial = read_trial(folder)
    begin = int(trial.header.get("best_effort_start_ns") or 0)
    end = int(trial.header.get("best_effort_stop_ns") or 0)
    requests = trial.requests
    intended = requests["intended_ns"].astype(np.int64)
    latency = requests["received_ns"].astype(np.int64) - intended
    answered = requests["received_ns"] > 0
    if 0 < begin < end:
        yield from latencies("before best-effort", latency[answered & (intended < begin)])
        yield from latencies("beside best-effort", latency[answered & (begin <= intended) & (intended < end)])
    else:
        yield from latencies("latency", latency[answered])
