"""``steelyard simulate colocation``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.errors import UsageError
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
    assert read_trial(tmp_path / "be-no-exit-0.85").scheduler["switches"]["exit"] is False
    assert execute(["simulate", "colocation", "--duration", "4s", "--policy", "be,idle"]) == 0
    shown = capsys.readouterr().out
    assert "simulated: 4 CPUs at load 0.85" in shown
    assert "idle: the service's mean latency grows by a factor of" in shown


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--policy cfs", "cannot simulate a policy `cfs`"),
        ("--cores 0", "allowed: 1 to 4096"),
        ("--load many", "not a number"),
        ("--load 0", "above 0"),
        ("--policy idle --no-exit", "is not simulated"),
        ("--arrivals daily", "`uniform`, `poisson`"),
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
