from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import CapabilityError, UsageError
from steelyard.model.plan import read_plan
from steelyard.run.isolation.interface import Availability
from steelyard.studies.analysis_options import AnalysisOptions, write_options
from steelyard.studies.host_facts import planned_for
from steelyard.studies.replication import STUDY
from steelyard.studies.replication.cells import Host
from steelyard.studies.replication.design import plan, plan_here
from steelyard.studies.replication.duration import plan_seconds
from steelyard.studies.replication.experiment_record import EXPERIMENT_FILE, FORMAT
from steelyard.studies.replication.findings.effects import pairs_of
from steelyard.studies.replication.fixtures import run_inputs
from steelyard.studies.replication.margins import margins_of, planned_margins
from steelyard.studies.replication.options import FEWEST_BLOCKS, ReplicationOptions, options_of, settle
from steelyard.studies.replication.placement import container_here, host_here
from steelyard.studies.replication.programs import Programs
from steelyard.studies.replication.settings import (
    RolePlace,
    StudyDevices,
    settings_of_program,
    settings_of_service,
)

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan

EVERYTHING = Programs({"java", "postgres"}, {"benchmarks", "service", "python"})
ONE: dict[str, dict[str, Any]] = {"here": {"kind": "local", "storages": {"disk": "/d", "memory": "memory"}}}
TWO: dict[str, dict[str, Any]] = {
    "D1": {"kind": "played", "storages": {"H1": "/a", "H2": "/b"}},
    "D2": {"kind": "played", "storages": {"H2": "/b", "H1": "/a"}},
}
QUARTER_OF_AN_HOUR_S = 900
FIVE_BLOCKS_S = 300
CALLED = ("file-io", "kieker-writing", "opentelemetry-python-writing")


def host(
    devices: dict[str, dict[str, Any]] = ONE,
    *,
    container: str | None = "podman",
    programs: Programs = EVERYTHING,
) -> Host:
    storages = {name: tuple(device["storages"]) for name, device in devices.items()}
    reason = None if container else "docker: not installed (repair: install it)"
    names = tuple(devices)
    ground = StudyDevices(storages, names, names, container, reason)
    return Host(devices, "", ground, programs, (0, 1), may_raise_priority=True)


def designed(here: Host | None = None, **asked: Any) -> Plan:
    return plan(settle(ReplicationOptions.model_validate(asked)), here or host())


def missing(made: Plan) -> dict[str, str]:
    return {" ".join(cell.levels.values()): cell.missing for cell in made.cells if cell.missing is not None}


def asked_of(made: Plan, folder: Path) -> list[dict[str, Any]]:
    found = []
    with run_inputs(made) as write_inputs:
        for batch in made.batches:
            place = folder / str(batch.number)
            place.mkdir()
            write_inputs(batch, place)
            found.append(json.loads((place / EXPERIMENT_FILE).read_text(encoding="utf-8")))
    return found


def placed_on_hosts(hosts: tuple[str, ...], **asked: Any) -> Plan:
    facts = HostFacts(cpu_count=2, core_count=2)
    works = dict.fromkeys(("bare", "docker"), Availability.yes("1"))
    with planned_for(facts, hosts):
        return plan_here(ReplicationOptions.model_validate(asked), works)


