"""Places for real: a program of a role natively and in every container technology, limits, ends and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import CapabilityError, DataError, RunError
from steelyard.run.cleanup import CGROUP_ROOT
from steelyard.run.hosts.device import Device
from steelyard.run.isolation.attempt import attempt, installed
from steelyard.studies.replication.devices.container_cleanup import sweep_places
from steelyard.studies.replication.devices.engines import container_engines
from steelyard.studies.replication.devices.native import SHARED
from steelyard.studies.replication.devices.role_place import LOG_BYTES
from steelyard.studies.replication.devices.roles import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.replication.devices.interface import Place

MARKS = {
    "docker": [pytest.mark.needs_docker],
    "podman": [pytest.mark.needs_podman],
    "crun": [pytest.mark.needs_oci],
    "runc": [pytest.mark.needs_oci],
}
PLACES = [pytest.param(None, id="native")] + [
    pytest.param(name, id=name, marks=[*marks, pytest.mark.needs_root]) for name, marks in MARKS.items()
]
FEW = [place for place in PLACES if place.id in {"native", "docker", "crun"}]
CPU = max(os.sched_getaffinity(0))

# Says where it is, leaves a process in a session of its own, and waits to be asked to end.
FAMILY = """
trap 'echo asked; exit 7' TERM
echo in $(pwd); cat /sys/fs/cgroup/nothing 2>/dev/null
echo kept > result; echo stored > "$1"
setsid sleep 4242 < /dev/null > /dev/null 2>&1 &
sleep 4242 > /dev/null 2>&1 &
echo ready > ready
wait
"""
HELD = """
import json, sys, time
from pathlib import Path
from steelyard.studies.replication.devices.roles import place_of
asked = json.loads(sys.argv[1])
with place_of(asked, "app") as place:
    place.start(["sh", "-c", sys.argv[2], "sh", place.stored_path("x")], log=Path(sys.argv[3]))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            place.get("ready", Path(sys.argv[3] + ".ready"))
            break
        except Exception:
            time.sleep(0.05)
    print(place.facts()["key"], flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def private_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield
        sweep_places()


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Any]]:
    if installed("dockerd") is None or os.geteuid() != 0:
        yield {}
        return
    with container_engines(["docker"]) as found:
        yield found


def _asked(folder: Path, container: str | None, engines: dict[str, Any], device: Device) -> dict[str, Any]:
    needed = {"docker": ("docker", "dockerd"), "podman": ("podman", "runc")}
    for program in needed.get(container or "", (container,)):
        if program and installed(program) is None:
            pytest.skip(f"needs {program}")
    role = {"device": device.name, "storage": "S", "container": container}
    document = {**device.document(), "storages": {"S": str(folder / "storage")}}
    setting = {"name": "tested", "roles": {"app": role}}
    return {"setting": setting, "devices": {device.name: document}, "engines": engines}


