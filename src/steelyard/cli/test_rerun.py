from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.model.cell import Cell, Execution
from steelyard.model.plan import Plan, read_plan
from steelyard.share.rerun import newly_missing, said_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A packed comparison of two commands, one of which leaves a mark, and the mark."""
    folder = tmp_path_factory.mktemp("result")
    mark = folder / "mark"
    command = f"touch {shlex.quote(str(mark))}"
    words = ["compare", "--out", str(folder / "r"), "--runs-min", "8", "--runs-max", "8", "--budget", "2s"]
    assert execute([*words, "--report", command, "true"]) in {0, 1}
    assert execute(["pack", str(folder / "r"), "-o", str(folder / "r.zip")]) == 0
    return folder / "r.zip", mark


def test_nothing_is_executed_unless_somebody_agrees(
    package: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, mark = package
    mark.unlink(missing_ok=True)
    assert execute(["rerun", str(archive), "--out", str(tmp_path / "again")]) == 2
    said = capsys.readouterr().err
    assert f"touch {mark}" in said
    assert "rights: " in said
    assert "nothing was executed" in said
    assert not mark.exists()
    assert not (tmp_path / "again").exists()


def test_a_package_is_repeated_and_laid_beside_its_result(
    package: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, mark = package
    mark.unlink(missing_ok=True)
    words = ["rerun", str(archive), "--out", str(tmp_path / "again"), "--yes", "--margin", "99%", "--json"]
    assert execute(words) in {0, 1}
    assert mark.exists()
    captured = capsys.readouterr()
    assert f"touch {mark}" in captured.err
    found = json.loads(captured.out)
    assert len(found["cells"]) == 2
    assert all(cell["ratio"]["repetitions"] == [8, 8] for cell in found["cells"])
    assert read_plan(tmp_path / "again" / "plan.json").seed == 1
    assert execute(["verify", str(tmp_path / "again")]) == 0


def test_an_altered_package_is_not_executed(
    package: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, mark = package
    mark.unlink(missing_ok=True)
    content = bytearray(archive.read_bytes())
    content[content.index(b"result/plan.json") + 200] ^= 1
    altered = tmp_path / "altered.zip"
    altered.write_bytes(content)
    assert execute(["rerun", str(altered), "--out", str(tmp_path / "again"), "--yes"]) == 5
    assert not mark.exists()
    assert "Traceback" not in capsys.readouterr().err


def plan_of(*commands: tuple[str, ...], missing: str | None = None, **options: str) -> Plan:
    cells = tuple(
        Cell(number, {"cell": str(number)}, None if missing else Execution("bare", command), missing)
        for number, command in enumerate(commands)
    )
    levels = tuple(str(number) for number in range(len(commands)))
    return Plan("scaling", 1, {"cell": levels}, cells, (), 1, dict(options)).freeze()


def test_what_is_shown_cannot_hide_anything() -> None:
    hostile = plan_of(("rm", "-rf", "\x1b[2K\r/precious"), request=json.dumps({"command": "evil\x1b[1A"}))
    said = "\n".join(said_of(hostile))
    assert "\x1b" not in said
    assert "\r" not in said
    assert "/precious" in said
    assert "evil" in said


def test_the_end_of_a_long_command_is_shown() -> None:
    long = "true " * 1000 + "; rm -rf /precious"
    said = "\n".join(said_of(plan_of(("sh", "-c", long), request=json.dumps({"command": long}))))
    assert said.count("rm -rf /precious") == 2


def test_cells_that_this_machine_cannot_execute_are_named() -> None:
    theirs, ours = plan_of(("true",), ("false",)), plan_of(("true",), missing="no container here")
    assert newly_missing(theirs, ours) == [
        "0: no container here",
        "1: the plan for this machine has no such cell",
    ]
