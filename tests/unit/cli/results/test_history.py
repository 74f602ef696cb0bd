"""`steelyard history` as a user calls it."""

from __future__ import annotations

import json
import re
import shutil
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
    folder.mkdir(parents=True, exist_ok=True)
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
    shown = re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert "1 of 2 series over 30 results changed" in shown
    assert "figures/history.svg" not in shown, "the page stands alone"
    assert "findings.json" not in shown


def test_a_change_by_more_than_a_factor_of_ten_is_written_in_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [imported(tmp_path, f"r{n:02d}", 40.0 if n >= 10 else 1.0, n) for n in range(20)]
    result = import_one(tmp_path, files)
    capsys.readouterr()
    assert execute(["history", result]) == 1
    text = capsys.readouterr().out
    assert re.search(r"\+[0-9]{4} % \(95 % interval \+[0-9]{4} % to \+[0-9]{4} %\), slower", text)
    assert "e+" not in text


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


def folders_of(tmp_path: Path, ratios: list[float]) -> list[str]:
    """Write a history of folders, one for each ratio."""
    folders = []
    for n, ratio in enumerate(ratios):
        folders.append(str(tmp_path / "results" / f"r{n:02d}"))
        file = imported(tmp_path, f"f{n:02d}", ratio, n)
        assert execute(["import", "hyperfine", file, "--out", folders[-1]]) == 0
    return folders


def test_an_accepted_level_fails_nothing_and_a_slower_one_after_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = folders_of(tmp_path, [1.0] * 10 + [1.2] * 8)
    assert execute(["history", *folders]) == 1
    text = capsys.readouterr().out
    assert "changed at `r10` (result 11 of 18): +" in text
    assert "slower now than before: sort wall (+" in text
    assert "--accept RESULT" in text
    accept = ["--accept", "r12", "--why", "checks every packet now", "--by", "ada"]
    capsys.readouterr()
    assert execute(["history", *folders, *accept]) == 0
    said = capsys.readouterr().out
    assert "accepted: the level at `r12`, " in said
    assert ", ada: checks every packet now\n" in said
    (level,) = json.loads((tmp_path / "results" / "accepted-levels.json").read_text(encoding="utf-8"))[
        "levels"
    ]
    assert (level["result"], level["by"], level["why"]) == ("r12", "ada", "checks every packet now")
    assert level["at"].endswith("+00:00")
    assert execute(["history", *folders]) == 0
    assert execute(["history", *folders, "--accepted", str(tmp_path / "none.json")]) == 1
    more = [*folders, *folders_of(tmp_path / "more", [1.0] * 18 + [1.5] * 4)[18:]]
    shared = ["--accepted", str(tmp_path / "results" / "accepted-levels.json")]
    capsys.readouterr()
    assert execute(["history", *more, *shared, "--json"]) == 1
    series = {each["subject"]["workload"]: each for each in json.loads(capsys.readouterr().out)["series"]}
    assert series["sort"]["is_newest_slower"] is True
    assert series["sort"]["accepted"] == ["r12"]
    assert series["sum"]["is_newest_slower"] is False


def test_a_level_is_accepted_for_the_metrics_that_are_named(tmp_path: Path) -> None:
    folders = folders_of(tmp_path, [1.0] * 10 + [1.2] * 8)
    other = tmp_path / "other.json"
    accept = ["--accept", "r12", "--why", "x", "--accepted", str(other)]
    assert execute(["history", *folders, "--metric", "wall", *accept]) == 0
    content = json.loads(other.read_text(encoding="utf-8"))
    content["levels"][0]["metrics"] = ["memory"]
    other.write_text(json.dumps(content), encoding="utf-8")
    assert execute(["history", *folders, "--accepted", str(other)]) == 1


def test_a_level_is_accepted_for_the_series_that_are_named_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = folders_of(tmp_path, [1.0] * 10 + [1.2] * 8)
    accept = ["--accept", "r12", "--why", "x", "--accepted", str(tmp_path / "other.json")]
    for name in ("sort", "so*", "sort wall"):
        (tmp_path / "other.json").unlink(missing_ok=True)
        assert execute(["history", *folders, *accept, "--series", name]) == 0
        assert f"accepted: the level of {name} at `r12`, " in capsys.readouterr().out
    content = json.loads((tmp_path / "other.json").read_text(encoding="utf-8"))
    content["levels"][0]["series"] = ["parse*"]
    (tmp_path / "other.json").write_text(json.dumps(content), encoding="utf-8")
    assert execute(["history", *folders, "--accepted", str(tmp_path / "other.json")]) == 1
    capsys.readouterr()
    assert execute(["history", *folders, *accept, "--series", "parse*"]) == 2
    assert "`--series parse*` names no series of this history; it has `sort`" in capsys.readouterr().err
    assert json.loads((tmp_path / "other.json").read_text(encoding="utf-8")) == content


