"""``steelyard simulate colocation``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.errors import DataError, UsageError
from steelyard.studies.colocation.trial import read_trial

if TYPE_CHECKING:
    from pathlib import Path


def test_the_verb_prints_and_writes_what_it_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "simulate",
        "colocation",
        "--duration",
        "4s",
        "--policy",
        "be,idle",
        "--no-exit",
        "--json",
        "--out",
    ]
    assert execute([*words, str(tmp_path)]) == 0
    outcomes = json.loads(capsys.readouterr().out)["outcomes"]
    assert [each["policy"] for each in outcomes] == ["be-no-exit", "idle"]
    assert read_trial(tmp_path / "traces" / "000000.01").scheduler["switches"]["exit"] is False
    assert execute(["simulate", "colocation", "--duration", "4s", "--policy", "be,idle"]) == 0
    shown = capsys.readouterr().out
    assert "simulated: 4 CPUs at load 0.85" in shown
    assert "idle: the service's mean latency grows by a factor of" in shown


def test_what_is_written_is_a_result_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "colocation", "--duration", "4s", "--policy", "none,be", "--load", "0.7,0.85"]
    for name, seed in (("first", "1"), ("second", "2")):
        long = ["--arrivals", "poisson", "--long-share", "2%", "--long-factor", "10", "--seed", seed]
        assert execute([*words, *long, "--out", str(tmp_path / name)]) == 0
        assert execute(["analyse", str(tmp_path / name)]) == 0
        assert execute(["verify", str(tmp_path / name)]) == 0
    assert execute(["report", str(tmp_path / "first"), "--format", "text"]) == 0
    assert "be (70 %, simulated)" in " ".join(capsys.readouterr().out.split())
    assert execute(["compare-results", str(tmp_path / "first"), str(tmp_path / "second")]) == 0
    compared = capsys.readouterr().out
    assert "only in one: 0 and 0" in compared
    share = np.mean(read_trial(tmp_path / "first" / "traces" / "000003.01").requests["kind"] == 1)
    assert 0.005 < share < 0.04
    with pytest.raises(DataError, match="contains another result"):
        execute_words(f"--duration 4s --seed 3 --out {tmp_path / 'first'}")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--policy cfs", "cannot simulate a policy `cfs`"),
        ("--cores 0", "allowed: 1 to 4096"),
        ("--load many", "not a number"),
        ("--load 0", "above 0"),
        ("--load 0.855 --out never", "not a whole percentage"),
        ("--long-share some", "not a share"),
        ("--long-share 100%", "0 to less than 1"),
        ("--long-share 2% --long-factor 0", "1 to 10000"),
        ("--policy idle --no-exit", "is not simulated"),
        ("--arrivals daily", "`uniform`, `poisson`"),
        ("--intake none", "`workers`, `reader`"),
        ("--machine-cores 2", "allowed: `--cores` to"),
        ("--policy idle-no-exit", "cannot simulate a policy `idle-no-exit`"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_what_can(words: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        execute_words(words)


def execute_words(words: str) -> None:
    from steelyard.cli import _execute_verb  # noqa: PLC0415 - the error itself is looked at

    _execute_verb("simulate colocation", words.split())


def test_what_is_not_a_number_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "colocation", "--work", "100s", "--duration", "4s", "--policy", "fifo"]
    assert execute(words) == 0
    shown = capsys.readouterr().out
    assert "nan" not in shown
    assert "fifo: no request was answered in one of the two stretches" in shown
    assert execute([*words, "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["outcomes"]
    assert outcome["mean_ratio"] is outcome["before"]["p99_ms"] is None
    assert execute([*words[:-1], "none"]) == 0
    assert "none: no request was answered in one of the two stretches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("--duration 4752s", "`--duration 4752s`; allowed: 100 ms to 1 h"),
        ("--threads 0", "`--threads 0`; allowed: 1 to 65536"),
        ("--machine-cores 0", "`--machine-cores 0`; allowed: `--cores` to 4096"),
        ("--load 11", "`--load 11`; allowed: above 0"),
    ],
)
def test_an_option_out_of_range_is_shown_as_it_was_given(words: str, allowed: str) -> None:
    with pytest.raises(UsageError, match="cannot simulate") as caught:
        execute_words(words)
    assert allowed in str(caught.value)


def test_random_arrivals_are_compared_with_the_same_without_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "colocation", "--load", "0.95", "--arrivals", "poisson", "--duration", "20s"]
    # The first half of these arrivals is so much denser that jobs seem to speed the service up.
    words += ["--seed", "4", "--policy"]
    assert execute([*words, "weights"]) == 0
    shown = capsys.readouterr().out
    assert "with `none` among the policies, they are compared" in shown
    assert execute([*words, "none,weights"]) == 0
    shown = capsys.readouterr().out
    assert "none: without any jobs the mean latency changes by a factor of 0.62" in shown
    assert "weights: the service's mean latency grows by a factor of 1." in shown
    assert "with `none` among" not in shown
