"""Suites whose benchmarks are those of a harness: listed in each revision, run one at a time, compared."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.git_repository import MadeRepository
from fixtures.harness_programs import COMPILED, PROGRAMS
from steelyard.cli import execute
from steelyard.errors import CapabilityError, RunError
from steelyard.run.executor.resident import located
from steelyard.studies.comparison.harness.driver import Place, Reading, Scratch
from steelyard.studies.comparison.harness.listing import driver_of

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.harness_programs import HarnessProgram

pytestmark = pytest.mark.timing

SUITE = """
revisions = ["main", "HEAD"]
minutes = 1
margin_percent = 40

[harness.speed]
kind = "pytest"
command = "{python} -m pytest -q -p steelyard.pytest_plugin benchmarks"
select = ["*test_*"]
seconds = 0.02
"""
TESTS = """
import time
from pause import SECONDS

def test_pause(steelyard): steelyard(time.sleep, SECONDS)
def test_silent(steelyard): pass
def test_plain(): raise SystemError
"""
OLD = "def test_gone(steelyard): steelyard(len, 'a')"
NEW = "def test_new(steelyard): steelyard(len, 'a')"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    made = MadeRepository(tmp_path / "source")
    made.commit(
        "quick",
        pause_dot_py="SECONDS = 0.01\n",
        steelyard_dot_toml=SUITE.format(python=shlex.quote(sys.executable)),
        benchmarks__test_pause_dot_py=TESTS + OLD,
        _dot_gitignore="result\nsteelyard-results\n",
    )
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slow", pause_dot_py="SECONDS = 0.02\n", benchmarks__test_pause_dot_py=TESTS + NEW)
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(made.folder)
    return made


@pytest.mark.long("each run of a test in two revisions is a pytest of its own")
def test_the_tests_of_a_revision_are_compared_by_what_they_report(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    # One has no value in either revision: the others are compared all the same.
    assert execute(["bench", "--out", "result", "--export", "csv", "runs.csv", "--ci"]) == 1
    text = capsys.readouterr().out
    assert "1 slower, 1 not measured" in text
    assert "reported time" in text
    assert "not compared, as main" in text
    assert "lacks `speed/benchmarks/test_pause.py::test_new`" in text
    assert "lacks `speed/benchmarks/test_pause.py::test_gone`" in text
    assert "reported no time: the test did not call the fixture `steelyard`" in text
    gate = made.folder / "steelyard-results/gate"
    assert "reported time" in (gate / "comment.md").read_text()
    assert json.loads((gate / "verdicts.json").read_bytes())["terms"]["metric"] == "reported"
    head, *rows = (made.folder / "runs.csv").read_text().splitlines()
    assert head.split(",")[-2:] == ["reported_ns", "flags"]
    assert all(float(row.split(",")[-2]) > 9e6 for row in rows)
    # The checkouts stay as they were built, so that they are not built again.
    assert not list((made.folder.parent / "builds").glob("*/**/__pycache__"))
    assert execute(["verify", "result"]) == 0
    assert execute(["report", "result"]) == 0
    assert "reported time" in (made.folder / "result/report.html").read_text()
    assert execute(["compare-results", "result", "result"]) == 0


def test_a_pattern_that_names_none_lists_what_there_is(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", "speed/*sort"]) == 2
    assert "it has `speed/benchmarks/test_pause.py::test_pause`" in capsys.readouterr().err
    assert execute(["bench", "speed/*test_new"]) == 2
    assert "no benchmark is both in main" in capsys.readouterr().err


def test_tests_that_import_the_users_own_files_are_refused(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    made.commit("path", conftest_dot_py=f"import sys\nsys.path.insert(0, {str(made.folder)!r})\n")
    assert execute(["bench", "--rev", "HEAD", "--rev", "."]) in (2, 4)
    assert "which is not a file of the revision" in capsys.readouterr().err


def test_a_suite_that_cannot_be_collected_says_why(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    made.commit("broken", benchmarks__test_pause_dot_py="import no_such_module")
    assert execute(["bench", "--rev", "HEAD~1", "--rev", "HEAD"]) == 4
    text = capsys.readouterr().err
    assert "cannot list the benchmarks of `speed` in HEAD" in text


NEEDS = {"go": pytest.mark.needs_go, "jmh": pytest.mark.needs_replication}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(each, marks=NEEDS.get(each.kind, pytest.mark.needs_harnesses), id=each.kind)
        for each in PROGRAMS
    ],
)
def test_each_benchmark_of_a_real_suite_is_run_alone(
    program: HarnessProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(COMPILED))
    folder = tmp_path / "suite"
    folder.mkdir()
    program.write(folder)
    scratch = Scratch(tmp_path / "scratch")
    driver = driver_of(program.kind)
    before = set(folder.rglob("*"))
    listed = {each.name: each for each in driver.listed(Place(program.command, folder, scratch, 0.02))}
    names = [name for name in listed if name in program.names or program.kind != "jmh"]
    assert names == list(program.names)
    for name in names:
        scratch.clear()
        with scratch.output.open("wb") as output:
            done = subprocess.run(
                [located(listed[name].words[0], folder), *listed[name].words[1:]],
                cwd=listed[name].folder or folder,
                env={**os.environ, **listed[name].environment},
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert done.returncode == 0, done.stderr[-2000:]
        # A second benchmark in the same process would be refused.
        assert 0 < Reading(scratch, driver.read, {}).value_ns() < 1e9
    # A checkout that something is written into would be built again.
    assert set(folder.rglob("*")) == before


def test_an_absent_plug_in_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "test_b.py").write_text("def test_sort(benchmark): benchmark(sorted, [])\n")
    place = Place((sys.executable, "-m", "pytest", "."), tmp_path, Scratch(tmp_path / "scratch"), 0.1)
    with pytest.raises(CapabilityError, match="no plug-in `pytest-benchmark`") as caught:
        driver_of("pytest-benchmark").listed(place)
    assert caught.value.hint == "pip install pytest-benchmark, where that pytest is"


def test_a_program_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    place = Place(("./bench",), tmp_path, Scratch(tmp_path / "scratch"), 0.1)
    with pytest.raises(RunError, match=r"cannot run `./bench`: No such file"):
        driver_of("google-benchmark").listed(place)
