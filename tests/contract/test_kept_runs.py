"""Real results of every study, as this version writes them, are opened, verified, reported and compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import steelyard
from fixtures.kept_run import LARGEST_BYTES, STUDIES, STUDY_FILES, kept_run
from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.share.anonymous import private_names
from steelyard.share.package.archive import Part
from steelyard.study import STUDIES as INSTALLED

if TYPE_CHECKING:
    import polars as pl

PERSONAL: Final = re.compile(
    rb"/(?:home|Users)/\w+|(?<!\w)/(?!opt/)\w[\w/]*/src/steelyard/|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
)
"""Home folders, a checkout elsewhere than where the packages were made, addresses."""
NOBODYS: Final = re.compile(rb"127\.\d+\.\d+\.\d+|0\.0\.0\.0")


@pytest.fixture(scope="module", params=STUDIES)
def study(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def package(study: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(study)
    shutil.unpack_archive(kept_run(study), folder)
    return folder


def test_there_is_one_of_every_study_that_can_be_executed() -> None:
    executed = {name for name, each in INSTALLED.usable().items() if each.can_be_run}
    assert {*STUDIES} == {*executed, "compare"}
    assert {path.stem for path in STUDY_FILES.iterdir()} == executed


def test_it_is_small_and_names_nobody(study: str, package: Path) -> None:
    assert kept_run(study).stat().st_size <= LARGEST_BYTES
    for path in filter(lambda each: each.is_file(), (package / "result").rglob("*")):
        found = private_names._matches(Part(path.name, path, "", 0), PERSONAL)
        assert not {each for each in found if not NOBODYS.fullmatch(each)}, path


def test_it_is_of_the_study_and_its_runs_are_complete(study: str, package: Path) -> None:
    result = package / "result"
    plan, findings = read_plan(result / "plan.json"), read_findings(result / "findings.json")
    assert plan.study == findings.study == study
    assert findings.plan_id == plan.id
    assert findings.findings


@pytest.mark.slow
def test_it_is_the_same_whatever_order_sets_have(study: str, package: Path, tmp_path: Path) -> None:
    """The fault: panels of a figure in the order of a set: every third `verify` found another page."""
    result = shutil.copytree(package / "result", tmp_path / "result")
    for verb, seed in (("report", "0"), ("verify", "1"), ("verify", "2"), ("verify", "3")):
        words = [Path(sys.executable).with_name("steelyard"), verb, result]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ended = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        assert ended.returncode == 0, (study, verb, seed, ended.stdout, ended.stderr)


def test_the_folder_is_analysed_reported_and_verified_anew(
    study: str, package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shutil.copytree(package / "result", tmp_path / "result")
    before = read_findings(result / "findings.json")
    for name in ("findings.json", "report.html"):
        (result / name).unlink()
    shutil.rmtree(result / "tables")
    assert execute(["analyse", str(result)]) == 0
    assert read_findings(result / "findings.json").findings == before.findings, study
    assert execute(["report", str(result)]) == 0
    assert execute(["report", str(result), "--format", "markdown"]) == 0
    capsys.readouterr()
    assert execute(["verify", str(result)]) == 0
    assert "confirmed" in capsys.readouterr().out


def test_it_agrees_with_itself(study: str, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = str(package / "result")
    assert execute(["compare-results", result, result, "--json"]) == 0, study
    assert json.loads(capsys.readouterr().out)


def test_what_is_anonymous_already_is_packed_anonymously_again(
    study: str, package: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.zip"
    assert execute(["pack", str(package / "result"), "-o", str(again), "--anonymous"]) == 0, study


def test_it_is_opened_as_data_frames(study: str, package: Path) -> None:
    of_folder, of_package = steelyard.open(package / "result"), steelyard.open(str(kept_run(study)))
    for name in ("runs", "measurements", "findings"):
        frame: pl.DataFrame = getattr(of_package, name)
        assert frame.equals(getattr(of_folder, name))
        assert frame.height > 0
        assert frame.to_arrow().num_rows == frame.height
    opened = of_package
    assert opened.study == opened.provenance.study == study
    assert {*opened.plan.factors} <= {*opened.runs.columns}
    assert set(opened.measurements["run_id"]) <= set(opened.runs["run_id"])
    assert opened.finding_set is not None
    assert opened.findings["id"].unique(maintain_order=True).to_list() == [
        each.id for each in opened.finding_set.findings
    ]
    assert opened.terms["seed"] == opened.plan.seed
    assert study in repr(opened)


def test_a_result_that_was_not_analysed_is_opened_too(package: Path, tmp_path: Path) -> None:
    result = shutil.copytree(package / "result", tmp_path / "result")
    (result / "findings.json").unlink()
    opened = steelyard.open(result)
    assert opened.finding_set is None
    assert opened.findings.is_empty()
    assert {"claim", "verdict", "estimate", "value"} <= {*opened.findings.columns}
    assert "not analysed" in repr(opened)


def test_what_is_no_result_or_damaged_is_named(package: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        steelyard.open(tmp_path / "absent")
    with pytest.raises(DataError, match=re.escape(str(tmp_path))):
        steelyard.open(tmp_path)
    damaged = shutil.copytree(package, tmp_path / "package")
    runs = damaged / "result" / "runs.parquet"
    runs.write_bytes(runs.read_bytes()[:-1])
    with pytest.raises(DataError, match="is not the package that was packed"):
        steelyard.open(damaged)
    with pytest.raises(DataError, match=r"runs\.parquet"):
        steelyard.open(damaged / "result")
