"""The verbs import, export and plan as a user calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.cli.measuring.plan import describe
from steelyard.run.isolation.interface import Availability
from steelyard.studies.stability.design import sketch
from steelyard.studies.stability.duration import plan_seconds
from steelyard.studies.stability.options import StabilityOptions

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "bare,single,1,0,exp/exp_float,65536,1,cpu,0.10\nbare,single,1,0,exp/exp_float,65536,2,cpu,0.1030\n"
BARE = 'study = "stability"\nquick = true\nisolation = ["bare"]\n'


@pytest.fixture
def result(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(ROWS, encoding="utf-8")
    assert execute(["import", "recodex", str(tmp_path / "t.csv"), "--out", str(tmp_path / "result")]) == 0
    return tmp_path / "result"


def test_import_says_what_it_wrote_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(ROWS, encoding="utf-8")
    result = tmp_path / "result"
    assert execute(["import", "recodex", str(tmp_path / "t.csv"), "--out", str(result)]) == 0
    text = capsys.readouterr().out
    assert f"{result}: 2 runs with 2 measurements in 1 cell\n" in text
    assert f"next: steelyard analyse {result}" in text


def test_import_answers_programs_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(ROWS, encoding="utf-8")
    words = ["import", "recodex", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r"), "--json"]
    assert execute(words) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2


def test_a_damaged_file_is_an_error_of_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("a,b\n", encoding="utf-8")
    assert execute(["import", "recodex", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r")]) == 5
    error = capsys.readouterr().err
    assert "line 1: 2 columns; expected 9" in error
    assert "hint: expected nine columns" in error


def test_an_unknown_format_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["import", "geekbench", "x", "--out", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert "not a format that can be imported; allowed: `" in said
    assert "`criterion`, `csv`" in said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["hyperfine"], "no file is given"),
        (["hyperfine", "t.csv", "--unit", "ms"], "`--unit` for `csv`, `messages`, `plogp`"),
        (["recodex", "t.csv", "--unit", "ms"], "takes files, and no option of tables"),
        (["csv", "t.csv", "--column", "value"], "is not of the form ROLE=COLUMN"),
    ],
)
def test_an_import_that_asks_for_too_much_is_wrong_usage(
    words: list[str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["import", *words, "--out", str(tmp_path / "r")]) == 2
    assert part in capsys.readouterr().err


def test_columns_of_a_table_are_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("pid,t\n1,0.5\n2,0.25\n", encoding="utf-8")
    words = ["--column", "value=t", "--column", "run=pid", "--unit", "s", "--out", str(tmp_path / "r")]
    assert execute(["import", "csv", str(tmp_path / "t.csv"), *words]) == 0


def test_export_gives_back_what_was_imported(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert execute(["export", str(result), "--format", "recodex"]) == 0
    assert capsys.readouterr().out == ROWS


def test_export_into_a_file_says_how_many_rows(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    target = tmp_path / "out.csv"
    assert execute(["export", str(result), "--out", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(target), "rows": 2, "format": "csv"}
    assert len(target.read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["--json"], 2, "`--json` needs `--out`"),
        (["--format", "xml"], 2, '"csv", "recodex"'),
        (["--out", "/dev/null/x"], 5, "cannot write `"),
    ],
)
def test_an_export_that_cannot_be_is_explained(
    result: Path, words: list[str], code: int, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["export", str(result), *words]) == code
    assert part in capsys.readouterr().err


def test_plan_shows_cells_time_and_the_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(BARE, encoding="utf-8")
    assert execute(["plan", "stability", "--study-file", str(tmp_path / "s.toml")]) == 0
    text = capsys.readouterr().out
    assert "9 cells in 5 blocks: 45 batches" in text
    assert "expected to take about 1 min" in text
    assert "A/A control: cell 8 repeats cell 0 (bare, single,1, exp/exp_float)" in text


def test_plan_gives_programs_the_whole_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(BARE, encoding="utf-8")
    assert execute(["plan", "stability", "--study-file", str(tmp_path / "s.toml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["batches"]) == 45
    assert document["estimated_s"] > 0


def test_plan_lists_missing_cells_with_their_reason() -> None:
    options = StabilityOptions(
        isolation=("bare",), workloads=("sort/qsort",), affinity=("none", "numa", "noht")
    )
    planned = sketch(options, {"bare": Availability.yes(None)})
    if any(cell.missing for cell in planned.cells):
        assert any("NA in every table" in line for line in describe(planned, plan_seconds(planned)))
    else:
        pytest.skip("needs a host with one memory node or without SMT")


def test_an_unknown_study_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["plan", "stabilty"]) == 2
    assert (
        "allowed: `colocation`, `communication`, `replication`, `scaling`, `stability`"
        in capsys.readouterr().err
    )


def test_a_wrong_study_file_lists_its_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(
        'study = "stability"\nisolation = ["vbox"]\nsead = 3\n', encoding="utf-8"
    )
    assert execute(["plan", "stability", "--study-file", str(tmp_path / "s.toml")]) == 2
    error = capsys.readouterr().err
    assert "line 2: `isolation[0]`" in error
    assert "did you mean `seed`?" in error


def test_a_plan_of_the_communication_study_names_its_transports(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["plan", "communication", "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "study communication, quick" in shown
    assert "transport   pipe, unix, tcp, shm" in shown
