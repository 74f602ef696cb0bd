"""The peers of the launcher: how each is asked for one execution, and what it says about it.

A peer that measures is read for its own figures. A peer that only isolates is timed from outside
by Steelyard's own stamps around its command line: the most favourable outside clock there is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from steelyard.run.isolation.docker import DockerEngine
from steelyard.run.isolation.root_view import make_skeleton

PROGRAMS = Path(str(files("steelyard"))) / "_bin"
OWN_LINE = re.compile(r"#steelyard (wall|cpu) (\d+) ns")
NS_PER_S = 1_000_000_000
BOUND_S = 60


@dataclass(frozen=True)
class Times:
    """What one execution took, in ns; `cpu` is None where the peer says nothing."""

    wall: int
    cpu: int | None


@dataclass(frozen=True)
class Execution:
    """The program's truth and the peer's word."""

    own: Times
    outside: Times


def own_times(text: str) -> Times:
    found = {name: int(value) for name, value in OWN_LINE.findall(text)}
    if not found:
        return Times(0, 0)
    return Times(found["wall"], found["cpu"])


class Peer(ABC):
    """One contestant."""

    name: ClassVar[str]
    program: ClassVar[str]

    def available(self) -> bool:
        if shutil.which(self.program) is None:
            return False
        try:
            self.open()
            self.execute([str(PROGRAMS / "steelyard-truth"), "--iterations", "1000", "--metrics-stdout"])
        except (OSError, RuntimeError, KeyError, ValueError, subprocess.SubprocessError):
            self.close()
            return False
        return True

    def open(self) -> None:
        """Make what every execution shares."""

    def close(self) -> None:
        """Remove it."""

    @abstractmethod
    def execute(self, command: list[str]) -> Execution:
        """Run once."""


class Resident:
    """A resident launcher spoken to over its line protocol."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [str(PROGRAMS / "steelyard-launch"), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.read()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            message = "the launcher left"
            raise RuntimeError(message)
        return json.loads(line)

    def ask(self, request: dict) -> None:
        self.process.stdin.write(json.dumps(request) + "\n")

    def execute(self, command: list[str], isolation: dict, **fields: object) -> dict:
        spec = {
            "schema": "steelyard/run-spec/1",
            "id": "bench",
            "command": command,
            "environment": {"PATH": os.environ["PATH"], "HOME": "/root"},
            "standard_output": {"to": "capture", "limit_bytes": 65536},
            "isolation": isolation,
            **fields,
        }
        self.ask({"request": "prepare", "spec": spec})
        reply = self.read()
        if reply["reply"] != "ready":
            raise RuntimeError(reply.get("message", str(reply)))
        self.ask({"request": "go"})
        outcome = self.read()["outcome"]
        self.read()
        if outcome["status"] != "completed":
            message = f"{outcome['status']}: {outcome['message']}"
            raise RuntimeError(message)
        return outcome

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)


class Steelyard(Peer):
    program = str(PROGRAMS / "steelyard-launch")
    isolation: ClassVar[dict] = {"kind": "bare"}
    placement: ClassVar[dict] = {"maximal_weight": True}

    def open(self) -> None:
        self.resident = Resident()

    def close(self) -> None:
        self.resident.end()

    def execute(self, command: list[str]) -> Execution:
        """As in a study: the program reports to the launcher's descriptor."""
        command = [word for word in command if word != "--metrics-stdout"]
        outcome = self.resident.execute(command, self.isolation, placement=self.placement, own_metrics=True)
        quantities = outcome["quantities"]
        outside = Times(quantities["wall_ns"]["value"], quantities["cpu_ns"]["value"])
        own = {each["metric"]: round(each["value"]) for each in outcome["own"]}
        return Execution(Times(own["wall"], own["cpu"]), outside)


class SteelyardBare(Steelyard):
    name = "steelyard bare"


class SteelyardSandbox(Steelyard):
    name = "steelyard sandbox"
    isolation: ClassVar[dict] = {"kind": "sandbox", "read_only": [str(PROGRAMS)]}


class Wrapped(Peer):
    """A technology that only isolates: its command line, timed by the launcher's stamps."""

    def open(self) -> None:
        self.resident = Resident()

    def close(self) -> None:
        self.resident.end()

    @abstractmethod
    def wrap(self, command: list[str]) -> list[str]:
        """Give the command line."""

    def execute(self, command: list[str]) -> Execution:
        outcome = self.resident.execute(self.wrap(command), {"kind": "bare"})
        quantities = outcome["quantities"]
        outside = Times(quantities["wall_ns"]["value"], quantities["cpu_ns"]["value"])
        return Execution(own_times(outcome["standard_output"]["text"]), outside)


class Bubblewrap(Wrapped):
    name = program = "bwrap"

    def wrap(self, command: list[str]) -> list[str]:
        view = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        return ["bwrap", *view, "--unshare-all", "--die-with-parent", *command]


class Unshare(Wrapped):
    name = "unshare (6 namespaces)"
    program = "unshare"

    def wrap(self, command: list[str]) -> list[str]:
        return ["unshare", "-m", "-p", "-f", "-n", "-i", "-u", "--mount-proc", *command]


class Nspawn(Wrapped):
    name = program = "systemd-nspawn"

    def wrap(self, command: list[str]) -> list[str]:
        return [
            "systemd-nspawn",
            "-q",
            "-D",
            "/",
            "--volatile=yes",
            "--private-network",
            "--register=no",
            "--keep-unit",
            "--as-pid2",
            f"--bind-ro={PROGRAMS}",
            *command,
        ]


