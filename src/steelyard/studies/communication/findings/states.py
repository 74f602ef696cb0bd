"""Findings about the host while it measured: its states, and stretches in which something else ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.communication.cells import CellRecord

METHOD = "change points of log cost over the median of its kind and size"


def state_findings(record: CellRecord) -> Iterator[Finding]:
    """Give what was seen of each state, the runs in none, and what was disturbed."""
    states = record.regimes.states
    for state, operations in states.items():
        yield _state(record, state, operations)
    for run in record.runs:
        if not run.state:
            yield finding(
                "mixed_run",
                {**run.levels, "replication": str(run.block + 1)},
                "not used",
                facts={"trace": run.place},
                evidence=Evidence(run.place, {}, ("canary_ns",), METHOD),
            )
    disturbed = int(record.regimes.is_disturbed.sum())
    if disturbed:
        share = 100 * disturbed / len(record.operations)
        yield finding(
            "disturbed",
            {**record.runs[0].levels, **({"state": record.group} if record.group else {})},
            "left out" if _is_left_out(record) else "kept",
            estimates={"share": Estimate(share, "percent", "late operations and waiting per block")},
            facts={
                "stretches": len(record.regimes.disturbances),
                "waited_percent": 100 * max(each.delayed for each in record.regimes.disturbances),
            },
            evidence=Evidence("traces", {}, ("run_delay_ns", "end_ns"), "blocks that waited or were late"),
        )


def _is_left_out(record: CellRecord) -> bool:
    states = record.regimes.states
    return any(
        bool(record.regimes.usable(state).sum() < np.sum(record.regimes.state == state)) for state in states
    )


def _state(record: CellRecord, state: str, operations: int) -> Finding:
    stretches = [each for each in record.regimes.stretches if each.state == state]
    canaries = [each.canary_ns for each in stretches if np.isfinite(each.canary_ns)]
    ratio = float(np.median([each.ratio for each in stretches]))
    return finding(
        "host_state",
        {**record.runs[0].levels, "state": record.named(state)},
        "one of several" if record.group or len(record.regimes.states) > 1 else "the only one",
        estimates={
            "canary": Estimate(
                finite(float(np.median(canaries))) if canaries else None,
                "ns",
                "median round trip of a cache line between the CPUs",
                units=len(canaries),
            ),
            "ratio": Estimate(ratio, "ratio", METHOD, units=len(stretches), measurements=operations),
        },
        facts={
            "runs": sum(run.state == record.named(state) for run in record.runs),
            "of_runs": len(record.runs),
            "stretches": len(stretches),
            "share_percent": 100 * operations / len(record.operations),
        },
        evidence=Evidence("traces", {"file": "blocks.0.bin"}, ("canary_ns", "end_ns"), METHOD),
    )
