from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import CapabilityError, UsageError
from steelyard.model.plan import read_plan
from steelyard.run.isolation.interface import Availability
from steelyard.run.machine.cpu_groups import CpuController
from steelyard.run.machine.host import Cpu, Topology
from steelyard.studies.colocation import STUDY
from steelyard.studies.colocation.design import place_here, plan
from steelyard.studies.colocation.fixtures import run_inputs
from steelyard.studies.colocation.options import (
    EVERY_POLICY,
    ColocationOptions,
    options_of,
    settle,
)
from steelyard.studies.colocation.placement import Placement, conducting
from steelyard.studies.colocation.policies import POLICIES, Place, absence, policy_of, settings_of
from steelyard.studies.colocation.scheduling import Scheduling
from steelyard.studies.colocation.trial import FORMAT
from steelyard.studies.colocation.trial_plan import Site, rate_per_s, seed_of, trial_document

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan

WORKS = Availability.yes("1")
TWO = Place((0, 1), (0, 1), is_whole=True)
ROOMY = Place((0, 1, 2, 3), (4,), is_whole=False)


def offering(folder: Path | None, *, loadable: Availability = WORKS) -> Scheduling:
    groups = CpuController(folder, 2, frozenset({"cpu.idle"}), "no groups here", "be root")
    return Scheduling(groups, WORKS, WORKS, loadable, WORKS, {"steelyard-scheduler": "/bin/scheduler"})


def designed(tmp_path: Path, place: Place = ROOMY, **options: Any) -> Plan:
    settled = settle(ColocationOptions.model_validate(options))
    ground = Placement(
        place,
        offering(tmp_path, loadable=Availability.no("no sched_ext", "a newer kernel")),
        conducting(tmp_path / "steelyard-load"),
        work_iterations=1000,
    )
    return plan(settled, ground)


def topology(count: int, allowed: int | None = None) -> Topology:
    every = tuple(range(count))
    return Topology(
        cpus=tuple(Cpu(number, core=number) for number in every),
        online=every,
        allowed=every[:allowed],
        isolated=(),
        tickless=(),
        socket_count=1,
        core_count=count,
        smt=False,
        memory_nodes=(),
        last_level_caches=(),
    )


def test_every_block_holds_each_policy_at_each_load_once_and_the_baseline_twice(tmp_path: Path) -> None:
    made = designed(tmp_path, policies=("none", "nice", "weights"), loads=(85, 95), repetitions=3)
    assert made.twin is not None
    first, twin = made.twin
    assert made.cells[first].levels == made.cells[twin].levels == {"policy": "none", "load": "85"}
    assert (twin, len(made.cells), made.blocks) == (6, 7, 3)
    for block in range(3):
        assert sorted(batch.cell for batch in made.batches if batch.block == block) == list(range(7))


def test_what_the_host_lacks_is_a_missing_cell_with_reason_and_repair(tmp_path: Path) -> None:
    made = designed(tmp_path, policies=("none", "be"), loads=(85,))
    absent = made.cells[1]
    assert (absent.levels["policy"], absent.execution) == ("be", None)
    assert absent.missing == "no sched_ext (repair: a newer kernel)"
    assert all(batch.cell != absent.number for batch in made.batches)


def test_a_study_of_absent_policies_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="no sched_ext") as caught:
        designed(tmp_path, policies=("be",))
    assert "--in-vm" in str(caught.value.hint)


def test_a_real_time_service_never_holds_every_cpu_at_high_load(tmp_path: Path) -> None:
    host, fifo = offering(tmp_path), POLICIES["fifo"]
    assert "--in-vm" in str(absence(fifo, 85, TWO, host))
    assert absence(fifo, 50, TWO, host) is None
    assert absence(fifo, 95, ROOMY, host) is None
    made = designed(tmp_path, policies=("fifo",), loads=(95,))
    assert made.cells[0].execution is not None
    assert made.cells[0].execution.command == ("sh", "{files}/bounded.sh")


def test_any_scheduler_is_a_policy_if_its_program_is_there(tmp_path: Path) -> None:
    program = tmp_path / "scx_mine"
    program.touch(0o755)
    asked = f"scx:{program} --slice-us 500"
    made = designed(tmp_path, policies=("idle", asked, "scx:scx_absent"), loads=(85,), repetitions=1)
    assert [cell.levels["policy"] for cell in made.cells[:3]] == ["idle", asked, "scx:scx_absent"]
    assert made.cells[2].missing == "`scx_absent` is not installed (repair: install it, or give its path)"
    policy = policy_of(asked)
    assert settings_of(policy, {})["scheduler"] == [str(program), "--slice-us", "500"]
    assert absence(policy, 85, ROOMY, replace(offering(tmp_path), sched_ext=Availability.no("old"))) == "old"


