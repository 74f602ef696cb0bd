"""Commands that stand back: they are as if started directly, and what holds them is undone."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.run.programs import govern_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timing

PREFIX = "steelyard-test-"
CPU_V1 = Path("/sys/fs/cgroup/cpu")
UNIFIED = next(
    (
        path
        for path in map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
        if (path / "cgroup.controllers").exists()
    ),
    None,
)
BUSY = (sys.executable, "-c", "while True: pass")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
PATIENCE_S = 60.0

needs_root = pytest.mark.needs_root
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
with_pressure = pytest.mark.skipif(
    UNIFIED is None or not Path("/proc/pressure/cpu").exists(), reason="needs version 2 groups with pressure"
)


def steelyard(*words: str) -> list[str]:
    return [sys.executable, "-c", "from steelyard.cli import main; main()", *words]


def execute(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)


def govern(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return execute(str(govern_program()), *map(str, words))


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)


def test_streams_and_exit_code_are_the_commands_own() -> None:
    script = "cat; echo out; echo err >&2; exit 7"
    answer = subprocess.run(
        steelyard("background", "--quiet", "--", "sh", "-c", script),
        input="in\n",
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (7, "in\nout\n", "err\n")


def test_one_line_says_by_which_means(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    answer = execute(*steelyard("background", "--status", str(status), "--", "true"))
    assert answer.returncode == 0
    assert answer.stdout == ""
    assert answer.stderr.startswith("steelyard: ")
    assert answer.stderr.count("\n") == 1
    found = json.loads(status.read_text())
    assert found["format"] == "steelyard/background/1"
    assert found["level"] in {"class", "idle", "nice", "none"}
    assert all(means in answer.stderr for means in found["applied"])


def test_the_command_has_the_policy() -> None:
    answer = execute(*steelyard("background", "--require", "idle", "--", "cat", "/proc/self/stat"))
    # SOURCE: proc_pid_stat(5): the policy is field 41.
    assert answer.stdout.rpartition(")")[2].split()[38] == str(os.SCHED_IDLE), answer.stderr


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGXFSZ]
)
def test_a_signal_ends_the_command_as_if_it_was_started_directly(number: signal.Signals) -> None:
    command = steelyard("background", "--quiet", "--", "sh", "-c", "echo begun; exec sleep 60")
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == -number


def test_ctrl_c_at_a_terminal_reaches_the_command() -> None:
    ours, theirs = pty.openpty()
    script = "trap 'echo caught; exit 9' INT; echo begun; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        steelyard("background", "--quiet", "--", "sh", "-c", script),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    os.close(theirs)
    with open(ours, "r+b", buffering=0) as terminal:  # noqa: PTH123 - a descriptor
        assert terminal.readline() == b"begun\r\n"
        terminal.write(b"\x03")
        assert process.wait(timeout=PATIENCE_S) == 9
        said = b""
        while b"caught" not in said:  # the echo of the key may arrive by itself
            said += terminal.read(100)


def test_the_command_stops_and_goes_on() -> None:
    command = steelyard("background", "--quiet", "--", "sh", "-c", "echo begun; exec sleep 60")
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None

    def state() -> str:
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    with process.stdout:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state() == "T", "stopped")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: state() == "S", "going on")
        process.kill()
        process.wait()


def test_what_cannot_be_executed_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    absent = execute(*steelyard("background", "--", "steelyard-no-such-program"))
    assert absent.returncode == 127
    assert "there is no such program" in absent.stderr
    plain = tmp_path / "plain"
    plain.write_text("")
    refused = execute(*steelyard("background", "--", str(plain)))
    assert refused.returncode == 126
    assert f"cannot run `{plain}`" in refused.stderr


def test_a_level_that_cannot_be_had_is_refused_before_anything_begins() -> None:
    if Path("/sys/kernel/sched_ext/root/ops").exists():
        pytest.skip("a loadable scheduler is active here")
    answer = execute(*steelyard("background", "--require", "class", "--", "echo", "begun"))
    assert answer.returncode == 3
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: ")
    assert "hint: `steelyard scheduler start`" in answer.stderr


def test_a_wrong_level_names_the_known_ones() -> None:
    answer = execute(*steelyard("background", "--require", "strict", "--", "true"))
    assert answer.returncode == 2
    assert "allowed: class, idle" in answer.stderr


@needs_root
@root_only
def test_groups_of_ended_commands_are_swept_and_those_of_living_ones_stay() -> None:
    if UNIFIED is None:
        pytest.skip("needs a version 2 hierarchy")
    home = UNIFIED / "steelyard-background"
    command = [str(govern_program()), "background", "--quiet", "--"]
    living = subprocess.Popen([*command, "sh", "-c", "echo begun; exec sleep 60"], stdout=subprocess.PIPE)
    assert living.stdout is not None
    with living.stdout:
        assert living.stdout.readline() == b"begun\n"
        ended = subprocess.Popen([*command, "true"])
        ended.wait()
        assert any(home.glob(f"{ended.pid}-*"))
        execute(*command, "true")
        assert not any(home.glob(f"{ended.pid}-*"))
        assert any(home.glob(f"{living.pid}-*"))
        living.kill()
        living.wait()


def end_with_parent(number: signal.Signals) -> None:
    """Let this process be ended when the tests are killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, int(number))