def test_each_host_that_a_study_is_placed_on_runs_as_many_blocks_in_all_its_roles() -> None:
    made = placed_on_hosts(("n1", "n2", "n3"), quick=True, experiments=("e2", "e3"), seed=3)
    assert made.blocks == 3 * FEWEST_BLOCKS
    assert made.options["budget_minutes"] is None
    assert (
        STUDY.request(ReplicationOptions(quick=True, experiments=("e2", "e3"), seed=3))
        == (made.options["request"])
    ), "a study that is asked for again would be refused as another one"
    settings = {cell.levels["setting"] for cell in made.cells}
    assert settings == {"native", "container", "swapped"}
    swapped = [cell for cell in made.cells if cell.levels["setting"] == "swapped"]
    assert all("leave out --on" in str(cell.missing) for cell in swapped)
    places = json.loads(str(made.options["placement"]))
    devices = {
        role["device"] for of in places.values() for setting in of.values() for role in setting.values()
    }
    assert devices == {"here"}
    alone = placed_on_hosts(("n1",), quick=True, experiments=("e2", "e3"), blocks=7)
    assert alone.blocks == 7
    assert plan_seconds(made) == pytest.approx(plan_seconds(alone) * FEWEST_BLOCKS / 7, rel=0.1)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"devices": "devices.toml"}, "--devices"),
        ({"placement": {"service": "D1"}}, "placement"),
        ({"settings": ("native", "swapped")}, "swapped"),
        ({"budget_minutes": 5.0}, "budget_minutes"),
    ],
)
def test_what_cannot_be_placed_on_hosts_is_refused_by_name(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        placed_on_hosts(("n1", "n2"), **asked)
    assert caught.value.code == "usage.not-placeable"


def test_each_block_holds_every_cell_once_in_an_order_of_its_own_and_one_cell_twice() -> None:
    made = designed(experiments=("e2",), quick=True)
    assert made.twin is not None
    first, twin = made.twin
    assert made.cells[first].levels == made.cells[twin].levels
    assert tuple(made.cells[first].levels.values()) == ("e2", "none-baseline", "native")
    assert (twin, made.blocks) == (len(made.cells) - 1, 40)
    orders = [[batch.cell for batch in made.batches if batch.block == block] for block in range(5)]
    assert all(sorted(order) == list(range(len(made.cells))) for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)
    assert list(made.factors) == ["experiment", "configuration", "setting"]


def test_a_quick_study_asks_every_question_of_every_experiment_in_a_quarter_of_an_hour() -> None:
    made = designed(here=host(TWO), quick=True)
    executed: dict[str, set[str]] = {}
    for cell in made.cells:
        if cell.execution:
            executed.setdefault(cell.levels["experiment"], set()).add(cell.levels["setting"])
    assert executed == {
        **{name: {"D1-native", "D1-container", "D2-native"} for name in ("e1", "e2")},
        "e3": {"native", "container", "swapped"},
        "causes": {"D1-native"},
    }
    asked = {name: {pair.effect for pair in pairs_of(settings)} for name, settings in executed.items()}
    assert asked == {
        **{name: {"device", "container"} for name in ("e1", "e2")},
        "e3": {"roles swapped", "container"},
        "causes": set(),
    }
    assert FIVE_BLOCKS_S < plan_seconds(made) < QUARTER_OF_AN_HOUR_S
    assert plan_seconds(designed(here=host(TWO), quick=True, blocks=5)) < plan_seconds(made)


def test_a_plan_fixes_the_margin_of_each_experiment_unless_a_reader_states_another(tmp_path: Path) -> None:
    made = designed(quick=True, margins={"e1": 3.0})
    found = {name: round(100 * each.relative, 6) for name, each in planned_margins(made).items()}
    assert found == {"e1": 3.0, "e2": 5.0, "e3": 5.0, "e4": 5.0, "causes": 5.0}
    assert {margin.relative for margin in planned_margins(designed()).values()} == {0.05}
    assert margins_of(tmp_path, made) == planned_margins(made)
    write_options(tmp_path, made, AnalysisOptions(margin_percent=2.0))
    assert {margin.relative for margin in margins_of(tmp_path, made).values()} == {0.02}


def test_without_a_container_technology_its_cells_are_missing_with_the_reason() -> None:
    made = designed(here=host(container=None), experiments=("e1",))
    assert {cell.levels["setting"] for cell in made.cells if cell.execution} == {"native", "storage-swapped"}
    assert set(missing(made).values()) == {"docker: not installed (repair: install it)"}


def test_without_its_programs_an_experiment_is_missing_and_the_others_are_executed() -> None:
    lacking = Programs({"java"}, {"benchmarks"})
    made = designed(here=host(programs=lacking), quick=True)
    executed = {cell.levels["experiment"] for cell in made.cells if cell.execution}
    assert executed == {"e1", "e2", "causes"}
    reasons = missing(made)
    assert reasons["e3 mixed native"] == "`postgres` is not installed (repair: make deps-replication)"
    assert "not built" in missing(designed(here=host(programs=lacking)))["e2 python-none-baseline native"]


def test_a_study_that_cannot_be_executed_at_all_is_refused_with_the_repair() -> None:
    with pytest.raises(CapabilityError, match="`java` is not installed") as caught:
        designed(here=host(programs=Programs((), ())), experiments=("e1",))
    assert caught.value.hint == "make deps-replication"


def test_one_device_has_nothing_to_swap_but_its_storages(tmp_path: Path) -> None:
    made = designed(experiments=("e3",))
    assert list(missing(made)) == ["e3 mixed swapped"]
    assert "--devices FILE" in missing(made)["e3 mixed swapped"]
    roles = {each["setting"]["name"]: each["setting"]["roles"] for each in asked_of(made, tmp_path)}
    assert roles["native"]["database"] == {"device": "here", "storage": "memory", "container": None}
    assert roles["native"]["service"]["storage"] == "disk"
    assert roles["storage-swapped"]["database"]["storage"] == "disk"
    assert roles["container"]["service"]["container"] == "podman"
    assert roles["container"]["driver"]["container"] is None


def test_only_what_works_on_a_storage_is_executed_on_the_other_one_too(tmp_path: Path) -> None:
    made = designed(here=host(TWO), experiments=("e1", "e2"))
    moved = {
        (cell.levels["experiment"], cell.levels["configuration"])
        for cell in made.cells
        if cell.levels["setting"].endswith("storage-swapped")
    }
    assert moved == {("e1", name) for name in ("file-io", "file-synced", "file-direct")}
    (asked,) = (
        each
        for each in asked_of(designed(here=host(TWO), experiments=("e1",), blocks=5), tmp_path)
        if (each["configuration"]["name"], each["block"]) == ("file-synced", 1)
        and each["setting"]["name"] == "D1-storage-swapped"
    )
    assert asked["setting"]["roles"]["app"]["storage"] == "H2"


def test_two_devices_are_compared_and_their_roles_swapped() -> None:
    ground = host(TWO).ground
    names = [each.name for each in settings_of_program(ground)]
    kinds = ("native", "container", "storage-swapped")
    assert names == [f"{device}-{kind}" for device in ("D1", "D2") for kind in kinds]
    places = {each.name: each.roles for each in settings_of_service(ground)}
    native, swapped, moved = (places[name] for name in ("native", "swapped", "storage-swapped"))
    assert (native["service"], native["database"]) == (RolePlace("D1", "H1"), RolePlace("D2", "H2"))
    assert (swapped["service"], swapped["database"]) == (RolePlace("D2", "H1"), RolePlace("D1", "H2"))
    assert (moved["service"], moved["database"]) == (RolePlace("D1", "H2"), RolePlace("D2", "H1"))


def test_a_storage_that_the_other_device_lacks_cannot_be_swapped() -> None:
    storages = {"D1": ("H1",), "D2": ("H2",)}
    ground = StudyDevices(storages, ("D1", "D2"), ("D1", "D2"), "docker")
    reasons = {each.name: each.missing for each in settings_of_service(ground)}
    assert "the device `D1` has no storage `H2`" in str(reasons["storage-swapped"])
    assert "the device `D2` has no storage `H1`" in str(reasons["swapped"])


@pytest.mark.parametrize("placement", [{"cache": "D1"}, {"service": "D9"}, {"service": "D1/H9"}])
def test_a_role_is_placed_only_where_there_is_a_place(placement: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="allowed: "):
        settings_of_service(StudyDevices({"D1": ("H1",)}, ("D1",), ("D1",), None, "none", placement))


def test_a_run_is_told_what_to_do_and_all_of_a_block_have_the_same_seed(tmp_path: Path) -> None:
    made = designed(experiments=("e1", "e2"), quick=True, blocks=5, configurations=CALLED)
    asked = asked_of(made, tmp_path)
    assert {each["format"] for each in asked} == {FORMAT}
    seeds = {(each["block"], each["seed"]) for each in asked}
    assert [block for block, _ in sorted(seeds)] == [1, 2, 3, 4, 5]
    parameters = {each["configuration"]["name"]: each["configuration"]["parameters"] for each in asked}
    assert parameters["file-io"] == {"warm_up_iterations": 2, "iterations": 4, "iteration_ms": 250}
    calls = parameters["kieker-writing"]
    assert calls["warm_up_calls"] * 2 == calls["calls"]
    assert parameters["opentelemetry-python-writing"]["calls"] < calls["calls"]
    assert asked[0]["devices"] == ONE


def test_an_intervention_changes_the_program_as_it_is_and_nothing_else(tmp_path: Path) -> None:
    made = designed(experiments=("causes",), planted="background", quick=True, e2={"depth": 3})
    asked = {each["configuration"]["name"]: each for each in asked_of(made, tmp_path)}
    unchanged = asked["as-it-is"]["configuration"]["parameters"]
    assert (unchanged["planted"], unchanged["depth"], unchanged["cpus"]) == ("background", 10, None)
    changed = {
        name: {key for key, value in each["configuration"]["parameters"].items() if value != unchanged[key]}
        for name, each in asked.items()
    }
    assert changed == {
        "as-it-is": set(),
        "object-pools": {"app_options"},
        "parallel-gc": {"jvm_options"},
        "clock": {"app_options"},
        "one-core": {"cpus"},
        "no-recursion": {"depth"},
        "raised-priority": {"nice"},
        "alone": {"planted"},
    }
    listed = json.loads(str(made.options["interventions"]))
    assert {each["name"] for each in listed} == set(asked)
    assert all(each["sentence"].endswith(".") for each in listed)


def test_interventions_of_ones_own_follow_in_the_order_asked_for() -> None:
    own = {"name": "big-heap", "sentence": "Has a heap of 1 GiB.", "jvm_options": ("-Xmx1g",)}
    made = designed(experiments=("causes",), interventions=(own,), causes=("no-recursion", "big-heap"))
    assert made.factors["configuration"] == ("as-it-is", "no-recursion", "big-heap")
    everything = designed(experiments=("causes",), interventions=(own,))
    assert everything.factors["configuration"][-1] == "big-heap"
    assert "no job runs beside the program" in missing(everything)["causes alone native"]
    inside = designed(experiments=("causes",), planted="allocation")
    assert "`planted` is allocation" in missing(inside)["causes alone native"]


@pytest.mark.parametrize(
    "asked",
    [
        {"configurations": ("file-oi",)},
        {"experiments": ("e1",), "configurations": ("none-baseline",)},
        {"settings": ("swapped-twice",)},
        {"causes": ("luck",)},
        {"interventions": ({"name": "clock", "sentence": "Again.", "depth": 2},)},
        {"interventions": ({"name": "nothing", "sentence": "Changes nothing."},)},
    ],
)
def test_names_that_there_are_not_are_refused_with_those_there_are(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        designed(**asked)
    assert caught.value.hint


def test_only_some_configurations_and_settings_are_executed_where_asked_for() -> None:
    made = designed(configurations=("file-io",), experiments=("e1",), settings=("native",))
    assert [tuple(cell.levels.values()) for cell in made.cells] == [("e1", "file-io", "native")] * 2


def test_a_plan_gives_its_options_back_and_survives_the_disk(tmp_path: Path) -> None:
    made = designed(quick=True, lessons=("Storage matters.",))
    made.write(tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")
    assert again == made
    assert STUDY.request(options_of(again)) == made.options["request"]
    assert options_of(again).lessons == ("Storage matters.",)


def test_without_a_file_the_host_is_measured_as_it_is_and_plays_the_devices_that_are_swapped() -> None:
    found = host_here(settle(ReplicationOptions(containers="none")), {})
    assert list(found.devices) == ["here", "D1", "D2"]
    assert found.note
    names = [each.name for each in settings_of_program(found.ground)]
    assert [name for name in names if "native" in name] == ["native", "D1-native", "D2-native"]
    roles = settings_of_service(found.ground)[0].roles
    assert [roles[name].device for name in ("service", "database", "driver")] == ["D1", "D2", "here"]


def test_a_file_of_devices_says_where(tmp_path: Path) -> None:
    file = tmp_path / "devices.toml"
    file.write_text('[devices.far]\nkind = "ssh"\nhost = "far.example"\n', encoding="utf-8")
    found = host_here(settle(ReplicationOptions(devices=str(file), containers="none")), {})
    assert [each.name for each in settings_of_program(found.ground)] == [
        "native",
        "container",
        "storage-swapped",
    ]
    assert settings_of_service(found.ground)[0].roles["driver"].device == "here"
    assert found.devices["far"]["host"] == "far.example"


def test_the_first_container_technology_that_works_is_taken() -> None:
    tried = {
        "docker": Availability.no("no engine", "start it"),
        "podman": Availability.yes("5"),
        "crun": Availability.yes("1"),
    }
    assert container_here("auto", tried) == ("podman", None)
    assert container_here("crun", tried) == ("crun", None)
    name, reason = container_here("docker", tried)
    assert (name, reason) == (None, "docker: no engine (repair: start it)")
    assert container_here("none", tried)[0] is None
