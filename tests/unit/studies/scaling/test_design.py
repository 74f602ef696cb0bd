from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import UsageError
from steelyard.studies.scaling import STUDY
from steelyard.studies.scaling.design import plan, plan_here, worker_levels
from steelyard.studies.scaling.hypotheses import of_plan
from steelyard.studies.scaling.options import ScalingOptions, settle
from steelyard.studies.scaling.packet_files import LOCKS
from steelyard.studies.scaling.packets import WITH_LOCK
from steelyard.studies.scaling.recorded import MACHINE, SERIAL, TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan

COMMAND = "prog --threads {workers}"


def designed(cores: int = 2, **options: Any) -> Plan:
    return plan(settle(ScalingOptions.model_validate(options)), HostFacts(cores, cores), "/bin/packets")


@given(st.integers(1, 512))
def test_levels_begin_at_one_and_name_the_cores_and_both_crowds(cores: int) -> None:
    levels = worker_levels(cores)
    assert levels[0] == 1
    assert {cores, 2 * cores, 4 * cores} <= set(levels)
    assert list(levels) == sorted(set(levels))
    assert all(level <= cores for level in levels[:-2])


def test_a_command_is_executed_with_each_number_of_workers_in_every_block() -> None:
    found = designed(command=COMMAND, trials=3)
    words = [cell.execution.command for cell in found.cells if cell.execution is not None]
    own = [("prog", "--threads", count) for count in ("1", "2", "4", "8")]
    machine = [("/bin/packets", "independent", "1000", count, "100") for count in ("1", "2")]
    assert words == [*own, *machine, own[0]]
    assert found.twin == (0, 6)
    assert Counter(batch.cell for batch in found.batches) == dict.fromkeys(range(7), 3)


def test_a_program_that_a_run_would_not_find_is_refused_before_anything_is_executed(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")

    def refused(command: str) -> str:
        with pytest.raises(UsageError) as caught:
            plan_here(ScalingOptions(command=command), {})
        return caught.value.message

    assert refused(f"{tmp_path}/absent {{workers}}") == f"cannot find the program `{tmp_path}/absent`"
    assert refused(f"{plain} {{workers}}") == f"cannot run `{plain}`: it is not an executable file"
    assert refused("no-such-program {workers}") == "cannot find a program `no-such-program` on the PATH"


def test_a_baseline_is_a_cell_of_its_own() -> None:
    found = designed(command=COMMAND, baseline="prog --serial", workers=(2, 3))
    programs = [cell.levels["program"] for cell in found.cells[:-1]]
    assert programs == ["program", "program", SERIAL, MACHINE, MACHINE]


def test_every_packets_cell_is_there_once_and_has_a_serial_baseline() -> None:
    found = designed()
    cells = found.cells[:-1]
    assert len({tuple(cell.levels.values()) for cell in cells}) == len(cells)
    serial = {
        (cell.levels["load"], cell.levels["mean_work"], cell.levels["workers"])
        for cell in cells
        if cell.levels["strategy"] == SERIAL
    }
    contests = [cell for cell in cells if cell.levels["strategy"] in TESTS]
    assert {cell.levels["lock"] for cell in contests} == set(LOCKS.values()) - {"none"}
    machine = [cell for cell in cells if cell.levels["strategy"] == MACHINE]
    assert [cell.levels["workers"] for cell in machine] == ["1", "2"]
    for cell in cells:
        if cell in contests or cell in machine:
            continue
        assert (cell.levels["load"], cell.levels["mean_work"], cell.levels["workers"]) in serial
        has_lock = cell.levels["lock"] != "none"
        assert has_lock == (cell.levels["strategy"] in WITH_LOCK)
        assert cell.execution is not None
        assert "{block}" in cell.execution.command


def test_a_quick_study_stays_small_on_two_cores() -> None:
    found = designed(quick=True)
    measured_s = len(found.batches) * (int(found.factors["duration_ms"][0]) + 40) / 1000
    assert measured_s < 120
    crowded = {int(cell.levels["workers"]) for cell in found.cells}
    assert crowded == {1, 2, 8}


def test_the_expectations_stand_in_the_plan_and_change_its_id() -> None:
    found = designed(quick=True)
    expected = of_plan(found)
    assert {each.claim for each in expected} == {
        "overhead",
        "speedup",
        "imbalance",
        "gain",
        "oversubscription",
        "lock_contest",
    }
    assert all(each.low is not None or each.high is not None for each in expected)
    assert designed(quick=True, seed=2).id != found.id
    assert designed(quick=True).id == found.id


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"command": "prog"}, "no place for the number of workers"),
        ({"baseline": "prog"}, "needs `--command`, which is missing"),
        ({"command": COMMAND, "depths": (8,)}, "`depths` belongs to the built-in packets program"),
        ({"command": "prog '{workers}"}, "cannot split `prog '{workers}` into words"),
        ({"command": COMMAND, "workers": (2, 4)}, "but speed-up needs one of them"),
    ],
)
def test_contradictions_are_refused_with_a_hint(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        designed(**options)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_request_does_not_name_the_place_of_the_result() -> None:
    asked = [STUDY.request(ScalingOptions(command=COMMAND, out=out)) for out in ("a", "b")]
    assert asked[0] == asked[1]
    assert json.loads(asked[0])["trials"] == 11