class Docker(Wrapped):
    """`docker run` on the host's engine, or on one that is started for this."""

    name = program = "docker"

    def open(self) -> None:
        self.engine = DockerEngine()
        self.image = self.engine.image()
        super().open()

    def close(self) -> None:
        super().close()
        self.engine.stop()

    def wrap(self, command: list[str]) -> list[str]:
        options = ["run", "--rm", "--network", "none", "--volume", f"{PROGRAMS}:{PROGRAMS}:ro"]
        return [*self.engine.client, *options, self.image, *command]


class Podman(Wrapped):
    """`podman run` on an empty root, with storage of its own."""

    name = program = "podman"

    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="sp-")
        self.root = Path(self.folder.name) / "root"
        make_skeleton(self.root)
        super().open()

    def close(self) -> None:
        super().close()
        self.folder.cleanup()

    def wrap(self, command: list[str]) -> list[str]:
        place = self.folder.name
        client = ["podman", "--root", f"{place}/s", "--runroot", f"{place}/r", "--tmpdir", f"{place}/t"]
        client += ["--storage-driver", "vfs", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
        options = ["--events-backend", "none", "run", "--rm", "--network", "none", "--read-only"]
        options += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
        options += ["--volume", f"{PROGRAMS}:{PROGRAMS}:ro", "--rootfs", str(self.root)]
        return [*client, *options, *command]


class PerfStat(Peer):
    name = "perf stat (no sandbox)"
    program = "perf"

    def execute(self, command: list[str]) -> Execution:
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
            answer = subprocess.run(
                ["perf", "stat", "-x", ",", "-e", "duration_time,task-clock", "-o", file.name, *command],
                capture_output=True,
                text=True,
                check=True,
                timeout=BOUND_S,
            )
            fields = {
                row.split(",")[2]: row.split(",")[0] for row in file.read().splitlines() if row.count(",") > 2
            }
        cpu = int(float(fields["task-clock"]) * 1_000_000)
        return Execution(own_times(answer.stdout), Times(int(fields["duration_time"]), cpu))


class Isolate(Peer):
    name = program = "isolate"

    def open(self) -> None:
        subprocess.run(["isolate", "-b", "7", "--init"], check=True, capture_output=True, timeout=BOUND_S)

    def close(self) -> None:
        subprocess.run(["isolate", "-b", "7", "--cleanup"], check=False, capture_output=True, timeout=BOUND_S)

    def execute(self, command: list[str]) -> Execution:
        with tempfile.NamedTemporaryFile("r") as meta:
            answer = subprocess.run(
                [
                    "isolate",
                    "-b",
                    "7",
                    "--silent",
                    "-M",
                    meta.name,
                    "-d",
                    f"{PROGRAMS}={PROGRAMS}",
                    "--run",
                    "--",
                    *command,
                ],
                capture_output=True,
                text=True,
                check=True,
                timeout=BOUND_S,
            )
            fields = dict(line.split(":", 1) for line in meta.read().splitlines())
        outside = Times(round(float(fields["time-wall"]) * NS_PER_S), round(float(fields["time"]) * NS_PER_S))
        return Execution(own_times(answer.stdout), outside)


class Runexec(Peer):
    name = program = "runexec"

    def execute(self, command: list[str]) -> Execution:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            answer = subprocess.run(
                [
                    "runexec",
                    "--read-only-dir",
                    "/",
                    "--hidden-dir",
                    "/tmp",
                    "--dir",
                    "/",
                    "--output",
                    str(output),
                    "--quiet",
                    "--",
                    *command,
                ],
                capture_output=True,
                text=True,
                check=True,
                timeout=BOUND_S,
                cwd=folder,
            )
            text = output.read_text(encoding="utf-8", errors="replace")
        fields = dict(line.split("=", 1) for line in answer.stdout.splitlines() if "=" in line)
        wall = round(float(fields["walltime"].rstrip("s")) * NS_PER_S)
        return Execution(own_times(text), Times(wall, round(float(fields["cputime"].rstrip("s")) * NS_PER_S)))


class Hyperfine(Peer):
    name = "hyperfine (no sandbox)"
    program = "hyperfine"

    def execute(self, command: list[str]) -> Execution:
        with tempfile.TemporaryDirectory() as folder:
            output, export = Path(folder) / "output", Path(folder) / "export"
            subprocess.run(
                [
                    "hyperfine",
                    "-N",
                    "--runs",
                    "1",
                    "--output",
                    str(output),
                    "--export-json",
                    str(export),
                    " ".join(command),
                ],
                capture_output=True,
                check=True,
                timeout=BOUND_S,
            )
            result = json.loads(export.read_text(encoding="utf-8"))["results"][0]
            text = output.read_text(encoding="utf-8")
        cpu = round((result["user"] + result["system"]) * NS_PER_S)
        return Execution(own_times(text), Times(round(result["times"][0] * NS_PER_S), cpu))


PEERS: tuple[type[Peer], ...] = (
    SteelyardSandbox,
    SteelyardBare,
    Isolate,
    Runexec,
    Hyperfine,
    PerfStat,
    Bubblewrap,
    Unshare,
    Nspawn,
    Podman,
    Docker,
)
