from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import DesignError
from steelyard.model import Affinity, Cell, NeighbourKind, Plan
from steelyard.model.plan import read_plan
from steelyard.studies.option_types import LimitOptions
from steelyard.studies.stability import STUDY
from steelyard.studies.stability.duration import plan_seconds
from steelyard.studies.stability.factorial_plan import CONTAINERS, ISOLATIONS, plan
from steelyard.studies.stability.options import StabilityOptions
from steelyard.studies.stability.workload_choice import WorkloadInput

if TYPE_CHECKING:
    from pathlib import Path

SMALL = HostFacts(cpu_count=2, core_count=2)
LARGE = HostFacts(cpu_count=40, core_count=20, llc_count=2, memory_node_count=2, hardware_virtualisation=True)
NAMES = ["exp/exp_float", "bsearch/bsearch", "gray/gray2bin", "sort/insertion_sort", "sort/qsort.py"]


@dataclass(frozen=True)
class Tried:
    available: bool = True
    reason: str | None = None


def workloads(inputs: int = 1) -> list[WorkloadInput]:
    return [
        WorkloadInput(
            name,
            "65536" if number == 0 else f"65536#{number}",
            ("{work}", name, str(number)),
            expected_output="ok",
            needs=frozenset({"python3"}) if name.endswith(".py") else frozenset(),
        )
        for name in NAMES
        for number in range(inputs)
    ]


def designed(
    host: HostFacts = SMALL, lacking: tuple[str, ...] = (), inputs: int = 1, **options: object
) -> Plan:
    tried = {name: Tried(name not in lacking, f"{name} is not installed") for name in ISOLATIONS}
    return plan(StabilityOptions(inputs=inputs, **options), host, tried, workloads(inputs))  # type: ignore[arg-type]


def cells_with(found: Plan, **levels: str) -> list[Cell]:
    return [cell for cell in found.cells if cell.levels.items() >= levels.items()]


def test_a_quick_study_asks_four_isolations_with_one_and_two_workers() -> None:
    found = designed(quick=True)
    assert found.factors["isolation"] == ("bare", "sandbox", CONTAINERS[0], "vm")
    setups = {(cell.levels["setup_type"], cell.levels["setup_size"]) for cell in found.cells}
    assert setups == {("single", "1"), ("parallel-homogenous", "2")}
    assert len(found.factors["workload"]) == 4
    assert found.blocks == 5


@pytest.mark.parametrize("host", [SMALL, HostFacts(1, 1), LARGE])
def test_a_quick_study_takes_less_than_three_minutes(host: HostFacts) -> None:
    assert plan_seconds(designed(host, quick=True)) < 180 * max(2 / host.cpu_count, 1)


@pytest.mark.parametrize(("host", "launches"), [(SMALL, 3), (LARGE, 10)])
def test_only_an_emulated_machine_executes_fewer_iterations(host: HostFacts, launches: int) -> None:
    found = designed(host, quick=True)
    given = {
        (cell.levels["isolation"] == "vm", cell.execution.iterations)
        for cell in found.cells
        if cell.execution is not None
    }
    assert given == {(False, 10), (True, launches)}


def test_an_emulated_machine_has_a_number_of_iterations_of_its_own() -> None:
    for found, launches in (
        (designed(emulated_iterations=7), 7),
        (designed(quick=True, iterations=2), 2),
        (designed(iterations=9), 9),
    ):
        executed = [cell.execution for cell in cells_with(found, isolation="vm")]
        assert {each.iterations for each in executed if each is not None} == {launches}


def test_a_quick_study_takes_the_first_container_that_works_here() -> None:
    assert CONTAINERS[1] in designed(quick=True, lacking=CONTAINERS[:1]).factors["isolation"]


