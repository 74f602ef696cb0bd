from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import GateError
from steelyard.run.machine.lock import MachineLock, current_holder, lock_path

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
from pathlib import Path
from steelyard.run.machine.lock import MachineLock
with MachineLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_holder_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        MachineLock(path),
        pytest.raises(GateError, match=f"process {os.getpid()}") as caught,
        MachineLock(path),
    ):
        pass
    assert caught.value.code == "gate.locked"
    with MachineLock(path):
        holder = current_holder(path)
        assert holder is not None
        assert holder.process_id == os.getpid()
    assert current_holder(path) is None


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        holder = current_holder(path)
        assert holder is not None
        assert holder.process_id == child.pid
        with pytest.raises(GateError, match=f"process {child.pid}"), MachineLock(path):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=10)
    with MachineLock(path, patience_s=5):
        pass


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with MachineLock(path):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        assert current_holder(path) is None
    finally:
        child.kill()
        child.wait(timeout=10)


def test_an_impossible_place_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with (
        pytest.raises(GateError, match="cannot open the machine-wide lock") as caught,
        MachineLock(tmp_path / "none" / "lock"),
    ):
        pass
    assert caught.value.hint is not None


def test_the_machine_has_a_place_for_the_lock() -> None:
    assert lock_path().parent.is_dir()