class Site:
    """A service and best-effort groups of their own, so that nothing else on the host is touched."""

    def __init__(self, state: Path) -> None:
        assert UNIFIED is not None
        self._sweep()
        name = f"{PREFIX}{os.getpid()}"
        has_cpu = "cpu" in (UNIFIED / "cgroup.controllers").read_text().split()
        if has_cpu:
            (UNIFIED / "cgroup.subtree_control").write_text("+cpu")
        self.state = state
        self.service = UNIFIED / f"{name}-service"
        self.unified = UNIFIED / f"{name}-background"
        self.cpu = self.unified if has_cpu else CPU_V1 / f"{name}-background"
        self.groups = list(dict.fromkeys([self.service, self.unified, self.cpu]))
        self.processes: list[subprocess.Popen[bytes]] = []
        for group in self.groups:
            group.mkdir()

    @staticmethod
    def _sweep() -> None:
        """Remove what tests left that were killed."""
        for parent in (UNIFIED, CPU_V1):
            for group in parent.glob(f"{PREFIX}*") if parent is not None else ():
                if not Path("/proc", group.name.removeprefix(PREFIX).partition("-")[0]).exists():
                    with contextlib.suppress(OSError):
                        group.rmdir()

    def busy(self, *groups: Path) -> subprocess.Popen[bytes]:
        """Start a process that is always runnable, in groups, all on one CPU."""
        process = subprocess.Popen(BUSY, preexec_fn=lambda: self._enter(groups))  # noqa: PLW1509
        self.processes.append(process)
        return process

    @staticmethod
    def _enter(groups: tuple[Path, ...]) -> None:
        end_with_parent(signal.SIGKILL)
        for group in groups:
            (group / "cgroup.procs").write_text("0")
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    def start(self, *words: str) -> None:
        named = [word for group in self.groups[1:] for word in ("--group", str(group))]
        command = [str(govern_program()), "start", "--foreground", "--state", str(self.state)]
        process = subprocess.Popen(
            [*command, "--service", str(self.service), *named, *words],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: end_with_parent(signal.SIGTERM),  # noqa: PLW1509
        )
        self.processes.append(process)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == b"ready\n"

    def allowance(self) -> str:
        answer = json.loads(govern("status", "--state", self.state, "--json").stdout)
        return str(answer["governor"]["allowance"])

    def quota(self) -> str:
        legacy = self.cpu / "cpu.cfs_quota_us"
        return (legacy if legacy.exists() else self.cpu / "cpu.max").read_text().split()[0]

    def is_frozen(self) -> bool:
        return (self.unified / "cgroup.freeze").read_text().strip() == "1"

    def is_released(self) -> bool:
        return self.quota() in {"-1", "max"} and not self.is_frozen()

    def close(self) -> None:
        govern("stop", "--state", self.state)
        for process in self.processes:
            process.kill()
            process.wait()
        for group in self.groups:
            wait_until(lambda group=group: not (group / "cgroup.procs").read_text(), "empty")
            group.rmdir()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "state")
    yield made
    made.close()