def test_one_extreme_newest_result_is_suspect_with_the_way_to_confirm_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = folders_of(tmp_path, [1.0] * 15 + [1.3])
    capsys.readouterr()
    assert execute(["history", *folders]) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"suspect: sort wall: the newest result, from `r15` \(result 16 of 16\) on: \+[0-9.]+ %", text
    )
    assert re.search(r"to confirm what is suspect: measure .* steelyard history .*r15 .*r15-again", text)
    assert "no change: 1" in text
    confirmed = [*folders, *folders_of(tmp_path / "again", [1.3, 1.3])]
    assert execute(["history", *confirmed]) == 1
    page = tmp_path / "suspect.html"
    assert execute(["history", *folders, "--html", str(page)]) == 0
    assert "is suspect from r15 on" in re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--accept", "r99", "--why", "x"], "`r99`, which is not a result of this history"),
        (["--accept", "r01"], "`--accept` needs `--why`"),
        (["--accept", "r01", "--why", " "], "cannot record `--why`"),
        (["--accept", "r01", "--why", "x\ny"], "cannot record `--why`"),
        (["--accept", "r01", "--why", "x", "--by", "\x1b[31m"], "cannot record `--by`"),
        (["--why", "x"], "describes `--accept`, which is missing"),
        (["--why", ""], "describes `--accept`, which is missing"),
        (["--series", "sort"], "describes `--accept`, which is missing"),
        (["--autocorrelation", "0.8"], "`--autocorrelation` is 0.8; allowed: 0 to 0.7"),
        (["--autocorrelation", "nan"], "`--autocorrelation` is nan"),
    ],
)
def test_what_cannot_be_accepted_is_explained(
    tmp_path: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = folders_of(tmp_path, [1.0] * 2)
    assert execute(["history", *folders, *words]) == 2
    assert part in capsys.readouterr().err
    assert not (tmp_path / "results" / "accepted-levels.json").exists()


def test_a_damaged_file_of_accepted_levels_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = folders_of(tmp_path, [1.0] * 2)
    (tmp_path / "results" / "accepted-levels.json").write_text("{", encoding="utf-8")
    assert execute(["history", *folders]) == 5
    assert "accepted-levels.json` is not of schema" in capsys.readouterr().err


def test_too_few_results_are_said_to_be_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = import_one(tmp_path, [imported(tmp_path, f"r{n}", 1.0 + n, n) for n in range(3)])
    assert execute(["history", result]) == 0
    assert "undecided: 2 with fewer than 6 results" in capsys.readouterr().out


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


def test_a_result_that_is_given_twice_is_refused_or_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        file = imported(tmp_path, name, 1.0, seed)
        assert execute(["import", "hyperfine", file, "--out", str(tmp_path / f"result-{name}")]) == 0
    first, second = str(tmp_path / "result-a"), str(tmp_path / "result-b")
    (tmp_path / "link").symlink_to(first)
    shutil.copytree(first, tmp_path / "copy")
    capsys.readouterr()
    for other in (first, str(tmp_path / "link"), str(tmp_path / "copy")):
        assert execute(["history", first, second, other]) == 2
        assert (
            f"cannot use a result twice: `{first}` and `{other}` are the same result"
            in capsys.readouterr().err
        )
        # Neither has findings yet.
        assert execute(["compare-results", first, other]) == 5
        assert (
            f"`{first}` and `{other}` are the same result, which agrees with itself"
            in capsys.readouterr().err
        )


def test_results_of_equal_counts_are_a_history(tmp_path: Path) -> None:
    folders = []
    for n in range(12):
        (tmp_path / f"{n}.csv").write_text("value\n10\n10\n", encoding="utf-8")
        folders.append(str(tmp_path / f"r{n}"))
        assert (
            execute(["import", "csv", str(tmp_path / f"{n}.csv"), "--unit", "ms", "--out", folders[-1]]) == 0
        )
    assert execute(["history", *folders]) == 0


def test_a_name_that_two_results_have_is_not_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for n, name in enumerate(("a", "b")):
        file = imported(tmp_path, f"f{n}", 1.0, n)
        folders.append(str(tmp_path / name / "r"))
        assert execute(["import", "hyperfine", file, "--out", folders[-1]]) == 0
    assert execute(["history", *folders, "--accept", "r", "--why", "x"]) == 2
    assert "cannot accept `r`: several results of this history have this name" in capsys.readouterr().err
    assert not (tmp_path / "b" / "accepted-levels.json").exists()


def test_independent_results_and_an_autocorrelation_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert execute(["history", "r", "--independent", "--autocorrelation", "0.5"]) == 2
    assert "`--independent` and `--autocorrelation 0.5` exclude each other" in capsys.readouterr().err


def test_a_mode_that_recurs_is_said_and_fails_only_what_asks_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fault: each visit of a mode of the machine was slower, as if it were new."""
    files = [imported(tmp_path, f"r{n:02d}", 1.1 if 10 <= n < 18 or n >= 28 else 1.0, n) for n in range(36)]
    result = import_one(tmp_path, files)
    page = tmp_path / "history.html"
    capsys.readouterr()
    assert execute(["history", result, "--html", str(page)]) == 0
    text = capsys.readouterr().out
    assert "a level that was seen before (results 11 to 18, `r10.json` to `r17.json`)" in text
    assert "slower now than before" not in text
    shown = re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert "a level that was seen before (results 11 to 18" in shown
    assert execute(["history", result, "--fail-on", "undecided"]) == 1
    capsys.readouterr()
    assert execute(["history", result, "--json"]) == 0
    series = {each["subject"]["workload"]: each for each in json.loads(capsys.readouterr().out)["series"]}
    assert series["sort"]["seen_before"] == ["r10.json", "r17.json"]
    assert series["sort"]["is_newest_slower"] is False
    assert series["sum"]["seen_before"] == []


def test_a_history_of_zeros_says_why_nothing_can_be_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fault: eight results of zeros were "at least two results; given: none"."""
    files = [tmp_path / f"{number}.csv" for number in range(8)]
    for file in files:
        file.write_text("value\n0\n0\n")
    result = str(tmp_path / "zeros")
    assert execute(["import", "csv", *map(str, files), "--unit", "ms", "--out", result]) == 0
    capsys.readouterr()
    assert execute(["history", result]) == 6
    assert "no value of it is finite and above 0" in capsys.readouterr().err
