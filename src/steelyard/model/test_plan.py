from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

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