FAST = ("--calm-ms", "200", "--park-limit-ms", "400", "--blink-ms", "200")


@needs_root
@root_only
@with_pressure
def test_commands_are_throttled_while_a_service_waits_and_released_after(site: Site) -> None:
    site.busy(*site.groups[1:])
    site.start(*FAST)
    assert site.allowance() == "free"
    assert site.is_released()
    service = [site.busy(site.service) for _ in range(2)]
    wait_until(lambda: not site.is_released(), "throttled")
    wait_until(site.is_frozen, "parked")
    wait_until(lambda: not site.is_frozen(), "a blink")
    for process in service:
        process.kill()
        process.wait()
    wait_until(lambda: site.allowance() == "free", "released")
    assert site.is_released()


@needs_root
@root_only
@with_pressure
def test_a_service_that_does_not_wait_costs_nobody_anything(site: Site) -> None:
    site.busy(*site.groups[1:])
    site.start(*FAST)
    time.sleep(1.5)
    counters = json.loads(govern("status", "--state", site.state, "--json").stdout)["governor"]["counters"]
    assert counters["throttles"] == 0
    assert site.is_released()


@needs_root
@root_only
@with_pressure
@pytest.mark.parametrize("way", ["stop", "SIGTERM", "SIGKILL"])
def test_however_it_ends_everything_is_restored(site: Site, way: str) -> None:
    best_effort = site.busy(*site.groups[1:])
    site.start(*FAST, "--park-limit-ms", "60000")
    for _ in range(2):
        site.busy(site.service)
    wait_until(site.is_frozen, "parked")
    if way == "stop":
        assert govern("stop", "--state", site.state).stdout == "stopped\n"
    else:
        identity = json.loads((site.state / "governor-process.json").read_text())
        os.kill(identity["process_id"], getattr(signal, way))
        wait_until(
            lambda: '"governor":null' in govern("status", "--state", site.state, "--json").stdout, "end"
        )
    if way == "SIGKILL":
        assert site.is_frozen()
        # Whoever comes next restores: a command, or somebody who asks for it.
        assert govern("background", "--quiet", "--state", site.state, "--", "true").returncode == 0
    wait_until(site.is_released, "released")
    assert best_effort.poll() is None
    assert govern("restore", "--state", site.state).stdout == "nothing to restore\n"


@needs_root
@root_only
@with_pressure
def test_the_next_start_restores_what_a_killed_governor_left(site: Site) -> None:
    site.busy(*site.groups[1:])
    site.start(*FAST, "--park-limit-ms", "60000")
    service = [site.busy(site.service) for _ in range(2)]
    wait_until(site.is_frozen, "parked")
    identity = json.loads((site.state / "governor-process.json").read_text())
    (governor,) = (process for process in site.processes if process.pid == identity["process_id"])
    for process in (governor, *service):
        process.kill()
        process.wait()
    site.start(*FAST)
    assert site.is_released()


@needs_root
@root_only
@with_pressure
def test_starting_twice_is_no_error_and_other_peoples_groups_are_refused(site: Site) -> None:
    named = ("--service", site.service, "--group", site.unified)
    first = govern("start", "--state", site.state, *named)
    assert (first.returncode, first.stdout) == (0, "started\n"), first.stderr
    again = govern("start", "--state", site.state, *named)
    assert (again.returncode, again.stdout) == (0, "already started\n")
    assert UNIFIED is not None
    for group in (UNIFIED, site.service):
        answer = govern("start", "--state", site.state / "x", "--service", site.service, "--group", group)
        assert answer.returncode == 2
        assert "`--group" in answer.stderr


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    answer = govern("start", "--state", tmp_path, "--service", "/nowhere")
    assert answer.returncode == 2
    assert "`--service /nowhere`: no control group is there" in answer.stderr
