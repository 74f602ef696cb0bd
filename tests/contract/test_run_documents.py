"""The documents between the launcher and Python; ``crates/model/src/contract.rs`` reads the same examples."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from steelyard.model.run_outcome import RunOutcome, RunStatus
from steelyard.model.run_spec import (
    Barrier,
    Limits,
    OutputStream,
    Placement,
    RunSpec,
    Sandbox,
    SchedulingPolicy,
)
from steelyard.record.schema import METRICS
from steelyard.studies.stability.report.messages import FLAGS

EXAMPLES = Path(__file__).parent
SPECS = (
    RunSpec(id="r1", command=("/bin/true",)),
    RunSpec(
        id="b7a2",
        command=("sort", "naïve ✓.txt", ""),
        environment={"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        working_directory="/home/grader",
        standard_input="/data/words",
        standard_output=OutputStream.captured(4096),
        standard_error=OutputStream.appended("/data/errors"),
        sandbox=Sandbox("/images/debian", ("/data", "/opt/tools"), ("/scratch",), "host", 60007),
        limits=Limits(1_500_000_000, 3_000_000_000, 64 << 20, 64, 1 << 20, 65536, 256, 8 << 20, 16 << 20),
        placement=Placement(
            (0, 2), (1,), SchedulingPolicy("fifo", 50), maximal_weight=True, randomise_addresses=False
        ),
        counters=("instructions", "cache-misses"),
        own_metrics=True,
        stamp_source="tracepoint",
        iterations=20,
        first_iteration=3,
        barrier=Barrier("/barriers/b7a2", 4, 60_000_000_000),
    ),
    RunSpec(
        id="r2",
        command=("/bin/true",),
        sandbox=Sandbox(),
        placement=Placement(policy=SchedulingPolicy("idle")),
    ),
    RunSpec(
        id="r3",
        command=("/bin/true",),
        placement=Placement(policy=SchedulingPolicy("batch"), maximal_weight=True),
    ),
)


def _examples(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def _as_read(document: Any) -> Any:
    """Give a document after it went over the line: tuples are lists."""
    return json.loads(json.dumps(document))


def test_specifications_are_written_as_in_the_examples() -> None:
    assert [_as_read(spec.document()) for spec in SPECS] == _examples("run-spec")


def test_an_example_has_a_value_in_every_field() -> None:
    full, plain = SPECS[1], SPECS[0]
    same = [each.name for each in fields(RunSpec) if getattr(full, each.name) == getattr(plain, each.name)]
    assert same == []
    assert None not in {getattr(full.limits, each.name) for each in fields(Limits)}


@pytest.mark.parametrize("document", _examples("run-outcome"), ids=lambda document: document["status"])
def test_outcomes_are_read_and_written_as_in_the_examples(document: dict[str, Any]) -> None:
    outcome = RunOutcome.of(document)
    assert json.dumps(outcome.document()) == json.dumps(document)


def test_the_clock_of_another_kernel_is_kept() -> None:
    document = {**_examples("run-outcome")[0], "clock": {"offset_ns": -5, "error_ns": 2}}
    assert RunOutcome.of(document).document() == document


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "steelyard/run-outcome/2"),
        ("status", "exploded"),
        ("iteration", "1"),
        ("iteration", True),
        ("exit_code", 1.5),
        ("quantities", []),
        ("quantities", {"wall_ns": {"value": 1}}),
        ("quantities", {"wall_ns": {"value": "1", "source": "procfs", "granularity": 1}}),
        ("own", [{"metric": "cpu", "value": "1", "unit": "ns", "iteration": 1, "phase": "measure"}]),
        ("own", {"metric": "cpu"}),
        ("standard_output", "text"),
        ("flags", "preempted"),
        ("mechanism", {}),
        ("id", 7),
    ],
)
def test_a_damaged_outcome_is_refused_by_the_name_of_its_field(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"no outcome of a run: `{field}`"):
        RunOutcome.of({**_examples("run-outcome")[0], field: value})


@pytest.mark.parametrize("absent", ["id", "iteration", "status"])
def test_an_outcome_without_its_name_is_refused(absent: str) -> None:
    document = _examples("run-outcome")[0]
    del document[absent]
    with pytest.raises(ValueError, match=f"no outcome of a run: `{absent}`"):
        RunOutcome.of(document)


def test_both_sides_use_the_same_words() -> None:
    words = _examples("vocabulary")
    assert [status.value for status in RunStatus] == words["statuses"]
    assert list(METRICS) == words["metrics"]
    assert set(FLAGS) <= {*words["flags"], "disturbed_batch"}
    bounds = {name.removesuffix("_ns").removesuffix("_bytes") for name in Limits.__slots__}
    assert set(words["limits"]) <= bounds
