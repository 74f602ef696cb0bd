"""The conductor: what it writes whatever becomes of the experiment."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from steelyard.errors import CapabilityError, DataError, RunError
from steelyard.studies.replication.experiments import conduct as conductor
from steelyard.studies.replication.experiments.__main__ import main
from steelyard.studies.replication.experiments.conduct import BenchmarkFailed, Conducted, conduct
from steelyard.studies.replication.experiments.files import CALLS, FORMAT, write_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ASKED: dict[str, Any] = {
    "format": FORMAT,
    "experiment": "e9",
    "configuration": {"name": "tested", "parameters": {"calls": 3}},
    "setting": {"name": "native", "roles": {"app": {"device": "D1", "storage": None, "container": None}}},
    "devices": {"D1": {"kind": "local", "storages": {"H2": "memory"}}},
    "block": 1,
    "seed": 7,
}


@pytest.fixture
def lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Conducted], None]], Path]:
    """Make an experiment of a function, and give the folder in which it is asked for."""

    def make(experiment: Callable[[Conducted], None]) -> Path:
        module = ModuleType("tested")
        module.conduct = experiment  # type: ignore[attr-defined]
        monkeypatch.setitem(conductor.MODULES, "e9", "tested")
        monkeypatch.setattr(conductor, "find_spec", lambda _: True)
        monkeypatch.setattr(conductor, "import_module", lambda _: module)
        (tmp_path / "experiment.json").write_text(json.dumps(ASKED), encoding="utf-8")
        return tmp_path

    return make


def _header(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "header.json").read_text(encoding="utf-8"))
    return found


def test_a_run_leaves_what_can_be_read(lay: Callable[..., Path]) -> None:
    def experiment(run: Conducted) -> None:
        with run.place("app") as place:
            run.measure_starts()
            program = place.start(("sh", "-c", "echo said; echo 1 > x"), log=run.log("app"))
            assert program.wait(20) == 0
            place.get("x", run.folder / "x")
        write_table(run.folder, "calls", {"start_ns": [1], "duration_ns": [run.parameters["calls"]]})
        run.says("software", {"java": "17"})
        run.says("software", {"jmh": "1.37"})
        run.missing("no switches: not watched")
        run.missing("no switches: not watched")

    folder = lay(experiment)
    assert conduct(folder) == "completed"
    header = _header(folder)
    assert (header["is_complete"], header["outcome"]) == (True, "completed")
    assert header["start_ns"] < header["measure_start_ns"] < header["end_ns"]
    assert header["software"] == {"java": "17", "jmh": "1.37"}
    assert header["missing"] == ["no switches: not watched"]
    assert header["devices"]["D1"]["host"] == os.uname().nodename
    assert header["roles"]["app"]["container"] is None
    assert header["roles"]["app"]["storage_kind"] == "tmpfs"
    calls = pq.read_table(folder / "calls.parquet")
    assert calls.schema.equals(CALLS)
    assert calls.to_pydict() == {"start_ns": [1], "duration_ns": [3]}
    assert (folder / "log.app.txt").read_text(encoding="utf-8") == "said\n"


def test_a_benchmark_that_failed_is_a_result(lay: Callable[..., Path]) -> None:
    def experiment(_run: Conducted) -> None:
        message = "throughput 3/s is below 10/s"
        raise BenchmarkFailed(message)

    folder = lay(experiment)
    assert main(["", str(folder)]) == 0
    header = _header(folder)
    assert (header["is_complete"], header["outcome"]) == (True, "failed")
    assert header["reason"] == "throughput 3/s is below 10/s"


def test_a_run_that_broke_is_none(lay: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def experiment(run: Conducted) -> None:
        run.artefact("nothing/of.this.name")

    folder = lay(experiment)
    assert main(["", str(folder)]) == 1
    said = capsys.readouterr().err
    assert "which was not built" in said
    assert said.endswith("\n\nhint: make deps-replication\n")
    header = _header(folder)
    assert (header["is_complete"], header["outcome"]) == (False, "broken")
    assert "which was not built" in header["reason"]


def test_a_bug_is_written_down_too(lay: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def experiment(_run: Conducted) -> None:
        message = "none"
        raise KeyError(message)

    folder = lay(experiment)
    assert main(["", str(folder)]) == 1
    assert "a bug in Steelyard" in capsys.readouterr().err
    assert _header(folder)["reason"] == "KeyError: 'none'"


def test_an_interrupted_run_removes_its_places(lay: Callable[..., Path]) -> None:
    seen: list[str] = []

    def experiment(run: Conducted) -> None:
        with run.place("app") as place:
            seen.append(place.path("."))
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("the signal did not arrive")

    folder = lay(experiment)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RunError, match="interrupted by SIGTERM"):
        conduct(folder)
    assert signal.getsignal(signal.SIGTERM) == before
    assert _header(folder)["outcome"] == "broken"
    assert not os.path.exists(seen[0])  # noqa: PTH110 - as the place gave it


def test_an_experiment_that_is_not_installed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps({**ASKED, "experiment": "e8"}), encoding="utf-8")
    with pytest.raises(DataError, match="unknown experiment `e8`; known: e1, e2"):
        conduct(tmp_path)


def test_a_part_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conductor.MODULES, "e9", "no_such_part")
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(ASKED), encoding="utf-8")
    with pytest.raises(CapabilityError, match="no part that conducts experiment `e9`"):
        conduct(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "experiment.json`: No such file"),
        ("{", "experiment.json`: Expecting"),
        ("[]", "has the format `None`; known: `steelyard/experiment/1`"),
        (
            '{"format": "steelyard/experiment/1", "setting": {}}',
            "lacks `experiment`, `configuration`, `devices`",
        ),
    ],
)
def test_what_was_asked_must_be_readable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "experiment.json").write_text(text, encoding="utf-8")
    assert main(["", str(tmp_path)]) == 1
    assert said in capsys.readouterr().err


def test_the_command_line_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([sys.executable]) == 1
    assert "python -m steelyard.studies.replication.experiments FOLDER" in capsys.readouterr().err
