from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli import execute
from steelyard.model.finding import FindingSet

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_folder_without_findings_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["report", str(tmp_path)]) == 5
    assert f"hint: steelyard analyse {tmp_path}" in capsys.readouterr().err


def test_a_study_that_is_not_installed_is_refused_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FindingSet("alchemy", "", 1, {}, ()).write(tmp_path / "findings.json")
    assert execute(["report", str(tmp_path)]) == 5
    said = capsys.readouterr().err
    assert "study `alchemy`, which is not installed" in said
    assert "`stability`" in said


def test_an_unknown_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(tmp_path), "--format", "docx"]) == 2
    assert "latex" in capsys.readouterr().err