def test_a_command_takes_the_place_of_service_and_requests(tmp_path: Path) -> None:
    program = tmp_path / "ask"
    program.touch(0o755)
    made = designed(tmp_path, TWO, client=f"{program} --twice", policies=("none", "fifo"), repetitions=1)
    # Named after its program, once for each policy; it may need every CPU.
    assert [cell.levels for cell in made.cells[:2]] == [
        {"policy": "none", "load": "ask"},
        {"policy": "fifo", "load": "ask"},
    ]
    assert "could stop a machine" in str(made.cells[1].missing)
    with run_inputs(made) as lay:
        lay(made.batches[0], tmp_path)
    asked = json.loads((tmp_path / "trial.json").read_text(encoding="utf-8"))
    assert asked["service"] == {"kind": "command", "command": [str(program), "--twice"]}
    assert asked["client"] == {"closed_loop": 1}
    with pytest.raises(UsageError, match="`nowhere-to-be-found` is not installed"):
        designed(tmp_path, client="nowhere-to-be-found")


def test_layers_tell_the_jobs_by_what_is_set_for_them() -> None:
    settings = policy_of("scx:scx_layered --stats 1 {layers}").settings
    program, *options, layers = settings["scheduler"]
    assert (program, options) == ("scx_layered", ["--stats", "1"])
    jobs, services = json.loads(layers)
    ((match,),) = jobs["matches"]
    assert settings["best_effort_nice"] > match["NiceAbove"] >= 0
    # The last layer has everything else, and alone takes CPUs from others.
    assert services["matches"] == [[]]
    assert services["kind"]["Open"]["preempt"] is True
    assert "preempt" not in jobs["kind"]["Open"]
    assert "best_effort_nice" not in policy_of("scx:scx_layered f:mine.json").settings


def test_policies_without_groups_are_there_where_groups_are_not() -> None:
    host = offering(None)
    absent = {name for name in EVERY_POLICY if absence(POLICIES[name], 85, ROOMY, host) is not None}
    assert absent == {"weights", "cpu-idle"}


@pytest.mark.parametrize(
    ("count", "cpus", "client"),
    [(1, (0,), (0,)), (2, (0, 1), (0, 1)), (3, (0, 1), (2,)), (8, (0, 1, 2, 3), (4, 5, 6, 7))],
)
def test_a_cpu_is_left_to_the_client_where_there_are_three(
    count: int, cpus: tuple[int, ...], client: tuple[int, ...]
) -> None:
    place = place_here(settle(ColocationOptions()), topology(count))
    assert (place.cpus, place.client_cpus) == (cpus, client)
    assert place.shares_client == (cpus == client)
    assert place.is_whole == (len(cpus) == count)


def test_a_cpu_that_is_not_ours_is_refused() -> None:
    with pytest.raises(UsageError, match="CPU 3"):
        place_here(settle(ColocationOptions(cpus=(0, 3))), topology(4, allowed=2))


def test_a_trial_says_what_its_policy_sets(tmp_path: Path) -> None:
    options = settle(ColocationOptions(quick=True))
    site = Site(ROOMY, 1000, tmp_path, 1, {"steelyard-scheduler": "/bin/scheduler"})

    def document(name: str) -> dict[str, Any]:
        return trial_document(options, POLICIES[name], "85", 7, site)

    weights = document("weights")
    assert weights["format"] == FORMAT
    assert (weights["policy"]["service_weight"], weights["policy"]["best_effort_weight"]) == (10_000, 1)
    assert (weights["groups"], weights["groups_version"]) == (str(tmp_path), 1)
    assert (weights["cpus"], weights["client_cpus"], weights["seed"]) == ([0, 1, 2, 3], [4], 7)
    assert weights["best_effort"] == {"kind": "resize", "jobs": 2, "threads": 2}
    assert document("none")["best_effort"]["jobs"] == 0
    assert document("idle")["groups"] is None
    start = ["/bin/scheduler", "start", "--foreground"]
    assert document("be-no-exit")["policy"]["scheduler"] == [*start, "--no-exit", "--counters", "{counters}"]


def test_long_requests_count_for_the_load() -> None:
    usual = settle(ColocationOptions(work_us=6000))
    mixed = settle(ColocationOptions(work_us=6000, long_share=0.02, long_factor=51))
    assert rate_per_s(usual, 90, 2) == pytest.approx(300)
    assert rate_per_s(mixed, 90, 2) == pytest.approx(150)


def test_all_trials_of_a_block_have_the_same_arrivals_and_blocks_differ(tmp_path: Path) -> None:
    made = designed(tmp_path, policies=("none", "nice"), loads=(85,), repetitions=2)
    seeds: dict[int, set[int]] = {0: set(), 1: set()}
    with run_inputs(made) as write_inputs:
        for batch in made.batches:
            folder = tmp_path / str(batch.number)
            folder.mkdir()
            write_inputs(batch, folder)
            asked = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
            seeds[batch.block].add(asked["seed"])
            assert asked["service"]["work_iterations"] == 1000
    assert seeds == {0: {seed_of(1, 0)}, 1: {seed_of(1, 1)}}
    assert seed_of(1, 0) != seed_of(1, 1)


def test_a_plan_gives_its_options_back_and_survives_the_disk(tmp_path: Path) -> None:
    made = designed(tmp_path, policies=("none", "idle"), long_share=0.02)
    made.write(tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")
    assert again == made
    assert STUDY.request(options_of(again)) == made.options["request"]


def test_a_trial_that_cannot_end_within_its_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wall_time_s"):
        designed(tmp_path, policies=("none",), baseline_ms=700_000)
