"""Which result folders may be shown: those in which nothing leads elsewhere, however much is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.stability_sample import write_sample
from steelyard.catalogue import folder
from steelyard.catalogue.folder import OF_RUNS
from steelyard.errors import DataError
from steelyard.serve.cell_values import cell_list
from steelyard.serve.finding_tables import TableRequest, finding_table
from steelyard.serve.result_folder import require_contained

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_that_nobody_looks_through_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MOST_FILES", 100)
    for place, count in (("a", 30), ("z", 500), ("m/n", 3)):
        (tmp_path / place).mkdir(parents=True)
        for number in range(count):
            (tmp_path / place / str(number)).touch()
    with pytest.raises(DataError, match="more than 100 files"):
        require_contained(tmp_path)


def test_folders_of_runs_are_left_out_of_what_does_not_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MOST_FILES", 100)
    traces = tmp_path / "traces" / "000000.01"
    traces.mkdir(parents=True)
    for number in range(500):
        (traces / str(number)).touch()
    require_contained(tmp_path, OF_RUNS)
    with pytest.raises(DataError, match="more than 100 files"):
        require_contained(tmp_path)
    (tmp_path / "logs").symlink_to("/etc")
    with pytest.raises(DataError, match="leads out"):
        require_contained(tmp_path, OF_RUNS)


def test_findings_and_cells_of_a_crowded_result_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = write_sample(tmp_path / "result")
    (result / "traces").mkdir()
    for number in range(500):
        (result / "traces" / str(number)).touch()
    monkeypatch.setattr(folder, "MOST_FILES", 100)
    assert finding_table(result, "", TableRequest()).total
    assert cell_list(result, "", 1).total


def test_a_link_at_any_depth_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d" / "e" / "f"
    deep.mkdir(parents=True)
    (deep / "inside").symlink_to(tmp_path / "a")
    require_contained(tmp_path)
    (deep / "outside").symlink_to("/etc")
    with pytest.raises(DataError, match="leads out"):
        require_contained(tmp_path)
