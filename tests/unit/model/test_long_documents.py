"""A document of many cells is read once while somebody holds it, and again when its file changes."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.model import Finding, FindingSet
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, verdict: str) -> FindingSet:
    findings = tuple(
        Finding(f"cell/{place}", "cell", {"workload": "w" * 400}, verdict) for place in range(3000)
    )
    found = FindingSet("imported", "p", 1, {}, findings)
    found.write(path)
    assert path.stat().st_size > 1 << 20
    return found


def test_a_held_document_is_not_read_again_until_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    first = written(path, "flat")
    held = read_findings(path)
    assert held == first
    assert read_findings(path) is held
    second = written(path, "warm")
    assert read_findings(path) == second
    path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        read_findings(path)


def test_a_document_that_nobody_holds_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    written(path, "flat")
    number = id(read_findings(path))
    gc.collect()
    assert not any(isinstance(each, FindingSet) and id(each) == number for each in gc.get_objects())


@pytest.mark.parametrize("said", [None, "steelyard/findings/9", "steelyard/plan/1"])
def test_a_long_document_of_no_or_another_schema_is_refused(tmp_path: Path, said: str | None) -> None:
    path = tmp_path / "findings.json"
    written(path, "flat")
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["schema"]
    path.write_text(json.dumps(content | ({} if said is None else {"schema": said})), encoding="utf-8")
    with pytest.raises(DataError, match="carries no schema" if said is None else said):
        read_findings(path)


@pytest.mark.parametrize("place", ["inputs", "last", "text"])
def test_a_schema_inside_of_a_long_document_is_not_its_own(tmp_path: Path, place: str) -> None:
    path = tmp_path / "findings.json"
    schema = written(path, "flat").schema
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["schema"]
    inputs = {f'a ",schema": "{schema}' if place == "text" else "schema": schema}
    if place == "inputs":
        content["inputs"] = inputs
    else:
        del content["inputs"]
        content["inputs"] = inputs
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match="carries no schema"):
        read_findings(path)


def test_a_long_document_is_read_wherever_its_schema_stands(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    found = written(path, "flat")
    content = json.loads(path.read_text(encoding="utf-8"))
    for order in ({"schema": found.schema} | content, dict(reversed(content.items()))):
        path.write_text(json.dumps(order, indent=2), encoding="utf-8")
        assert read_findings(path) == found
