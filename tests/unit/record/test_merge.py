from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_plan
from steelyard.errors import DataError
from steelyard.record.merge import Purpose, Severity, disagreements, require_agreement
from steelyard.record.provenance import begin_provenance, write_provenance
from steelyard.studies.stability.recodex import IMPORTER
from unit.studies.stability.test_export_csv import execute, stability_plan

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan


def made(folder: Path, plan: Plan, host_id: str = "h") -> Path:
    folder.mkdir()
    write_provenance(folder, begin_provenance(plan, [], host_id=host_id))
    execute(folder, plan)
    return folder


def test_equal_results_may_be_merged(tmp_path: Path) -> None:
    first, second = (made(tmp_path / name, stability_plan()) for name in "ab")
    assert require_agreement(first, second, Purpose.MERGE) == ()


def test_results_of_two_hosts_may_be_compared_but_not_merged(tmp_path: Path) -> None:
    first = made(tmp_path / "a", stability_plan(), "h1")
    second = made(tmp_path / "b", stability_plan(), "h2")
    (noted,) = require_agreement(first, second, Purpose.COMPARE)
    assert (noted.field, noted.first, noted.second, noted.severity) == ("host", "h1", "h2", Severity.NOTED)
    with pytest.raises(DataError, match="host: `h1` against `h2`"):
        require_agreement(first, second, Purpose.MERGE)


def test_an_import_may_be_compared_with_an_execution(tmp_path: Path) -> None:
    first = made(tmp_path / "a", stability_plan())
    (tmp_path / "t.csv").write_text("bare,single,1,0,w,1,1,cpu,0.5\n", encoding="utf-8")
    IMPORTER.import_file(tmp_path / "t.csv", tmp_path / "b")
    fields = {each.field: each.severity for each in disagreements(first, tmp_path / "b", Purpose.COMPARE)}
    assert fields["origin"] is Severity.NOTED
    assert Severity.REFUSED not in fields.values(), "seconds and nanoseconds are both time"


def test_results_of_two_studies_are_not_compared(tmp_path: Path) -> None:
    first = made(tmp_path / "a", stability_plan())
    second = made(tmp_path / "b", make_plan())
    with pytest.raises(DataError, match="study: `stability` against `probe`"):
        require_agreement(first, second, Purpose.COMPARE)


def test_another_seed_is_another_plan(tmp_path: Path) -> None:
    first = made(tmp_path / "a", stability_plan())
    second = made(tmp_path / "b", replace(stability_plan(), seed=9).freeze())
    refused = {
        each.field
        for each in disagreements(first, second, Purpose.MERGE)
        if each.severity is Severity.REFUSED
    }
    assert refused == {"plan"}
