"""The scaling study of a user's program, from the command line to a verified report."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.share.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

# Reports a rate that is known, so that the whole way from the program to the page can be checked.
PROGRAM = """
import os, sys
workers = int(sys.argv[1])
line = f"operations {900 * workers} count\\nwall 1000000 ns\\n"
os.write(int(os.environ["STEELYARD_METRICS_FD"]), line.encode())
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return f"{sys.executable} prog.py {{workers}}"


def study_file(folder: Path, text: str) -> str:
    path = folder / "study.toml"
    path.write_text('study = "scaling"\n' + text, encoding="utf-8")
    return str(path)


def test_a_program_that_reports_its_rate(tmp_path: Path, program: str) -> None:
    file = study_file(tmp_path, "trials = 3\nworkers = [1, 2, 4]\n")
    out = str(tmp_path / "r")
    words = ["run", "scaling", "--study-file", file, "--command", program, "--out", out]
    assert execute(words) == 0
    findings = read_findings(tmp_path / "r/findings.json")
    speedups = {each.subject["workers"]: each for each in findings.of("speedup")}
    assert {count: each.estimates["speedup"].value for count, each in speedups.items()} == {
        "1": 1.0,
        "2": 2.0,
        "4": 4.0,
    }
    assert speedups["2"].verdict == "ideal"
    assert speedups["1"].verdict == "baseline"
    (settings,) = findings.of("settings")
    assert settings.facts["response"] == "operations over the program's own time"
    assert [each.verdict for each in findings.of("identical_cells")] == ["descriptive"]
    assert verify(tmp_path / "r") == []
    with (tmp_path / "r/tables/speedup_by_workers.csv").open() as table:
        assert [row["speedup"] for row in csv.DictReader(table)] == ["1.0", "2.0", "4.0"]


def test_a_baseline_and_the_wall_time(tmp_path: Path) -> None:
    file = study_file(tmp_path, "trials = 2\nworkers = [2]\n")
    out = tmp_path / "r"
    words = ["run", "scaling", "--study-file", file, "--command", "sleep 0.0{workers}"]
    assert execute([*words, "--baseline", "sleep 0.1", "--out", str(out)]) == 0
    (point,) = read_findings(out / "findings.json").of("speedup")
    assert point.facts["against"] == "the serial program"
    speedup = point.estimates["speedup"].value
    assert speedup is not None
    # A sleep may take longer than asked for, never shorter: 0.1 s over 0.02 s, less what starting adds.
    assert 2 < speedup < 8


def test_a_stopped_study_is_resumed_by_the_same_request_only(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = study_file(tmp_path, "trials = 2\nworkers = [1, 2]\n")
    out = str(tmp_path / "r")
    words = ["run", "scaling", "--study-file", file, "--command", program, "--out", out]
    assert execute(words) == 0
    plan = read_plan(tmp_path / "r/plan.json")
    assert execute([*words, "--resume"]) == 0
    assert execute(["run", "scaling", "--out", out, "--resume"]) == 0
    assert read_plan(tmp_path / "r/plan.json") == plan
    capsys.readouterr()
    assert execute([*words, "--baseline", "true", "--resume"]) == 5
    assert "`baseline` was null and is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "scaling", "--command", "prog"], "no place for the number of workers"),
        (["run", "scaling", "--baseline", "prog"], "none is given"),
        (["run", "stability", "--command", "prog {workers}"], "it is of `scaling`"),
    ],
)
def test_wrong_requests_are_answered(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 2
    assert said in capsys.readouterr().err