def _until_there(place: Place, name: str, target: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            place.get(name, target)
        except RunError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return


def _processes(key: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and key.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _refuse_what_is_wrong(place: Place, folder: Path) -> None:
    with pytest.raises(RunError, match="left no file `absent`"):
        place.get("absent", folder / "absent")
    with pytest.raises(RunError, match="`a-b` is not a name of an environment variable"):
        place.start(("true",), log=folder / "log", environment={"a-b": ""})
    with pytest.raises(RunError, match="leads out of the folder"):
        place.path("../x")


def _command_lines() -> Iterator[bytes]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield entry.read_bytes()
        except OSError:
            continue


def _require_nothing_of(key: str) -> None:
    deadline = time.monotonic() + 10
    while _processes(key) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes(key) == []
    assert not (SHARED / key).exists()
    assert not [name for _, names, _ in os.walk(CGROUP_ROOT) for name in names if key in name]
    assert key not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


@pytest.mark.parametrize("container", PLACES)
def test_a_program_is_placed_and_nothing_is_left(
    tmp_path: Path, engines: dict[str, Any], container: str | None
) -> None:
    asked = _asked(tmp_path, container, engines, Device("D1"))
    log = tmp_path / "log.app.txt"
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "text").write_text("given\n", encoding="utf-8")
    with place_of(asked, "app") as place:
        key = place.facts()["key"]
        place.put(tmp_path / "given", "folder")
        words = ("sh", "-c", 'cat folder/text; echo "$GREETING"; exit 3', "sh")
        program = place.start(words, log=log, environment={"GREETING": "a 'b' $c"})
        assert program.wait(20) == 3
        assert log.read_text(encoding="utf-8") == "given\na 'b' $c\n"

        words = ("sh", "-c", FAMILY, "sh", place.stored_path("x"))
        program = place.start(words, log=log, environment={"PASSWORD": "very secret"})
        _until_there(place, "ready", tmp_path / "ready")
        assert program.poll() is None
        assert b"very secret" not in b"".join(_command_lines())
        with pytest.raises(TimeoutError):
            program.wait(0.01)
        place.get("result", tmp_path / "result")
        assert (tmp_path / "result").read_text(encoding="utf-8") == "kept\n"
        program.terminate()
        assert program.wait(20) == 7
        program.kill()
        listed = place.start(("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > listed"), log=log)
        assert listed.wait(20) == 0
        place.get("listed", tmp_path / "listed")
        if container is not None:
            assert "4242" not in (tmp_path / "listed").read_text(encoding="utf-8")

        program = place.start(("sh", "-c", "kill -KILL $$"), log=log)
        assert program.wait(20) == 128 + signal.SIGKILL
        _refuse_what_is_wrong(place, tmp_path)
        facts = place.facts()
    assert facts["container"] == container
    assert facts["host"] == os.uname().nodename
    assert facts["network"] == ("host" if container is None else "own, loopback only")
    assert list((tmp_path / "storage").iterdir()) == []
    _require_nothing_of(key)
    assert "asked" in log.read_text(encoding="utf-8")


@pytest.mark.needs_root
@pytest.mark.parametrize("container", FEW)
def test_limits_hold_and_a_database_has_an_account(
    tmp_path: Path, engines: dict[str, Any], container: str | None
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    device = Device("D2", "played", cpus=(CPU,), cpu_percent=50, memory_mib=200)
    asked = _asked(tmp_path, container, engines, device)
    log = tmp_path / "log.app.txt"
    with place_of(asked, "app") as place:
        facts = place.facts()
        busy = "import os,time\nused=time.process_time()\nend=time.monotonic()+0.6\n"
        busy += "while time.monotonic()<end: pass\n"
        busy += "print((time.process_time()-used)/0.6, *os.sched_getaffinity(0))"
        python = "/usr/bin/python3"
        assert place.start((python, "-c", busy), log=log).wait(30) == 0
        taken = (python, "-c", "x = bytearray(400 << 20)")
        assert place.start(taken, log=log).wait(30) == 128 + signal.SIGKILL
        words = ("sh", "-c", 'id -u; echo x > mine; echo x > "$1"', "sh", place.stored_path("mine"))
        assert place.start(words, log=log, user="nobody").wait(30) == 0
    assert facts["missing"] == []
    assert facts["is_played"]
    for limit in ("50 % of a CPU", f"CPUs {CPU}", "200 MiB of memory"):
        assert any(one.startswith(limit) for one in facts["applied"])
    lines = log.read_text(encoding="utf-8").splitlines()
    share, *cpus = lines[0].split()
    # A period's time may be used up at once: in six periods at most one more than half is had.
    assert float(share) < 0.75
    assert cpus == [str(CPU)]
    assert lines[-1] == "65534"


def test_only_the_end_of_a_log_is_kept(tmp_path: Path) -> None:
    asked = _asked(tmp_path, None, {}, Device("D1"))
    log = tmp_path / "log.app.txt"
    with place_of(asked, "app") as place:
        assert place.start(("seq", "100000"), log=log).wait(20) == 0
    assert LOG_BYTES - 10 < log.stat().st_size <= LOG_BYTES
    lines = log.read_text(encoding="utf-8").split()
    assert (lines[-1], int(lines[0]) + len(lines) - 1) == ("100000", 100000)


def test_what_is_not_described_is_named(tmp_path: Path) -> None:
    asked = _asked(tmp_path, None, {}, Device("D1"))
    with pytest.raises(DataError, match="has no role `db`; it has app"):
        place_of(asked, "db")
    asked["setting"]["roles"]["app"]["storage"] = "T"
    with pytest.raises(DataError, match="has no storage `T`; it has S"):
        place_of(asked, "app")
    asked["setting"]["roles"]["app"] |= {"storage": None, "container": "jail"}
    with (
        pytest.raises(CapabilityError, match="`jail` is not a container technology for roles; known: docker"),
        place_of(asked, "app"),
    ):
        pass
    asked["setting"]["roles"]["app"] |= {"container": None, "device": "D9"}
    with pytest.raises(DataError, match="device `D9` is not described; described: D1"):
        place_of(asked, "app")
    asked = _asked(tmp_path, None, {}, Device("D2", "played", cpus=(4000,)))
    with pytest.raises(CapabilityError, match=r"device `D2` has CPUs \[4000\]"), place_of(asked, "app"):
        pass


@pytest.mark.parametrize("container", FEW)
def test_a_killed_conductor_leaves_nothing_once_it_is_swept(
    tmp_path: Path, engines: dict[str, Any], container: str | None
) -> None:
    device = Device("D2", "played", cpus=(CPU,))
    asked = _asked(tmp_path, container, engines, device)
    command = [sys.executable, "-c", HELD, json.dumps(asked), FAMILY, str(tmp_path / "log")]
    conductor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert conductor.stdout is not None
    key = conductor.stdout.readline().strip()
    assert key.startswith("steelyard-")
    assert _processes(key)
    assert list((tmp_path / "storage").iterdir())
    conductor.kill()
    conductor.wait()
    conductor.stdout.close()
    assert sweep_places() == [key]
    assert list((tmp_path / "storage").iterdir()) == []
    _require_nothing_of(key)
    if container == "docker":
        # The engine forgets a container that has ended a moment later.
        deadline = time.monotonic() + 20
        listing = [*engines["docker"]["client"], "ps", "--all", "--format", "{{.Names}}"]
        while key in attempt(listing).output:
            assert time.monotonic() < deadline
            time.sleep(0.1)
