"""Control groups of launchers, where hosts that share them number their processes alike."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from steelyard.run import cleanup

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_group_of_a_launcher_with_the_same_id_elsewhere_stays(tmp_path: Path) -> None:
    group = tmp_path / "steelyard-7"
    (group / "run-1").mkdir(parents=True)
    launcher = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(launcher, fcntl.LOCK_EX)
    cleanup.remove_groups_of({7}, tmp_path)
    assert (group / "run-1").exists()
    os.close(launcher)
    cleanup.remove_groups_of({7}, tmp_path)
    assert not group.exists()


def test_a_process_elsewhere_is_never_taken_for_this_group_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(cleanup, "PATIENCE_S", 0.1)
    monkeypatch.setattr(os, "kill", lambda process, _signal: killed.append(process))
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: None)
    group = tmp_path / "steelyard-7"
    group.mkdir()
    (group / "cgroup.procs").write_text("0\n4194305\n0\n", encoding="ascii")
    cleanup.remove_groups_of({7}, tmp_path)
    assert set(killed) == {4194305}
