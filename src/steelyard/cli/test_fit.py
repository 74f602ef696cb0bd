from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["--search", "--breaks", "5"], "exclude each other", 2),
        (["--breaks", "a"], "must be a number", 2),
        (["--where", "x"], "names no column", 2),
        (["--search", "--floor", "many"], "is no share", 2),
        (["--breaks", "1,2"], "no point lies between", 6),
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
