"""Requests that were not answered, and a driver that was late."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.studies.replication.experiment_record import EXPERIMENT_FILE, FORMAT, HEADER_FILE, write_table
from steelyard.studies.replication.findings.lateness import lateness_findings
from steelyard.studies.replication.recorded import runs_on_disk
from steelyard.studies.replication.values.request_values import request_parts
from steelyard.studies.replication.values.summaries import cells_of, summarise

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.replication.run_parts import Part

MS = 1_000_000
LEVELS = {"experiment": "e3", "configuration": "mixed", "setting": "native"}


def planned(blocks: int) -> Plan:
    return Plan(
        study="replication",
        seed=1,
        factors={name: (level,) for name, level in LEVELS.items()},
        cells=(Cell(0, LEVELS, Execution("bare", ("python",))),),
        batches=tuple(Batch(block, block, 0) for block in range(blocks)),
        blocks=blocks,
        options={},
    ).freeze()


def lay(result: Path, plan: Plan, batch: Batch, received_ms: np.ndarray, driver: dict[str, Any]) -> None:
    """Leave a run of requests that are due every 10 ms; what is answered after 0 ms is not answered."""
    folder = result / TRACES_NAME / files_name(batch.number, 1)
    folder.mkdir(parents=True)
    due = 10 * MS * np.arange(received_ms.size) + MS
    answered = received_ms > 0
    columns = {
        "operation": ["read"] * due.size,
        "intended_ns": due,
        "sent_ns": due,
        "received_ns": np.where(answered, due + np.round(received_ms * MS).astype(np.int64), 0),
        "status": np.where(answered, 200, 0),
    }
    write_table(folder, "requests", columns)
    (folder / EXPERIMENT_FILE).write_text(json.dumps({"format": FORMAT, "experiment": "e3"}))
    header = {"format": FORMAT, "is_complete": True, "outcome": "completed", "driver": driver}
    (folder / HEADER_FILE).write_text(json.dumps(header))


def read(result: Path, received_ms: np.ndarray) -> Part:
    plan = planned(1)
    lay(result, plan, plan.batches[0], received_ms, {"end_ns": 60_000 * MS})
    (run,) = runs_on_disk(result, plan, plan.batches)
    return request_parts(run)["read"]


def test_percentiles_hold_unanswered_requests_for_the_largest(tmp_path: Path) -> None:
    """Those that take longest are lost: without them the service would look fast."""
    latency_ms = np.linspace(1, 100, 1000)
    whole = read(tmp_path / "whole", latency_ms).values
    few = read(tmp_path / "few", np.where(latency_ms > 99.5, 0, latency_ms)).values
    many = read(tmp_path / "many", np.where(latency_ms > 90, 0, latency_ms)).values
    assert few["p99"] == pytest.approx(whole["p99"])
    assert many["p50"] == pytest.approx(whole["p50"])
    assert many["p99"] == pytest.approx((60_000 - 1) * MS)
    assert many["failed_share"] == pytest.approx(10.1)


def test_where_nothing_is_answered_a_percentile_is_as_long_as_was_waited(tmp_path: Path) -> None:
    values = read(tmp_path, np.zeros(20)).values
    assert values["p50"] == values["p99"] == (60_000 - 1) * MS
    assert "mean" not in values


@pytest.mark.parametrize(
    ("late_us", "verdict"), [((20, 400), "on time"), ((20, 40_000), "late"), ((900, 1000), "late")]
)
def test_a_driver_is_judged_by_its_own_lateness(
    tmp_path: Path, late_us: tuple[float, float], verdict: str
) -> None:
    plan = planned(5)
    rng = np.random.default_rng(2)
    for batch in plan.batches:
        wobble = float(np.exp(0.05 * rng.standard_normal()))
        late = {"count": 500, "mean_ns": 1e3 * late_us[0] * wobble, "p99_ns": 1e3 * late_us[1] * wobble}
        latency = {"count": 500, "mean_ns": 4e6, "p99_ns": 20e6}
        lay(tmp_path, plan, batch, np.full(30, 4.0), {"own_lateness": late, "latency": latency})
    cells = cells_of(summarise(runs_on_disk(tmp_path, plan, plan.batches))[0])
    (found,) = lateness_findings(cells, {"e3": Margin(0.05)})
    assert found.verdict == verdict
    assert found.estimates["p99_share"].value == pytest.approx(late_us[1] / 200, rel=0.1)


def test_of_a_driver_that_says_nothing_nothing_is_said(tmp_path: Path) -> None:
    plan = planned(1)
    lay(tmp_path, plan, plan.batches[0], np.full(30, 4.0), {})
    cells = cells_of(summarise(runs_on_disk(tmp_path, plan, plan.batches))[0])
    assert not list(lateness_findings(cells, {"e3": Margin(0.05)}))
