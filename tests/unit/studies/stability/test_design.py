from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.run.isolation.interface import Availability
from steelyard.run.machine.host import Cpu, Topology
from steelyard.studies.host_facts import facts_of
from steelyard.studies.stability import workloads
from steelyard.studies.stability.design import sketch, workload_inputs
from steelyard.studies.stability.options import INPUT_COUNT, StabilityOptions, settle
from steelyard.studies.stability.workloads import INPUT_COUNT as GENERATED_INPUTS
from steelyard.studies.stability.workloads import WORKLOADS, workload

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.stability.workload_choice import WorkloadInput


def test_only_cpus_this_process_may_use_are_counted() -> None:
    cpus = tuple(
        Cpu(number, core=number // 2 * 2, last_level_cache=number // 4, memory_node=number // 4)
        for number in range(8)
    )
    topology = Topology(cpus, tuple(range(8)), (0, 1, 2, 4), (), (), 1, 4, True, (), ())  # noqa: FBT003
    facts = facts_of(topology, hardware_virtualisation=False)
    assert (facts.cpu_count, facts.core_count, facts.llc_count, facts.memory_node_count) == (4, 3, 2, 2)
    assert facts.has_smt


def test_the_range_of_inputs_is_that_of_the_generator() -> None:
    assert INPUT_COUNT == GENERATED_INPUTS


def test_every_default_workload_exists() -> None:
    for quick in (True, False):
        settled = settle(StabilityOptions(quick=quick))
        assert set(settled.workloads or ()) <= set(WORKLOADS)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of which nothing is known yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def take(monkeypatch: pytest.MonkeyPatch, *taken_ms: float) -> None:
    """Let an iteration of any size take what is given, each time it is measured."""
    left = list(taken_ms)
    monkeypatch.setattr(workloads, "_shortest_ns", lambda *_: left.pop(0) * 1e6)


@pytest.mark.parametrize("taken_ms", [25.0, 40.0, 58.0])
def test_a_quick_study_has_fixed_sizes_and_known_answers(
    monkeypatch: pytest.MonkeyPatch, taken_ms: float
) -> None:
    take(monkeypatch, taken_ms)
    options = settle(StabilityOptions(quick=True, inputs=2))
    first, second = workload_inputs(workload("sort/qsort"), options, is_executed=True)
    assert (first.input, second.input) == ("600000", "600000#1")
    assert first.expected_output is not None
    assert first.expected_output != second.expected_output
    assert first.command != second.command


@pytest.mark.parametrize(("taken_ms", "operations"), [(400.0, "4920"), (4.0, "492000")])
def test_a_quick_study_is_calibrated_where_its_sizes_are_far_from_the_target(
    monkeypatch: pytest.MonkeyPatch, taken_ms: float, operations: str
) -> None:
    take(monkeypatch, taken_ms, 40.0)
    options = settle(StabilityOptions(quick=True))
    (found,) = workload_inputs(workload("exp/exp_float"), options, is_executed=True)
    assert found.input == f"8192_{operations}"


@pytest.mark.parametrize("quick", [True, False])
def test_a_repeated_study_has_the_sizes_of_the_first(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:  # noqa: FBT001
    options = settle(StabilityOptions(quick=quick, target_iteration_ms=40))
    found: list[WorkloadInput] = []
    for taken_ms in ((400.0, 40.0), (33.0,), (58.0,), (90.0, 41.0), (39.0,)):
        take(monkeypatch, *taken_ms)
        found += workload_inputs(workload("exp/exp_float"), options, is_executed=True)
    first, second, third, changed, kept = (each.input for each in found)
    assert first == second == third
    assert changed != first
    assert kept == changed


@pytest.mark.parametrize("damage", ["", "[]", '{"exp/exp_float, quick, 40 ms": {"size": "many"}}'])
def test_damaged_sizes_are_found_again(monkeypatch: pytest.MonkeyPatch, state: Path, damage: str) -> None:
    options = settle(StabilityOptions(quick=True))
    for _ in range(2):
        take(monkeypatch, 400.0, 40.0)
        (found,) = workload_inputs(workload("exp/exp_float"), options, is_executed=True)
        assert found.input == "8192_4920"
        (stored,) = state.glob("steelyard/sizes/*.json")
        stored.write_text(damage)


def test_a_state_folder_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    take(monkeypatch, 400.0, 40.0)
    (found,) = workload_inputs(
        workload("exp/exp_float"), settle(StabilityOptions(quick=True)), is_executed=True
    )
    assert found.input == "8192_4920"


def test_a_sketch_takes_no_measurement() -> None:
    options = settle(StabilityOptions())
    (found,) = workload_inputs(workload("sort/qsort"), options, is_executed=False)
    assert (found.input, found.expected_output) == ("1048576", None)


def test_interpreted_workloads_say_what_they_need() -> None:
    options = settle(StabilityOptions(quick=True))
    (found,) = workload_inputs(workload("sort/qsort.py"), options, is_executed=False)
    assert any(name.startswith("python") for name in found.needs)


def test_this_machine_can_be_planned_for() -> None:
    found = sketch(StabilityOptions(quick=True, isolation=("bare",)), {"bare": Availability.yes(None)})
    assert found.study == "stability"
    assert found.factors["isolation"] == ("bare",)
