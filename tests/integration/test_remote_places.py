"""Places on another host: a real ssh server on loopback, with a cache folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import CapabilityError, RunError
from steelyard.run.hosts.device import Device
from steelyard.run.isolation.attempt import attempt, installed
from steelyard.studies.replication.devices.container_cleanup import sweep_places
from steelyard.studies.replication.devices.engines import container_engines
from steelyard.studies.replication.devices.remote import digest_of, send_artefacts
from steelyard.studies.replication.devices.roles import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.replication.devices.interface import Place

SERVER = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
pytestmark = [pytest.mark.slow, pytest.mark.needs_root]
MEMORY = Path("/dev/shm")  # noqa: S108 - the memory file system

HELD = """
import json, sys, time
from pathlib import Path
from steelyard.studies.replication.devices.roles import place_of
from steelyard.run.isolation.attempt import attempt, installed
with place_of(json.loads(sys.argv[1]), "app") as place:
    words = ["sh", "-c", "setsid sleep 4243 & sleep 4243 & echo ready; wait"]
    place.start(words, log=Path(sys.argv[2]))
    while "ready" not in Path(sys.argv[2]).read_text():
        time.sleep(0.02)
    print(Path(place.path(".")).parent.name, flush=True)
    time.sleep(60)
"""


class Server:
    """An ssh server of this test, and the words by which it is reached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("host_key", "client_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (folder / "server").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {folder}/host_key\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/client_key.pub\nPidFile none\nPermitRootLogin yes\n"
            "PasswordAuthentication no\n"
        )
        kind, text = (folder / "host_key.pub").read_text().split()[:2]
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {kind} {text}\n")
        (folder / "config").write_text(
            f"IdentityFile {folder}/client_key\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
            f"GlobalKnownHostsFile none\nPort {self.port}\n"
        )
        self.cache = f"XDG_CACHE_HOME={folder}/cache"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *variables: str) -> None:
        with (self.folder / "server").open("a") as configuration:
            configuration.writelines(["SetEnv ", " ".join(variables), "\n"])
        assert SERVER is not None
        with (self.folder / "log").open("wb") as log:
            command = [SERVER, "-D", "-e", "-f", str(self.folder / "server")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while b"listening" not in (self.folder / "log").read_bytes():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def device(self, **changed: Any) -> Device:
        words = ("-F", str(self.folder / "config"))
        storages = {"S": str(self.folder / "storage"), "H2": "memory"}
        return Device("D3", "ssh", host="127.0.0.1", ssh_options=words, storages=storages, **changed)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    if SERVER is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs openssh-server")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    # Without the folder the server refuses to start; it is the package's, so it may stay.
    Path("/run/sshd").mkdir(exist_ok=True)
    (tmp_path / "there").mkdir()
    built = tmp_path / "here" / "steelyard" / "replication" / "benchmarks"
    built.mkdir(parents=True)
    (built / "program").write_text("#!/bin/sh\necho built\n")
    (built / "program").chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    found = Server(tmp_path / "there")
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield found
        found.stop()
        sweep_places()


def _asked(device: Device, storage: str = "S", container: str | None = None) -> dict[str, Any]:
    role = {"device": device.name, "storage": storage, "container": container}
    return {
        "setting": {"name": "tested", "roles": {"app": role}},
        "devices": {device.name: device.document()},
    }


def _gone(key: str) -> bool:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{key}-".encode() in (entry / "environ").read_bytes():
                return False
        except OSError:
            continue
    return not (MEMORY / key).exists()


def test_a_program_is_placed_on_another_host_and_nothing_is_left(server: Server, tmp_path: Path) -> None:
    server.start(server.cache)
    device = server.device(cpus=(min(os.sched_getaffinity(0)),))
    log = tmp_path / "log.app.txt"
    with place_of(_asked(device), "app") as place:
        key = Path(place.path(".")).parent.name
        (tmp_path / "given").mkdir()
        (tmp_path / "given" / "text").write_text("given\n")
        place.put(tmp_path / "given", "folder")
        place.put(tmp_path / "given" / "text", "alone")
        script = (
            'cat folder/text alone; echo "$GREETING"; taskset -cp $$ | tail -c 2; echo kept > result; exit 3'
        )
        program = place.start(("sh", "-c", script), log=log, environment={"GREETING": "it's a $HOME"})
        assert program.wait(20) == 3
        said = log.read_text()
        assert said.startswith("given\ngiven\nit's a $HOME\n")
        assert said.splitlines()[-1] == str(device.cpus[0] if device.cpus else "")
        place.get("result", tmp_path / "result")
        assert (tmp_path / "result").read_text() == "kept\n"
        with pytest.raises(RunError, match="left no file `absent`"):
            place.get("absent", tmp_path / "absent")
        assert not (tmp_path / "absent").exists()

        assert place.start((f"{place.artefacts}/benchmarks/program",), log=log).wait(20) == 0
        assert log.read_text().endswith("built\n")
        assert place.artefacts == f"{server.folder}/cache/steelyard/replication"

        words = ("sh", "-c", 'id -un; echo x > "$1"', "sh", place.stored_path("mine"))
        assert place.start(words, log=log, user="nobody").wait(20) == 0
        assert log.read_text().endswith("nobody\n")
        assert place.start(("sh", "-c", "kill -KILL $$"), log=log).wait(20) == 128 + signal.SIGKILL

        _end_one_that_is_asked(place, log, MEMORY / key / "own" / "ready")
        facts = place.facts()
        assert place.address == "127.0.0.1"
    assert facts["host"] == os.uname().nodename
    assert (facts["kind"], facts["is_played"], facts["missing"]) == ("ssh", False, [])
    assert facts["artefacts"].startswith("brought, sha256 ")
    assert _gone(key)
    assert list((server.folder / "storage").iterdir()) == []


def _end_one_that_is_asked(place: Place, log: Path, ready: Path) -> None:
    asking = ("sh", "-c", "trap 'exit 7' TERM; setsid sleep 4243 >/dev/null 2>&1 & echo > ready; wait")
    program = place.start(asking, log=log)
    deadline = time.monotonic() + 20
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    program.terminate()
    assert program.wait(20) == 7


def test_what_was_built_is_brought_once_and_again_when_it_changed(server: Server, tmp_path: Path) -> None:
    server.start(server.cache)
    there = server.folder / "cache" / "steelyard" / "replication"
    asked = _asked(server.device(), "H2")
    with place_of(asked, "app"):
        first = (there / "benchmarks" / "program").stat().st_ino
    with place_of(asked, "app"):
        assert (there / "benchmarks" / "program").stat().st_ino == first
    (tmp_path / "here" / "steelyard" / "replication" / "more").write_text("more\n")
    digest_of.cache_clear()
    with place_of(asked, "app") as place:
        ground = getattr(place, "_ground")  # noqa: B009 - of this place
        assert (there / "more").read_text() == "more\n"
        brought, _ = send_artefacts(ground, os.uname().machine)
        (there / "more").write_text("changed there\n")
        assert send_artefacts(ground, os.uname().machine) == (brought, [])
        assert (there / "more").read_text() == "more\n"
        # A folder that was built there is not ours to replace: what it is now is said.
        (there / ".brought").unlink()
        same, _ = send_artefacts(ground, os.uname().machine)
        assert same == brought.replace("brought", "built there")
        (there / "more").chmod(0o755)
        other, _ = send_artefacts(ground, os.uname().machine)
        assert other.startswith("built there, sha256 ")
        assert other != same


def test_what_keeps_a_device_from_being_used_is_said_with_the_next_step(server: Server) -> None:
    asked = _asked(server.device())
    with pytest.raises(CapabilityError, match=r"cannot reach host .* by ssh without a password") as caught:
        place_of(asked, "app").__enter__()
    assert caught.value.hint == "start the ssh server there: sudo systemctl start ssh"
    with pytest.raises(CapabilityError, match="containers are by `docker` and `podman`: not by `crun`"):
        place_of(_asked(server.device(), container="crun"), "app").__enter__()
    server.start(server.cache)
    (server.folder / "storage").write_text("a file is in the way\n")
    with pytest.raises(RunError, match="cannot create the folders of a role on device `D3`: mkdir: "):
        place_of(asked, "app").__enter__()


def test_a_killed_conductor_leaves_nothing_on_another_host(server: Server, tmp_path: Path) -> None:
    server.start(server.cache)
    log = tmp_path / "log"
    log.touch()
    command = [sys.executable, "-c", HELD, json.dumps(_asked(server.device())), str(log)]
    conductor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert conductor.stdout is not None
    key = conductor.stdout.readline().strip()
    assert key.startswith("steelyard-")
    assert not _gone(key)
    conductor.kill()
    conductor.wait()
    conductor.stdout.close()
    deadline = time.monotonic() + 20
    while not _gone(key):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert list((server.folder / "storage").iterdir()) == []


@pytest.mark.parametrize(
    "technology",
    [
        pytest.param("podman", marks=pytest.mark.needs_podman),
        pytest.param("docker", marks=pytest.mark.needs_docker),
    ],
)
def test_a_container_on_another_host_is_one_as_here(server: Server, tmp_path: Path, technology: str) -> None:
    for program in ("podman", "runc") if technology == "podman" else ("docker", "dockerd"):
        if installed(program) is None:
            pytest.skip(f"needs {program}")
    cpu = max(os.sched_getaffinity(0))
    log = tmp_path / "log.app.txt"
    with container_engines([technology]) as engines:
        client = engines.get("docker", {}).get("client", ("", "", "unix:///none"))
        server.start(server.cache, f"DOCKER_HOST={client[-1]}")
        with place_of(_asked(server.device(cpus=(cpu,)), container=technology), "app") as place:
            key = place.facts()["key"]
            (tmp_path / "text").write_text("given\n")
            place.put(tmp_path / "text", "text")
            script = 'cat text; ls /home 2>/dev/null | wc -l; echo kept > result; echo x > "$1"; exit 3'
            words = ("sh", "-c", script, "sh", place.stored_path("mine"))
            assert place.start(words, log=log, user="nobody").wait(30) == 3
            place.get("result", tmp_path / "result")
            assert (tmp_path / "result").read_text() == "kept\n"
            assert log.read_text() == "given\n0\n"
            assert place.start((f"{place.artefacts}/benchmarks/program",), log=log).wait(30) == 0
            assert list((server.folder / "storage" / key).rglob("mine"))
            facts = place.facts()
        assert attempt([*engines["docker"]["client"], "ps", "-aq"]).output == "" if engines else True
    assert (facts["container"], facts["host"]) == (technology, os.uname().nodename)
    assert facts["network"] == "own, loopback only"
    assert facts["applied"] == [f"CPUs {cpu} (limit of the container)"]
    assert facts["missing"] == []
    assert _gone(key)
    assert list((server.folder / "storage").iterdir()) == []
