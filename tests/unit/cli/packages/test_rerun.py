from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import execute
from steelyard.errors import SteelyardError, UsageError
from steelyard.model.cell import Cell, Execution
from steelyard.model.plan import Plan, read_plan
from steelyard.run.hosts.device import Device
from steelyard.run.hosts.device_file import read_devices
from steelyard.share.complete_result import left_out
from steelyard.share.package.texts import devices_file, study_file
from steelyard.share.rerun import newly_missing, said_of
from steelyard.studies.repetition import _options
from steelyard.studies.rerun_places import Places, places_of


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A packed comparison of two commands, one of which leaves a mark, and the mark."""
    folder = tmp_path_factory.mktemp("result")
    mark = folder / "mark"
    command = f"touch {shlex.quote(str(mark))}"
    words = ["compare", "--out", str(folder / "r"), "--runs-min", "8", "--runs-max", "8", "--budget", "20s"]
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
    assert "nothing was run" in said
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


DEVICES: dict[str, dict[str, Any]] = {
    "here": {"kind": "local", "storages": {"H1": "~/.cache/steelyard/storage", "H2": "memory"}},
    "D1": {"kind": "played", "cpus": [0], "cpu_percent": 50, "storages": {"H1": "memory"}},
    "D3": {"kind": "ssh", "host": "eve@evil.example", "ssh_options": ["-oProxyCommand=evil"]},
}


def plan_on(path: Path, *names: str) -> Plan:
    """Give a plan of a study that was given a device file, by a path of its author."""
    devices = {name: Device.from_document(name, DEVICES[name]).document() for name in ("here", *names)}
    request = json.dumps({"devices": str(path), "blocks": 5})
    return Plan(
        "replication", 1, {}, (), (), 1, {"request": request, "devices": json.dumps(devices)}
    ).freeze()


def test_the_devices_of_a_package_are_in_it_and_not_their_path(tmp_path: Path) -> None:
    plan = plan_on(tmp_path / "secret" / "lab.toml", "D1", "D3")
    text = devices_file(plan)
    assert text is not None
    (tmp_path / "devices.toml").write_text(text)
    found = read_devices(tmp_path / "devices.toml")
    assert list(found) == ["D1", "D3"]
    assert found["D3"].ssh_options == ("-oProxyCommand=evil",)
    assert found["D1"] == Device.from_document("D1", DEVICES["D1"])
    asked = study_file(plan)
    assert asked is not None
    assert 'devices = "devices.toml"' in asked
    assert "secret" not in asked


def test_hosts_of_a_stranger_are_never_contacted_though_his_path_exists_here(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('[devices.D3]\nkind = "ssh"\nhost = "other"\n')
    with pytest.raises(UsageError) as error:
        places_of(plan_on(path, "D1", "D3"), None, None)
    assert "`eve@evil.example` (D3)" in error.value.message
    assert "--devices FILE" in str(error.value.hint)


def test_own_devices_are_shown_whole_before_anybody_agrees(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[devices.D1]\nkind = "local"\n\n[devices.D3]\nkind = "ssh"\nhost = "me@lab"\n'
        'ssh_options = ["-p", "22 22"]\nstorages = { card = "/media/card" }\n'
    )
    places = places_of(plan_on(tmp_path / "lab.toml", "D1", "D3"), mine, None)
    said = "\n".join(said_of(plan_on(tmp_path / "x", "D1"), places.said))
    assert "device D3: another host, by `ssh -p '22 22' me@lab`" in said
    assert "writes to `/media/card`" in said
    assert "evil" not in said
    assert places.laid(tmp_path / "r") == {"devices": str(mine)}


def test_parts_of_a_host_are_parts_of_this_one(tmp_path: Path) -> None:
    places = places_of(plan_on(tmp_path / "lab.toml", "D1"), None, None)
    assert places.said == ("device D1: played, CPUs (0,), CPU % 50, writes to `memory`",)
    (path,) = places.laid(tmp_path / "r").values()
    assert read_devices(Path(path)) == {"D1": Device.from_document("D1", DEVICES["D1"])}
    assert "devices.toml" in left_out(tmp_path / "r")
    assert _options(plan_on(tmp_path / "lab.toml", "D1"), places.laid(tmp_path / "r")).model_dump()[
        "devices"
    ] == str(path)


def test_places_that_a_study_does_not_have_are_named(tmp_path: Path) -> None:
    plain = plan_of(("true",), request=json.dumps({"blocks": 5}))
    assert places_of(plain, None, None) == Places()
    with pytest.raises(UsageError, match="`--devices` does not apply to the study"):
        places_of(plain, tmp_path / "mine.toml", None)
    between = plan_of(("true",), request=json.dumps({"hostfile": str(tmp_path / "hosts")}))
    (tmp_path / "hosts").write_text("evil-a\nevil-b\n")
    with pytest.raises(UsageError, match="which are not yours"):
        places_of(between, None, None)
    (tmp_path / "mine").write_text("me@one\ntwo\n")
    assert [each.partition(",")[0] for each in places_of(between, None, tmp_path / "mine").said] == [
        "host `me@one`",
        "host `two`",
    ]


@pytest.mark.parametrize("devices", ["[]", "{", '{"D1": 1}', '{"D1": {"kind": "evil"}}', '{"a b": {}}'])
def test_a_plan_with_devices_that_are_none_is_an_error_and_no_bug(devices: str) -> None:
    request = json.dumps({"devices": "x", "blocks": 5})
    plan = Plan("replication", 1, {}, (), (), 1, {"request": request, "devices": devices}).freeze()
    with pytest.raises(SteelyardError):
        places_of(plan, None, None)
