"""`srun` is a program that says and does what Slurm's was seen to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import RunError
from steelyard.model import Cell, RunOutcome
from steelyard.model.run_outcome import CapturedStream, RunStatus
from steelyard.studies.communication import lost_nodes

if TYPE_CHECKING:
    from pathlib import Path

PAIR = Cell(0, {"link": "n1:n2"}, None, missing="not run here")


@pytest.fixture
def step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file with the number of steps that fail before one begins."""
    left, program = tmp_path / "left", tmp_path / "bin" / "srun"
    left.write_text("0\n")
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nleft=$(cat {left})\n[ "$left" -gt 0 ] || exec true\necho $((left - 1)) > {left}\n'
        'echo "srun: error: Task launch for StepId=7.3 failed on node n2: no answer" >&2; exit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.setattr(lost_nodes, "LOOK_S", 0.0)
    return left


def failed(said: str = "") -> list[RunOutcome]:
    stream = CapturedStream(said, len(said), truncated=False)
    return [RunOutcome(id="r", iteration=1, status=RunStatus.NONZERO_EXIT, standard_error=stream)]


@pytest.mark.usefixtures("step_fails")
@pytest.mark.parametrize(
    "said",
    [
        "",
        "steelyard-comm: error: no such size",
        "srun: error: n2: task 0: Exited with exit code 1",
        "srun: error: n2: tasks 0-1: Killed",
        "srun: error: n2: task 0: Segmentation fault (core dumped)",
    ],
)
def test_what_a_program_did_is_its_own(said: str) -> None:
    assert lost_nodes.lost_node(PAIR, failed(said)) == ""


@pytest.mark.usefixtures("step_fails")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "srun: error: Unable to create step for job 7: Unable to contact slurm controller",
            "Unable to create step for job 7: Unable to contact slurm controller",
        ),
        ("srun: error: Node failure on n2\nsrun: error: n2: task 0: Killed", "Node failure on n2"),
    ],
)
def test_what_slurm_says_of_itself_is_the_reason_though_it_is_over(said: str, reason: str) -> None:
    assert lost_nodes.lost_node(PAIR, failed(said)) == f"node n2 was lost: {reason}"


def test_a_node_that_is_away_is_waited_for(step_fails: Path) -> None:
    step_fails.write_text("3\n")
    reason = "node n2 was lost: Task launch for StepId=7.3 failed on node n2: no answer"
    assert lost_nodes.lost_node(PAIR, failed("no route to host")) == reason
    assert step_fails.read_text() == "0\n"


def test_a_node_that_stays_away_ends_the_part(step_fails: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step_fails.write_text("1000000\n")
    monkeypatch.setattr(lost_nodes, "PATIENCE_S", 0.05)
    with pytest.raises(RunError, match="cannot start a step on `n2` for 0") as caught:
        lost_nodes.lost_node(PAIR, failed())
    assert "--resume" in (caught.value.hint or "")


@pytest.mark.parametrize(("link", "here"), [("n1:n1", "n1"), ("none", ""), ("n1:n2", ""), ("n1:n2", "n3")])
def test_nobody_is_asked_where_no_step_was_needed(
    link: str, here: str, step_fails: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_fails.write_text("1000000\n")
    monkeypatch.setenv("SLURMD_NODENAME", here)
    cell = Cell(0, {"link": link}, None, missing="not run here")
    assert lost_nodes.lost_node(cell, failed("srun: error: Node failure on n2")) == ""
