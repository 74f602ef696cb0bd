from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import CapabilityError
from steelyard.run.machine.cpu_groups import CpuController, cpu_controller, groups_for_trials
from steelyard.studies.colocation.scheduling import read_scheduling

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timing  # groups share what the host grants to real-time tasks

UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
LEGACY = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"


def host(root: Path, mounts: str, own: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/mountinfo": mounts, "proc/self/cgroup": own, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_the_nearest_group_that_hands_the_controller_down_is_taken(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cgroup.controllers": "cpu memory",
        "sys/fs/cgroup/a/cgroup.subtree_control": "cpu",
        "sys/fs/cgroup/a/b/cgroup.subtree_control": "memory",
    }
    found = cpu_controller(host(tmp_path, UNIFIED, "0::/a/b\n", files))
    assert (found.folder, found.version) == (tmp_path / "sys/fs/cgroup/a", 2)
    assert [path.name for path in (tmp_path / "sys/fs/cgroup/a").iterdir() if "steelyard" in path.name] == []


def test_version_1_takes_the_own_group(tmp_path: Path) -> None:
    found = cpu_controller(
        host(tmp_path, LEGACY, "1:cpu:/x\n0::/\n", {"sys/fs/cgroup/cpu/x/cpu.shares": "1024"})
    )
    assert (found.folder, found.version) == (tmp_path / "sys/fs/cgroup/cpu/x", 1)


def test_without_the_controller_there_is_a_reason_and_a_repair(tmp_path: Path) -> None:
    found = cpu_controller(host(tmp_path, UNIFIED, "0::/\n", {"sys/fs/cgroup/cgroup.controllers": "memory"}))
    assert found.folder is None
    assert found.reason
    assert found.repair
    with pytest.raises(CapabilityError, match="cpu controller"), groups_for_trials(found):
        pass


def test_a_host_without_throttling_has_no_real_time_service(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/sched_rt_runtime_us").write_text("-1\n", encoding="ascii")
    found = read_scheduling(tmp_path)
    assert not found.real_time.available
    assert "throttle" in str(found.real_time.reason)
    assert not found.loadable.available
    assert not found.weighted_groups.available


@pytest.mark.needs_root
def test_a_group_for_trials_is_heavy_and_is_removed_with_what_is_in_it() -> None:
    controller: CpuController = cpu_controller()
    if controller.folder is None:
        pytest.skip(f"cgroup.cpu: {controller.reason}")
    with groups_for_trials(controller) as group:
        assert group.name == f"steelyard-{os.getpid()}"
        (group / "service").mkdir()
        heavy = {1: ("cpu.shares", "262144"), 2: ("cpu.weight", "10000")}[controller.version]
        assert (group / heavy[0]).read_text(encoding="ascii").strip() == heavy[1]
        assert (group / "service" / heavy[0]).exists()
    assert not group.exists()