def test_without_any_container_the_wanted_one_is_missing_with_its_reason() -> None:
    found = designed(quick=True, lacking=CONTAINERS)
    reasons = {cell.missing for cell in cells_with(found, isolation=CONTAINERS[0])}
    assert reasons == {f"{CONTAINERS[0]} is not available on this machine: {CONTAINERS[0]} is not installed"}


def test_a_quick_study_asks_only_the_technologies_it_uses() -> None:
    asked: Counter[str] = Counter()

    class Watched(dict[str, Tried]):
        def __getitem__(self, name: str) -> Tried:
            asked[name] += 1
            return super().__getitem__(name)

    plan(StabilityOptions(quick=True), SMALL, Watched(dict.fromkeys(ISOLATIONS, Tried())), workloads())
    assert set(asked) == {"bare", "sandbox", CONTAINERS[0], "vm"}


def test_a_full_study_executes_100_iterations_of_every_worker_over_five_blocks() -> None:
    found = designed()
    execution = found.cells[0].execution
    assert execution is not None
    assert execution.iterations * found.blocks == 100
    assert found.factors["isolation"] == ISOLATIONS
    assert found.factors["affinity"] == tuple(affinity.value for affinity in Affinity)


def test_unavailable_technologies_stay_in_the_plan_as_missing_cells() -> None:
    complete, lacking = designed(), designed(lacking=("docker", "vm"))
    assert len(complete.cells) == len(lacking.cells)
    assert all(cell.execution is None for cell in cells_with(lacking, isolation="docker"))
    assert not any(lacking.cell_of(batch).missing for batch in lacking.batches)


def test_loads_come_from_the_host() -> None:
    sizes = designed(LARGE).factors["setup_size"]
    assert sizes == ("1", "2", "10", "20", "40")


def test_machines_are_neither_pinned_nor_crowded_nor_given_an_interpreter() -> None:
    found = designed(LARGE)
    pinned = cells_with(found, isolation="vm", affinity="taskset")
    assert {cell.missing for cell in pinned if cell.levels["workload"] != "sort/qsort.py"} == {
        "virtual machines are not pinned, as in the source"
    }
    crowded = cells_with(
        found, isolation="vm-sandbox", affinity="none", setup_size="40", workload="exp/exp_float"
    )
    assert {cell.missing for cell in crowded} == {
        "virtual machines are measured up to 20 workers, as in the source"
    }
    assert all(
        cell.missing is None
        for cell in cells_with(
            found, isolation="vm", affinity="none", setup_size="20", workload="exp/exp_float"
        )
    )
    for isolation in ("vm", "vm-sandbox"):
        reasons = {cell.missing for cell in cells_with(found, isolation=isolation, workload="sort/qsort.py")}
        assert reasons == {"this isolation does not contain `python3`"}
    assert all(
        cell.missing is None
        for cell in cells_with(found, isolation="docker", workload="sort/qsort.py", affinity="none")
    )


def test_affinities_this_host_cannot_give_are_missing() -> None:
    small, large = designed(SMALL), designed(LARGE)
    assert {cell.missing for cell in cells_with(small, isolation="bare", affinity="numa")} == {
        "this host has one memory node"
    }
    assert all(cell.missing for cell in cells_with(small, isolation="bare", affinity="noht"))
    assert {
        cell.missing for cell in cells_with(small, isolation="bare", affinity="taskset-multi", setup_size="4")
    } == {"this host has 2 CPUs, fewer than the processes"}
    assert all(cell.missing is None for cell in cells_with(large, isolation="bare", affinity="numa"))
    crowded = cells_with(large, isolation="bare", affinity="noht", setup_size="40")
    assert {cell.missing for cell in crowded} == {"this host has 20 cores, fewer than the processes"}


def test_a_workload_this_host_lacks_is_missing_everywhere() -> None:
    broken = [
        replace(each, unavailable="no compiler") if "gray" in each.workload else each for each in workloads()
    ]
    found = plan(StabilityOptions(), SMALL, dict.fromkeys(ISOLATIONS, Tried()), broken)
    assert {cell.missing for cell in cells_with(found, workload="gray/gray2bin", isolation="bare")} == {
        "no compiler"
    }


