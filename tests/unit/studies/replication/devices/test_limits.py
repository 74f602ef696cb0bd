"""Limits by control groups, on trees that look like those of hosts."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.run.hosts.device import Device
from steelyard.studies.replication.devices.limits import cpu_list, hierarchies, limits_of, make_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

DEVICE = Device("D2", "played", cpus=(1, 2), cpu_percent=70, memory_mib=512)
MOUNT = "30 20 0:26 / /sys/fs/cgroup{} rw - {} cgroup rw,{}\n"


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def _version_1(root: Path) -> None:
    names = ("cpu,cpuacct", "cpuset", "memory")
    mounts = "".join(MOUNT.format(f"/{name}", "cgroup", name) for name in names)
    _file(root / "proc/self/mountinfo", mounts)
    _file(root / "proc/self/cgroup", "3:cpu,cpuacct:/\n2:cpuset:/\n1:memory:/own\n0::/\n")
    _file(root / "sys/fs/cgroup/cpuset/cpuset.mems", "0\n")
    for name in names:
        (root / "sys/fs/cgroup" / name / "own").mkdir(parents=True, exist_ok=True)


def _version_2(root: Path, handed_down: str, own: str = "/user/shell") -> None:
    _file(root / "proc/self/mountinfo", MOUNT.format("", "cgroup2", "nsdelegate"))
    _file(root / "proc/self/cgroup", f"0::{own}\n")
    top = root / "sys/fs/cgroup"
    _file(top / "cgroup.controllers", "cpuset cpu io memory pids\n")
    _file(top / "cgroup.subtree_control", handed_down)
    (top / own.lstrip("/")).mkdir(parents=True, exist_ok=True)


def test_version_1_has_a_group_per_controller(tmp_path: Path) -> None:
    _version_1(tmp_path)
    made = make_limits(DEVICE, "steelyard-key", tmp_path)
    top = tmp_path / "sys/fs/cgroup"
    groups = [
        top / "cpu,cpuacct/steelyard-key",
        top / "cpuset/steelyard-key",
        top / "memory/own/steelyard-key",
    ]
    assert (made.groups, made.missing) == (groups, [])
    assert (groups[0] / "cpu.cfs_quota_us").read_text() == "70000"
    assert (groups[0] / "cpu.cfs_period_us").read_text() == "100000"
    assert (groups[1] / "cpuset.cpus").read_text() == "1,2"
    assert (groups[1] / "cpuset.mems").read_text() == "0"
    assert (groups[2] / "memory.limit_in_bytes").read_text() == str(512 << 20)
    inside = "3:cpu,cpuacct:/steelyard-key\n2:cpuset:/steelyard-key\n1:memory:/own/steelyard-key\n"
    applied, missing = limits_of(DEVICE, inside, tmp_path)
    assert missing == []
    assert applied[0] == "70 % of a CPU (control group, version 1)"
    outside = "3:cpu,cpuacct:/\n2:cpuset:/\n1:memory:/own\n"
    assert limits_of(DEVICE, outside, tmp_path)[0] == []


def test_version_2_has_one_group_where_the_controllers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _version_2(tmp_path, "cpu cpuset memory\n")
    top = tmp_path / "sys/fs/cgroup"
    _refuse(monkeypatch, lambda path: path.name == "cgroup.subtree_control" and path.parent != top)
    made = make_limits(DEVICE, "steelyard-key", tmp_path)
    assert (made.groups, made.missing) == ([top / "steelyard-key"], [])
    assert (top / "steelyard-key/cpu.max").read_text() == "70000 100000"
    assert (top / "steelyard-key/memory.max").read_text() == str(512 << 20)
    assert len(limits_of(DEVICE, "0::/steelyard-key\n", tmp_path)[0]) == 3
    assert not (top / "user/shell/steelyard-key").exists()


def test_what_cannot_be_had_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _version_2(tmp_path, "cpu\n", own="/")
    _refuse(monkeypatch, lambda path: path.name == "cgroup.subtree_control")
    made = make_limits(DEVICE, "steelyard-key", tmp_path)
    top = tmp_path / "sys/fs/cgroup"
    assert made.groups == [top / "steelyard-key"]
    assert made.missing == [
        f"CPUs 1,2: `{top}`: Device or resource busy",
        f"512 MiB of memory: `{top}`: Device or resource busy",
    ]
    (tmp_path / "proc/self/mountinfo").write_text("")
    nothing = make_limits(DEVICE, "steelyard-key", tmp_path)
    assert nothing.groups == []
    assert nothing.missing[0] == "70 % of a CPU: no hierarchy has the controller cpu"


def test_a_device_without_limits_makes_no_group(tmp_path: Path) -> None:
    _version_1(tmp_path)
    assert make_limits(Device("D1"), "steelyard-key", tmp_path).groups == []


def test_an_unlimited_group_is_said_to_be_one(tmp_path: Path) -> None:
    _version_2(tmp_path, "")
    _file(tmp_path / "sys/fs/cgroup/user/shell/cpu.max", "max 100000\n")
    found = limits_of(Device("D2", "played", cpu_percent=70), "0::/user/shell\n", tmp_path)
    assert found == ([], ["70 % of a CPU: the kernel says nothing"])


def test_a_host_without_groups_has_no_hierarchy(tmp_path: Path) -> None:
    assert hierarchies("0::/\n", tmp_path) == {}


def test_lists_of_cpus_are_read() -> None:
    assert cpu_list("0-2,7\n") == (0, 1, 2, 7)
    assert cpu_list("\n") == ()


def _refuse(monkeypatch: pytest.MonkeyPatch, is_refused: Callable[[Path], bool]) -> None:
    """Let writing fail as the kernel does where a group holds processes of its own."""
    write = Path.write_text

    def refusing(path: Path, text: str, encoding: str | None = None) -> int:
        if is_refused(path):
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        return write(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", refusing)
