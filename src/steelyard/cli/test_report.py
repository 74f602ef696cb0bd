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


def test_an_unknown_study_is_refused_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FindingSet("alchemy", "", 1, {}, ()).write(tmp_path / "findings.json")
    assert execute(["report", str(tmp_path)]) == 2
    assert "studies with a report: `stability`" in capsys.readouterr().err


def test_an_unknown_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(tmp_path), "--format", "docx"]) == 2
    assert "latex" in capsys.readouterr().err
