"""A study of an installed package goes through every verb like one of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".tools" / "bin" / "uv")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example into a folder of its own, as a user would into his environment."""
    site = tmp_path_factory.mktemp("site")
    options = ["--offline", "--no-deps", "--python", sys.executable, "--target", str(site)]
    subprocess.run(
        [UV, "pip", "install", *options, str(ROOT / "examples" / "plugin-study")],
        check=True,
        capture_output=True,
    )
    return site


def steelyard(installed: Path, folder: Path, *words: str, expected: int = 0) -> str:
    """Give what a verb prints."""
    command = [str(Path(sys.executable).parent / "steelyard"), *words]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == expected, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def result(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    (folder / "mine.toml").write_text(
        'study = "first-start"\nquick = true\ncommands = ["true", "sleep 0.01"]\n', encoding="utf-8"
    )
    said = steelyard(installed, folder, "run", "first-start", "--study-file", "mine.toml", "--out", "first")
    assert "first start of true takes" in said
    return folder / "first"


def test_it_is_run_analysed_and_reported(installed: Path, result: Path) -> None:
    assert "first_start" in steelyard(installed, result.parent, "analyse", "first")
    assert (result / "tables" / "first_starts.csv").exists()
    page = (result / "report.html").read_text(encoding="utf-8")
    assert "Does the first start of a program take longer than the next ones?" in page
    assert "| sleep 0.01 |" in steelyard(installed, result.parent, "report", "first", "--format", "markdown")


def test_it_is_verified_packed_and_repeated(installed: Path, result: Path) -> None:
    assert "confirmed" in steelyard(installed, result.parent, "verify", "first")
    steelyard(installed, result.parent, "pack", "first", "-o", "first.zip")
    assert "confirmed" in steelyard(installed, result.parent, "verify", "first.zip")
    steelyard(installed, result.parent, "rerun", "first.zip", "--yes", "--out", "again")
    said = steelyard(installed, result.parent, "compare-results", "first", "again")
    assert "Claims in both: 2" in said


def test_it_is_planned_and_explained(installed: Path, result: Path) -> None:
    words = ("plan", "first-start", "--start", "true", "--start", "echo a,b", "--start", "sleep 0", "--json")
    plan = json.loads(steelyard(installed, result.parent, *words))
    assert (plan["study"], plan["blocks"], len(plan["cells"])) == ("first-start", 40, 3)
    assert "--start" in steelyard(installed, result.parent, "run", "first-start", "--help")
    assert "first-start" in steelyard(installed, result.parent, "run", "--help")
    refused = steelyard(installed, result.parent, "run", "first-start", "--containers", "none", expected=2)
    assert refused == ""


def test_a_result_of_a_study_that_is_not_installed_is_named(installed: Path, result: Path) -> None:
    absent = result.parent / "nowhere"
    for verb in ("analyse", "report", "verify"):
        assert steelyard(absent, result.parent, verb, "first", expected=5) == ""
