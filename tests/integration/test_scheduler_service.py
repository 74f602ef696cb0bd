"""What a service manager starts: a unit that it understands, and programs that say when they are at work."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.run.programs import govern_program, scheduler_program

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = Path(__file__).parents[2] / "packaging" / "systemd" / "steelyard-scheduler.service"
GROUPS = Path("/sys/fs/cgroup")
PATIENCE_S = 60.0


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/local/bin/steelyard", str(Path(sys.executable).resolve())))
    verify = ["systemd-analyze", "verify", str(copy)]
    answer = subprocess.run(verify, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert {"Type=notify", "TimeoutStartSec=10s"} <= set(UNIT.read_text().splitlines())


@pytest.fixture
def best_effort() -> Iterator[Path]:
    """Give a control group of version 2 that nobody else uses."""
    unified = next((path for path in (GROUPS, GROUPS / "unified") if (path / "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or unified is None or not (unified / "cgroup.controllers").exists():
        pytest.skip("needs root and control groups of version 2")
    group = unified / f"steelyard-test-{os.getpid()}-notify"
    group.mkdir()
    yield group
    group.rmdir()


@pytest.mark.needs_root
def test_the_governor_tells_a_service_manager_when_it_is_at_work(best_effort: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_S)
        command = [str(govern_program()), "start", "--foreground", "--state", str(tmp_path / "state")]
        governor = subprocess.Popen(
            [*command, "--group", str(best_effort)],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(64) == b"READY=1"
            assert governor.poll() is None
        finally:
            governor.send_signal(signal.SIGTERM)
            assert governor.wait(PATIENCE_S) == 0


def test_where_the_kernel_has_no_class_a_start_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    loader = scheduler_program()
    if loader is None or Path("/sys/kernel/sched_ext").is_dir():
        pytest.skip("needs `make scheduler`, and a kernel without sched_ext")
    for words in ((), ("--foreground",)):
        begin = time.monotonic()
        command = [str(loader), "start", *words, "--state", str(tmp_path / "state")]
        answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        assert time.monotonic() - begin < PATIENCE_S / 10
        assert answer.returncode == 3
        assert "`/sys/kernel/sched_ext` is missing" in answer.stderr
        assert "\n\nhint: " in answer.stderr
        assert not (tmp_path / "state").exists()


def test_a_start_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    loader = scheduler_program()
    if loader is None:
        pytest.skip("needs `make scheduler`")
    # Some other process: the one that started it is this one.
    command = [str(loader), "start", "--state", str(tmp_path / "state"), "--starter", "1"]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert answer.returncode == 4
    assert "process 1, which started this one, has ended" in answer.stderr


def start_that_hangs(folder: Path) -> subprocess.Popen[str]:
    """Start a governor whose lock is a pipe without a reader: nobody gets to open it."""
    folder.mkdir()
    os.mkfifo(folder / "governor.lock")
    command = [str(govern_program()), "start", "--state", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def child_of(process: subprocess.Popen[str]) -> Path:
    """Give the place of the process that it has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + PATIENCE_S
    while not (found := children.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return Path("/proc", found[0])


def is_gone(place: Path) -> bool:
    """Tell whether a process has ended, also where nobody has asked for how."""
    try:
        return (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_governor_that_is_being_started_ends_with_its_starter(tmp_path: Path) -> None:
    starter = start_that_hangs(tmp_path / "state")
    governor = child_of(starter)
    # It has left its starter's session by then, and waits for the lock.
    time.sleep(0.5)
    assert not is_gone(governor)
    starter.kill()
    starter.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while not is_gone(governor):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_governor_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    begin = time.monotonic()
    starter = start_that_hangs(tmp_path / "state")
    governor = child_of(starter)
    _, said = starter.communicate(timeout=PATIENCE_S)
    assert 10 <= time.monotonic() - begin < 20
    assert starter.returncode == 3
    assert said.startswith("error: the governor was not at work within 10000 ms; it was ended\n\nhint: ")
    assert is_gone(governor)
