from __future__ import annotations

import hashlib
import json
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.model.plan import read_plan

if TYPE_CHECKING:
    from pathlib import Path


def planned(**execution: str) -> Plan:
    cell = Cell(0, {"workers": "1"}, Execution("bare", ("true",), **execution))  # type: ignore[arg-type]
    factors: dict[str, tuple[str, ...]] = {"workers": ("1",)}
    return Plan("scaling", 1, factors, (cell,), (Batch(0, 0, 0),), 1, {}).freeze()


def test_a_plan_written_before_working_folders_existed_keeps_its_id(tmp_path: Path) -> None:
    plan = planned()
    path = tmp_path / "plan.json"
    plan.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["cells"][0]["execution"]["working_directory"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_plan(path) == plan


def test_a_working_folder_changes_the_id() -> None:
    plan = planned(working_directory="/srv/work")
    assert plan.id != planned().id
    assert replace(plan, id="").freeze().id == plan.id


def test_writing_a_plan_takes_little_memory_and_its_id_is_the_hash_of_its_document(tmp_path: Path) -> None:
    """The fault: 100 000 imported cells took 700 MB, for the small texts of one document at once."""
    cells = tuple(Cell(number, {"workload": f"\nc{number}"}, None, "imported") for number in range(8000))
    batches = tuple(Batch(number, 0, number) for number in range(8000))
    plan = Plan("imported", 1, {"workload": ()}, cells, batches, 1, {}, twin=(0, 1))
    tracemalloc.start()
    frozen = plan.freeze()
    frozen.write(tmp_path / "plan.json")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    text = (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert most < len(text) / 2
    content = json.loads(text)
    assert text == json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    canonical = json.dumps({**content, "id": ""}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert frozen.id == hashlib.sha256(canonical.encode()).hexdigest()
    assert read_plan(tmp_path / "plan.json") == frozen


def with_option(path: Path, twins: str) -> Plan:
    """Write a plan as versions did that named the twin in an option, and give it as it was."""
    plan = replace(planned(), options={"a_a": twins}, id="").freeze()
    plan.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["twin"]
    path.write_text(json.dumps(content), encoding="utf-8")
    return plan


def test_a_plan_that_names_its_twin_in_an_option_keeps_its_id(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    old = with_option(path, "3,17")
    read = read_plan(path)
    assert (read.twin, read.id, read.digest()) == ((3, 17), old.id, old.id)
    assert [cell for cell in range(20) if read.is_twin(cell)] == [17]


@pytest.mark.parametrize("twins", ["", "3", "3,", "3;17", "three,17", "-1,2"])
def test_an_option_that_names_no_twin_is_damage(tmp_path: Path, twins: str) -> None:
    path = tmp_path / "plan.json"
    with_option(path, twins)
    with pytest.raises(DataError, match="not two numbers of cells"):
        read_plan(path)


def test_a_twin_counts_for_the_id(tmp_path: Path) -> None:
    plan = replace(planned(), twin=(0, 1), id="").freeze()
    assert plan.id != planned().id
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
