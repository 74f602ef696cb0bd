from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.model.finding import Estimate, Finding, FindingSet

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, published: str, verdict: str, study: str = "stability") -> str:
    folder.mkdir()
    subject = {
        "statistic": "mean",
        "metric": "cpu",
        "workload": "exp/exp_float",
        "input": "65536",
        "setup": "single,1",
        "family": "isolation",
        "first": "bare",
        "second": "docker",
    }
    facts: dict[str, str | int | float | bool | None] = {
        "class_percentile": published,
        "class_basic": published,
        "disagreement": None,
    }
    ratio = {"ratio": Estimate(1.0, "ratio", "welch")}
    finding = Finding("mean_comparison/x", "mean_comparison", subject, verdict, ratio, facts)
    FindingSet(study, "", 1, {}, (finding,)).write(folder / "findings.json")
    return str(folder)


def test_a_flipped_class_is_listed_and_leaves_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write(tmp_path / "a", "higher", "faster")
    second = write(tmp_path / "b", "lesser", "inconclusive")
    assert execute(["compare-results", first, second]) == 1
    text = capsys.readouterr().out
    assert "Published classes that flipped: 2" in text
    assert (
        "mean, cpu, exp/exp_float, 65536, single,1, bare vs docker: higher -> lesser (percentile interval)"
        in text
    )
    assert "Verdicts that changed otherwise: 1" in text
    assert "faster -> inconclusive" in text


def test_a_reversed_verdict_alone_leaves_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "a", "overlap", "slower")
    second = write(tmp_path / "b", "overlap", "faster")
    assert execute(["compare-results", first, second, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "steelyard/differences/1"
    assert found["flipped_classes"] == []
    assert [(one["before"], one["after"], one["is_reversed"]) for one in found["changed_verdicts"]] == [
        ("slower", "faster", True)
    ]


@pytest.mark.parametrize("after", ["same", "overlap", "NA", "higher"])
def test_a_class_that_only_becomes_undecided_leaves_with_zero(tmp_path: Path, after: str) -> None:
    first = write(tmp_path / "a", "higher", "inconclusive")
    assert execute(["compare-results", first, write(tmp_path / "b", after, "inconclusive")]) == 0


def test_results_of_two_studies_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "a", "same", "NA")
    assert execute(["compare-results", first, write(tmp_path / "b", "same", "NA", "scaling")]) == 2
    assert "is of study `stability`" in capsys.readouterr().err


def test_a_folder_without_findings_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["compare-results", str(tmp_path / "none"), str(tmp_path / "none")]) == 5
    assert "hint: steelyard analyse" in capsys.readouterr().err
