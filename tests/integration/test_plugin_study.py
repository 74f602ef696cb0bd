"""A study of an installed package goes through every verb like one of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.plug_ins import Beside, install

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    return install("plugin-study", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def result(installed: Beside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    (folder / "mine.toml").write_text(
        'study = "first-start"\nquick = true\ncommands = ["true", "sleep 0.01"]\n', encoding="utf-8"
    )
    said = installed.said(folder, "run", "first-start", "--study-file", "mine.toml", "--out", "first")
    assert "first start of true takes" in said
    return folder / "first"


def test_it_is_run_analysed_and_reported(installed: Beside, result: Path) -> None:
    assert "first_start" in installed.said(result.parent, "analyse", "first")
    assert (result / "tables" / "first_starts.csv").exists()
    page = (result / "report.html").read_text(encoding="utf-8")
    assert "Does the first start of a program take longer than the next ones?" in page
    assert "| sleep 0.01 |" in installed.said(result.parent, "report", "first", "--format", "markdown")


def test_it_is_verified_packed_and_repeated(installed: Beside, result: Path) -> None:
    assert "confirmed" in installed.said(result.parent, "verify", "first")
    installed.said(result.parent, "pack", "first", "-o", "first.zip")
    assert "confirmed" in installed.said(result.parent, "verify", "first.zip")
    # What is repeated on a busy machine may well differ: 1 says so.
    installed.steelyard(result.parent, "rerun", "first.zip", "--yes", "--out", "again", allowed=(0, 1))
    said = installed.steelyard(result.parent, "compare-results", "first", "again", allowed=(0, 1)).stdout
    assert "Claims in both: 2" in said


def test_it_is_planned_and_explained(installed: Beside, result: Path) -> None:
    words = ("plan", "first-start", "--start", "true", "--start", "echo a,b", "--start", "sleep 0", "--json")
    plan = json.loads(installed.said(result.parent, *words))
    assert (plan["study"], plan["blocks"], len(plan["cells"])) == ("first-start", 40, 3)
    assert "--start" in installed.said(result.parent, "run", "first-start", "--help")
    assert "first-start" in installed.said(result.parent, "run", "--help")
    installed.steelyard(result.parent, "run", "first-start", "--containers", "none", allowed=(2,))


def test_a_result_of_a_study_that_is_not_installed_is_named(result: Path) -> None:
    for verb in ("analyse", "report", "verify"):
        Beside(result.parent / "nowhere").steelyard(result.parent, verb, "first", allowed=(5,))