def test_synthetic_load_surrounds_one_measured_worker() -> None:
    cell = cells_with(designed(), setup_type="parallel-synth-memcpy", setup_size="4")[0]
    assert cell.execution is not None
    assert cell.execution.neighbours is not None
    assert (cell.execution.workers, cell.execution.neighbours.count) == (1, 3)
    assert cell.execution.neighbours.kind is NeighbourKind.MEMCPY


def test_counters_have_cells_of_their_own() -> None:
    found = designed()
    for cell in found.cells:
        is_counted = cell.levels["counters"] == "on"
        assert bool(cell.execution and cell.execution.counters) <= is_counted
        if is_counted:
            assert (cell.levels["setup_type"], cell.levels["affinity"]) == ("single", "none")
    assert designed(counters=()).factors["counters"] == ("off",)


def test_further_inputs_are_executed_by_one_worker_only() -> None:
    found = designed(inputs=3)
    further = [cell for cell in found.cells if "#" in cell.levels["input"]]
    assert {cell.levels["setup_type"] for cell in further} == {"single"}
    assert {cell.levels["input"] for cell in further} == {"65536#1", "65536#2"}
    assert len(further) == 2 * len(NAMES) * len(ISOLATIONS)


def test_the_control_is_a_second_cell_with_the_same_levels_and_execution() -> None:
    found = designed(quick=True)
    assert found.twin is not None
    first, second = found.twin
    assert second == len(found.cells) - 1
    assert found.cells[first].levels == found.cells[second].levels
    assert found.cells[first].execution == found.cells[second].execution
    others = [tuple(cell.levels.values()) for cell in found.cells[:-1]]
    assert len(others) == len(set(others)), "no other cell occurs twice"


def test_every_executable_cell_is_in_every_block_once() -> None:
    found = designed(lacking=("vm",))
    executed = sorted(cell.number for cell in found.cells if cell.missing is None)
    for block in range(found.blocks):
        assert sorted(batch.cell for batch in found.batches if batch.block == block) == executed
    assert [cell.number for cell in found.cells] == list(range(len(found.cells)))


def test_the_same_request_gives_the_same_plan_and_it_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    designed(quick=True).write(path)
    assert read_plan(path) == designed(quick=True)
    assert designed(quick=True, seed=2).id != designed(quick=True).id


def test_where_results_go_is_no_part_of_the_request() -> None:
    assert STUDY.request(StabilityOptions(out="a")) == STUDY.request(StabilityOptions(out="b"))
    assert STUDY.request(StabilityOptions(seed=2)) != STUDY.request(StabilityOptions())


def test_limits_reach_every_run() -> None:
    found = designed(quick=True, limits=LimitOptions(wall_time_s=1.5, memory_mib=2))
    execution = found.cells[0].execution
    assert execution is not None
    assert (execution.limits.wall_time_ns, execution.limits.memory_bytes) == (1_500_000_000, 2 << 20)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"isolation": ("bare", "vbox")}, "`vbox` is not an isolation technology; allowed: `bare`"),
        ({"workloads": ("sort/bogosort",)}, "`sort/bogosort` is not a workload; allowed: `exp/exp_float`"),
        ({"setups": ("parallel-homogenous",), "workers": (1,)}, "`workers` has no number above 1"),
    ],
)
def test_an_impossible_request_names_what_is_allowed(options: dict[str, object], part: str) -> None:
    with pytest.raises(DesignError) as caught:
        designed(**options)  # type: ignore[arg-type]
    assert part in caught.value.message
    assert caught.value.hint


def test_a_machine_that_can_execute_nothing_says_why() -> None:
    with pytest.raises(DesignError, match="docker is not installed"):
        designed(isolation=("docker",), lacking=("docker",))
