"""`steelyard history` as a user calls it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute

if TYPE_CHECKING:
    from pathlib import Path


def imported(folder: Path, name: str, ratio: float, seed: int) -> str:
    """Write one result of a history: ten launches of two commands, of which `sort` takes `ratio` times."""
    rng = np.random.default_rng(seed)
    times = {
        "sort": ratio * np.exp(0.01 * rng.standard_normal(10)),
        "sum": 1 + 0.01 * rng.standard_normal(10),
    }
    results = [{"command": command, "times": values.tolist()} for command, values in times.items()]
    (folder / f"{name}.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    return str(folder / f"{name}.json")


def import_one(tmp_path: Path, files: list[str]) -> str:
    assert execute(["import", "hyperfine", *files, "--out", str(tmp_path / "all")]) == 0
    return str(tmp_path / "all")


def test_the_files_of_one_import_are_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [imported(tmp_path, f"r{n:02d}", 1.1 if n >= 20 else 1.0, n) for n in range(30)]
    result = import_one(tmp_path, files)
    capsys.readouterr()
    assert execute(["history", result]) == 1
    text = capsys.readouterr().out
    assert "2 series over 30 results" in text
    assert "changed at `r20.json` (result 21 of 30): +" in text
    assert "slower now than before: sort wall" in text
    assert re.search(r"no change: 1; could have seen a lasting change of [0-9.]+ % or more", text)
    page = tmp_path / "history.html"
    assert execute(["history", result, "--html", str(page)]) == 1
    assert "1 of 2 series over 30 results changed" in re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))


def test_folders_are_a_history_and_a_speed_up_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for n in range(14):
        file = imported(tmp_path, f"r{n:02d}", 0.9 if n >= 7 else 1.0, n)
        folders.append(str(tmp_path / f"result-{n:02d}"))
        assert execute(["import", "hyperfine", file, "--out", folders[-1]]) == 0
    capsys.readouterr()
    assert execute(["history", *folders, "--json", "--independent"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "steelyard/history/1"
    series = {each["subject"]["workload"]: each for each in document["series"]}
    (change,) = series["sort"]["changes"]
    assert (change["at"], change["direction"]) == ("result-07", "faster")
    assert change["low"] < 0.9 < change["high"]
    assert series["sum"]["verdict"] == "no change"
    assert series["sort"]["results"] == [f"result-{n:02d}" for n in range(14)]


def test_less_throughput_is_slower(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rates = 100 * np.exp(0.01 * rng.standard_normal(20)) * np.repeat([1.0, 0.8], 10)
    rows = [f"c{commit:02d},{rate}" for commit, rate in enumerate(rates)]
    (tmp_path / "t.csv").write_text("\n".join(["block,value", *rows]), encoding="utf-8")
    words = ["import", "csv", str(tmp_path / "t.csv"), "--unit", "ops/s", "--out", str(tmp_path / "r")]
    assert execute(words) == 0
    assert execute(["history", str(tmp_path / "r"), "--independent"]) == 1
    assert execute(["history", str(tmp_path / "r"), "--independent", "--margin", "40"]) == 0


def test_too_few_results_are_said_to_be_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = import_one(tmp_path, [imported(tmp_path, f"r{n}", 1.0 + n, n) for n in range(3)])
    assert execute(["history", result]) == 0
    assert "undecided: 2 with fewer than 12 results" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ([], 2, "no result folder is given"),
        (["DIR", "--margin", "-1"], 2, "`--margin` is -1.0"),
        (["DIR", "--level", "5"], 2, "`--level` is 5.0"),
        (["DIR", "--metric", "cpu"], 6, "metrics are: `wall`"),
        (["/nonexistent"], 5, "does not exist"),
    ],
)
def test_a_history_that_cannot_be_followed_is_explained(
    tmp_path: Path, words: list[str], code: int, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = import_one(tmp_path, [imported(tmp_path, "r", 1.0, 1)])
    capsys.readouterr()
    assert execute(["history", *(result if word == "DIR" else word for word in words)]) == code
    assert part in capsys.readouterr().err
