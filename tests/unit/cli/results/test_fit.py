from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from steelyard.cli import execute
from steelyard.record.tables import read_measurements


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give sizes and times with one jump at 65000."""
    generator = np.random.default_rng(1)
    size = np.round(10 ** generator.uniform(1, 7, 600))
    time = np.where(size < 65000, 5 + 1e-3 * size, 400 + 8e-3 * size) * generator.lognormal(0, 0.05, 600)
    path = tmp_path / "pingpong.csv"
    rows = "".join(f"{x:g},{y:.6g}\n" for x, y in zip(size, time, strict=True))
    path.write_text("size,time\n" + rows)
    return path


def test_searched_pieces_are_printed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fit", str(file), "--x", "size", "--y", "time", "--search"]) == 0
    text = capsys.readouterr().out
    assert "2 pieces" in text
    assert "no other partition costs less" in text
    assert "95% interval" in text
    assert text.count("Coefficients:") == 2
    assert "Residual standard error" in text
    assert "lag-1 autocorrelation" in text
    assert "both the search and left-out data say 1" in text


def test_given_pieces_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fit", str(file), "--x", "size", "--y", "time", "--breaks", "65000", "--log", "--json"]
    assert execute(words) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == "steelyard/fit/1"
    assert [piece["formula"] for piece in content["pieces"]] == ["log10(time) ~ log10(size)"] * 2
    assert sum(len(piece["residuals"]) for piece in content["pieces"]) == 600
    assert {rival["kind"] for rival in content["pieces"][0]["rivals"]} == {"constant", "line", "power"}


def test_a_share_of_times_that_are_not_above_0_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "size,time\n" + "".join(f"{size},{size % 3}\n" for size in range(1, 20)), encoding="utf-8"
    )
    words = ["fit", str(path), "--x", "size", "--y", "time", "--search"]
    assert execute(words) == 0
    assert execute([*words, "--floor", "10%"]) == 2
    assert "cannot take `--floor 10%`, a share of the time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["--search", "--breaks", "5"], "exclude each other", 2),
        (["--breaks", "a"], "must be a number", 2),
        (["--where", "x"], "`--where x`: expected COLUMN=TEXT", 2),
        (["--search", "--floor", "many"], "`--floor many`: allowed: 0%", 2),
        (["--breaks", "1,2"], "no point lies between", 6),
        (["--floor", "5%"], "is for a search, and nothing is searched", 2),
        (["--breaks", "65000", "--floor", "10%"], "is for a search", 2),
    ],
)
def test_errors_say_what_to_do(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str, code: int
) -> None:
    assert execute(["fit", str(file), "--x", "size", "--y", "time", *words]) == code
    text = capsys.readouterr().err
    assert message in text
    assert "hint: " in text
    assert "Traceback" not in text


def test_noise_and_quantiles_of_each_piece(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fit", str(file), "--x", "size", "--y", "time", "--breaks", "65000"]
    assert execute(words) == 0
    text = capsys.readouterr().out
    assert text.count("Noise (") == 2
    assert "dBIC" in text
    assert execute([*words, "--json"]) == 0
    for piece in json.loads(capsys.readouterr().out)["pieces"]:
        assert {law["law"] for law in piece["noise"]["laws"]} == {"normal", "lognormal", "gamma", "weibull"}
        assert piece["noise"]["count"] == piece["points"]
        normal, noise = piece["quantile_plots"]["normal"], piece["quantile_plots"]["noise"]
        assert normal["values"] == sorted(piece["residuals"])
        assert noise["law"] == (piece["noise"]["chosen"] or piece["noise"]["nearest"])
        assert len(noise["expected"]) == len(noise["values"]) == piece["points"]


def test_numbers_of_breaks_are_compared_in_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fit", str(file), "--x", "size", "--y", "time", "--search", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["break_counts"]
    assert counts["chosen"] == counts["out_of_sample"] == 1
    assert counts["points"] == 600
    errors = [row["error"] for row in counts["rows"]]
    assert [row["breaks"] for row in counts["rows"]] == list(range(5))
    assert errors[0] > errors[1]


@pytest.fixture
def spiky(tmp_path: Path) -> Path:
    """Give a line of which 3 % of the points take 10 to 1000 times as long."""
    generator = np.random.default_rng(1)
    size = np.round(10 ** generator.uniform(1, 4.5, 800))
    time = (245 + 0.267 * size) * generator.lognormal(0, 0.05, 800)
    is_far = generator.random(800) < 0.03
    time[is_far] *= 10 + 20 * generator.pareto(1.2, int(is_far.sum()))
    path = tmp_path / "spiky.csv"
    rows = "".join(f"{x:g},{y:.6g}\n" for x, y in zip(size, time, strict=True))
    path.write_text("size,time\n" + rows)
    return path


@pytest.mark.parametrize("words", [["--search"], []])
def test_the_curve_that_is_believed_is_printed_before_least_squares(
    spiky: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert execute(["fit", str(spiky), "--x", "size", "--y", "time", *words]) == 0
    text = capsys.readouterr().out
    curve = re.search(r"^Curve: time = (\S+) \+ (\S+) size \(robust", text, re.MULTILINE)
    assert curve is not None
    assert float(curve[1]) == pytest.approx(245, rel=0.03)
    assert float(curve[2]) == pytest.approx(0.267, rel=0.03)
    assert text.index("Curve: ") < text.index("Coefficients:")
    why = re.search(r"^Least squares lies up to .* above it .*points of 800 .* pull", text, re.MULTILINE)
    assert why is not None


@pytest.mark.parametrize("words", [["--search"], [], ["--breaks", "1000"]])
def test_the_robust_curve_in_json_is_not_least_squares(
    spiky: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert execute(["fit", str(spiky), "--x", "size", "--y", "time", "--json", *words]) == 0
    for piece in json.loads(capsys.readouterr().out)["pieces"]:
        robust, plain = piece["robust"], [row["estimate"] for row in piece["coefficients"]]
        assert robust["base"] == pytest.approx(245, rel=0.05)
        assert robust["slope"] == pytest.approx(0.267, rel=0.2)
        assert abs(plain[1] / 0.267 - 1) > 0.5
        assert abs(robust["least_squares_difference"]) > 0.5
        assert "beyond three scales" in robust["reason"]


def test_a_power_law_has_its_robust_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(2)
    size = np.round(10 ** generator.uniform(1, 5, 400))
    time = 3 * size**0.7 * generator.lognormal(0, 0.03, 400)
    time[generator.random(400) < 0.1] *= 30
    rows = "".join(f"{x:g},{y:.6g}\n" for x, y in zip(size, time, strict=True))
    (tmp_path / "p.csv").write_text("x,y\n" + rows)
    assert execute(["fit", str(tmp_path / "p.csv"), "--x", "x", "--y", "y", "--log", "--json"]) == 0
    (piece,) = json.loads(capsys.readouterr().out)["pieces"]
    assert piece["robust"]["slope"] == pytest.approx(0.7, abs=0.01)
    assert piece["robust"]["base"] == pytest.approx(3, rel=0.05)


def test_where_both_curves_agree_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{x},{5 + 2 * x + x % 3 * 0.01}\n" for x in range(1, 60))
    (tmp_path / "l.csv").write_text("x,y\n" + rows)
    assert execute(["fit", str(tmp_path / "l.csv"), "--x", "x", "--y", "y"]) == 0
    text = capsys.readouterr().out
    assert "Curve: y = 5.0" in text
    assert "Least squares lies" not in text
    (tmp_path / "few.csv").write_text("x,y\n1,2\n2,4\n3,7\n4,7\n5,9\n6,9\n")
    words = ["fit", str(tmp_path / "few.csv"), "--x", "x", "--y", "y", "--breaks", "4", "--json"]
    assert execute(words) == 0
    assert [piece["robust"] for piece in json.loads(capsys.readouterr().out)["pieces"]] == [None, None]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--y", "size"], "cannot fit column `size` to itself"),
        (["--y", "time", "--breaks", "nan"], "`--breaks nan`: every breakpoint must be a number"),
    ],
)
def test_a_fit_of_a_column_to_itself_and_breaks_that_are_nowhere_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], part: str
) -> None:
    (tmp_path / "a.csv").write_text("size,time\n1,2\n2,3\n3,5\n", encoding="utf-8")
    assert execute(["fit", str(tmp_path / "a.csv"), "--x", "size", *words]) == 2
    assert part in capsys.readouterr().err


def test_a_hyphen_behind_an_option_is_its_value(tmp_path: Path) -> None:
    """The fault: it was the file `/dev/stdin`, though the hint of the error names `--missing -`."""
    table = tmp_path / "table.csv"
    table.write_text("time\n1\n-\n2\n")
    words = ["import", "csv", str(table), "--column", "value=time", "--unit", "us", "--missing", "-"]
    assert execute([*words, "--out", str(tmp_path / "imported")]) == 0
    runs = pl.DataFrame(read_measurements(tmp_path / "imported"))
    assert runs["value"].to_list() == [1000.0, 2000.0]


def test_a_hyphen_is_standard_input(file: Path, tmp_path: Path) -> None:
    """The fault: `fit -` and `import csv -` took `-` for an unknown option."""
    program = Path(sys.executable).with_name("steelyard")
    imported = tmp_path / "imported"
    for words in (
        ("fit", "-", "--x", "size", "--y", "time"),
        ("import", "csv", "-", "--column", "value=time", "--unit", "us", "--out", imported),
    ):
        with file.open("rb") as stream:
            ended = subprocess.run([program, *words], stdin=stream, capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert (imported / "runs.parquet").exists()
