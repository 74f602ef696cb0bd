"""Two hosts by ssh: a real server on one side of a link, everything else on the other."""

from __future__ import annotations

import json
import pwd
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import CapabilityError
from steelyard.studies.communication.transport.link import Link
from steelyard.studies.communication.transport.link_options import parse_link

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
pytestmark = [pytest.mark.needs_root, pytest.mark.needs_tc]

# Run on side a: looks at the hosts, then runs a command on each.
VISITOR = """
import json, subprocess, sys
from pathlib import Path
from steelyard.errors import SteelyardError
from steelyard.studies.communication.transport.hosts import Hosts
try:
    with Hosts(Path(sys.argv[1]), ssh_options=("-F", sys.argv[2])) as hosts:
        hosts.require_program(sys.argv[3])
        place = hosts.place()
        said = [subprocess.run([*enter, "sh", "-c", 'hostname; echo "$1"', "sh", "it's a $HOME"],
                               capture_output=True, text=True, check=True).stdout for enter in place.enter]
        agent = subprocess.run([place.agent, "-x", place.addresses[1], "hostname"],
                               capture_output=True, text=True, check=True).stdout
        local = [one.is_local for one in hosts.reached]
        print(json.dumps({"said": said, "agent": agent, "local": local, "addresses": place.addresses,
                          "hostfile": place.hostfile.read_text(), "folder": str(place.agent.parent)}))
except SteelyardError as error:
    print(json.dumps({"error": error.message, "hint": error.hint, "code": error.exit_code}))
"""


class Server:
    """A link whose side b has an ssh server, and the files of a client."""

    def __init__(self, link: Link, folder: Path) -> None:
        self.link = link
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.config = folder / "config"
        self.hosts = folder / "hosts"
        for name in ("host_key", "client_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        self.write_client(known=True, key="client_key")
        self.hosts.write_text(f"{link.sides[0].address}\n{link.sides[1].address} slots=1\n")
        (folder / "server").write_text(
            f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/client_key.pub\nStrictModes no\n"
            "UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"
        )

    def write_client(self, *, known: bool, key: str) -> None:
        kind, text = (self.folder / "host_key.pub").read_text().split()[:2]
        address = self.link.sides[1].address
        (self.folder / "known").write_text(f"{address} {kind} {text}\n" if known else "")
        self.config.write_text(
            f"IdentityFile {self.folder}/{key}\nIdentitiesOnly yes\nUserKnownHostsFile {self.folder}/known\n"
            "GlobalKnownHostsFile none\n"
        )

    def start(self, own: Path | None = None) -> None:
        """Start it, if asked to with a file system of its own at a folder."""
        assert SERVER is not None
        command = [SERVER, "-D", "-e", "-f", str(self.folder / "server")]
        if own is not None:
            mount = f"mount -t tmpfs none {own} && exec {shlex.join(command)}"
            command = ["unshare", "--mount", "sh", "-c", mount]
        log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(self.link.command(1, command), stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + 10
        while b"listening" not in (self.folder / "log").read_bytes():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def files(self, folder: Path) -> list[str]:
        """Names that lie in a folder, as the server sees it."""
        assert self.process is not None
        command = ["nsenter", "--mount", "--target", str(self.process.pid), "ls", "-A", str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def visit(self, program: str = "true") -> dict[str, object]:
        command = [sys.executable, "-c", VISITOR, str(self.hosts), str(self.config), program]
        done = subprocess.run(
            self.link.command(0, command), capture_output=True, text=True, check=True, timeout=60
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    if SERVER is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs openssh-server")
    # Without the folder the server refuses to start; it is the package's, so it may stay.
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        try:
            link = stack.enter_context(Link(parse_link("rate=1gbit")))
        except CapabilityError as error:
            pytest.skip(error.message)
        found = Server(link, tmp_path)
        stack.callback(found.stop)
        yield found


def test_commands_reach_both_hosts(server: Server) -> None:
    server.start()
    found = server.visit()
    first, second = server.link.sides
    assert found.pop("said") == [f"{side.host}\nit's a $HOME\n" for side in (first, second)]
    assert found.pop("agent") == f"{second.host}\n"
    assert found.pop("local") == [True, False]
    assert found.pop("addresses") == [first.address, second.address]
    assert found.pop("hostfile") == f"{first.address} slots=1\n{second.address} slots=1\n"
    assert not Path(str(found.pop("folder"))).exists()
    assert not found


def test_what_keeps_a_host_from_being_used_is_said_with_the_next_step(server: Server) -> None:
    address = server.link.sides[1].address
    closed = server.visit()
    assert "Connection refused" in str(closed["error"])
    assert closed["hint"] == "start the ssh server there: sudo systemctl start ssh"
    server.start()
    server.write_client(known=False, key="client_key")
    unknown = server.visit()
    assert "Host key verification failed" in str(unknown["error"])
    assert unknown["hint"] == f"accept the key of the host once: ssh {address} true"
    server.write_client(known=True, key="host_key")
    denied = server.visit()
    assert f"cannot reach host `{address}` by ssh without a password" in str(denied["error"])
    assert denied["hint"] == f"allow your key there: ssh-copy-id {address}"
    server.write_client(known=True, key="client_key")
    absent = server.visit("no-such-program")
    # Both hosts lack it; the first is named.
    assert absent["error"] == f"host `{server.link.sides[0].address}` has no program `no-such-program`"
    assert {closed["code"], unknown["code"], denied["code"], absent["code"]} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("shares_files", [True, False])
def test_a_study_over_two_hosts_ends_with_its_report(
    server: Server, tmp_path: Path, *, shares_files: bool
) -> None:
    """With one file system for both hosts nothing may be removed; with two, everything is fetched."""
    result = tmp_path / "result"
    result.mkdir()
    server.start(None if shares_files else result)
    home = pwd.getpwuid(0).pw_dir
    command = [
        *(str(Path(sys.executable).with_name("steelyard")), "run", "communication", "--transport", "tcp"),
        *("--hostfile", str(server.hosts), "--operations", "300", "--largest", "100000"),
        *("--replications", "2", "--budget", "5", "--out", str(result)),
    ]
    # ssh looks for its files in the home of the user, whatever the environment says.
    place = f"mkdir -p {home}/.ssh && mount --bind {tmp_path} {home}/.ssh && exec {shlex.join(command)}"
    done = subprocess.run(
        server.link.command(0, ["unshare", "--mount", "sh", "-c", place]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tcp over hosts" in (result / "report.html").read_text()
    traces = sorted((result / "traces").iterdir())
    assert len(traces) == 2
    for trace in traces:
        assert {f"operations.{rank}.bin" for rank in (0, 1)} <= {each.name for each in trace.iterdir()}
        assert not list(trace.glob(".shared*"))
    here = sorted(each.name for each in result.iterdir())
    assert sorted(server.files(result)) == (here if shares_files else [])
