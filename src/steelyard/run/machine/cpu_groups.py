"""Control groups of the cpu controller, for programs that make their own groups to share CPUs by weight.

A process cannot make groups wherever it is: version 2 lets a group hand the controller down only if it holds
no process itself. `cpu_controller` finds the nearest place where groups can be made, and `groups_for_trials`
makes one there. It is named and locked as a launcher's group is, so that whoever sweeps those finds it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.run.cleanup import KEY_OF_LAUNCHERS, remove_control_group

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROLLER: Final = "cpu"
HANDED_DOWN: Final = "cgroup.subtree_control"
OFFERED: Final = "cgroup.controllers"
LARGEST_SHARES: Final = 262_144
"""SOURCE: `MAX_SHARES` in the kernel's ``sched/sched.h``."""
LARGEST_WEIGHT: Final = 10_000
"""SOURCE: `CGROUP_WEIGHT_MAX` in the kernel's ``cgroup.h``."""
REAL_TIME_FILE: Final = "cpu.rt_runtime_us"
REAL_TIME_RUNTIME_US: Final = 800_000
"""Real-time time that all in a group get of each second of a CPU: the rest stays to everybody else."""

PROBE_SUFFIX: Final = ".probe"


@dataclass(frozen=True, slots=True)
class CpuController:
    """Where groups of the cpu controller can be made.

    Parameters
    ----------
    folder : Path or None
        Group below which they are made; ``None`` where that is impossible.
    version : int
        1 or 2; 0 where there is no controller.
    files : frozenset of str
        Files of a group there.
    reason, repair : str
        Why it is impossible, and what may change that; empty where it is possible.
    """

    folder: Path | None
    version: int = 0
    files: frozenset[str] = frozenset()
    reason: str = ""
    repair: str = ""


def cpu_controller(root: Path = Path("/")) -> CpuController:
    """Find where groups of the cpu controller can be made, by making one and removing it.

    Parameters
    ----------
    root : Path
        Folder under which ``/proc`` and ``/sys`` lie.
    """
    found = _mounted(root)
    if found is None:
        return CpuController(
            None,
            reason="no control group hierarchy with the cpu controller is mounted",
            repair="boot with `systemd.unified_cgroup_hierarchy=1`",
        )
    mount, group, version = found
    own = mount / group.relative_to("/")
    places = (
        [own] if version == 1 else [place for place in (own, *own.parents) if place.is_relative_to(mount)]
    )
    if version == 1:
        places += [place for place in own.parents if place.is_relative_to(mount)]
    reason = f"no group above `{own}` delegates the controller"
    for place in places:
        try:
            files = _tried(place, is_top=place == mount, version=version)
        except OSError as error:
            reason = f"cannot create a group in `{place}`: {error.strerror}"
            continue
        if files is not None:
            return CpuController(place, version, files)
    repair = "run as root, or `systemd-run --user --scope -p Delegate=yes steelyard ...`"
    return CpuController(None, version, reason=reason, repair=repair)


@contextmanager
def groups_for_trials(controller: CpuController) -> Iterator[Path]:
    """Make a group of the highest weight whose children have the cpu controller; remove it with all in it.

    The weight is the highest so that what is measured inside does not depend on what is outside.

    Raises
    ------
    CapabilityError
        If it cannot be made.
    """
    if controller.folder is None:
        raise CapabilityError(controller.reason, hint=controller.repair, code="capability.cpu-groups")
    group = controller.folder / f"{KEY_OF_LAUNCHERS}{os.getpid()}"
    try:
        group.mkdir(exist_ok=True)
        lock = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        message = f"cannot create the control group `{group}`: {error.strerror}"
        raise CapabilityError(message, hint="run as root", code="capability.cpu-groups") from error
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _prepare(group, controller.version)
        yield group
    finally:
        remove_control_group(group)
        os.close(lock)


def _prepare(group: Path, version: int) -> None:
    name, weight = ("cpu.shares", LARGEST_SHARES) if version == 1 else ("cpu.weight", LARGEST_WEIGHT)
    try:
        (group / name).write_text(str(weight), encoding="ascii")
        if version > 1:
            (group / HANDED_DOWN).write_text(f"+{CONTROLLER}", encoding="ascii")
        if (group / REAL_TIME_FILE).exists():
            (group / REAL_TIME_FILE).write_text(str(REAL_TIME_RUNTIME_US), encoding="ascii")
    except OSError as error:
        message = f"cannot set up the control group `{group}`: {error.strerror}"
        raise CapabilityError(message, hint="run as root", code="capability.cpu-groups") from error


def _mounted(root: Path) -> tuple[Path, Path, int] | None:
    """Give the mount point, the group of this process below it, and the version."""
    try:
        mounts = (root / "proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        own = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    groups = {names: path for _, names, path in (line.split(":", 2) for line in own)}
    for line in mounts:
        before, _, after = line.partition(" - ")
        point = root / before.split(" ")[4].replace("\\040", " ").lstrip("/")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2" and CONTROLLER in _words(point / OFFERED):
            return point, Path(groups.get("", "/")), 2
        if kind == "cgroup" and CONTROLLER in options.split(","):
            name = next((names for names in groups if CONTROLLER in names.split(",")), "")
            return point, Path(groups.get(name, "/")), 1
    return None


def _tried(place: Path, *, is_top: bool, version: int) -> frozenset[str] | None:
    """Make a group and give its files; ``None`` if the controller is not handed down to it."""
    if version > 1 and CONTROLLER not in _words(place / HANDED_DOWN):
        if not is_top:
            return None
        (place / HANDED_DOWN).write_text(f"+{CONTROLLER}", encoding="ascii")
    probe = place / f"{KEY_OF_LAUNCHERS}{os.getpid()}{PROBE_SUFFIX}"
    probe.mkdir(exist_ok=True)
    try:
        return frozenset(path.name for path in probe.iterdir())
    finally:
        with suppress(OSError):
            probe.rmdir()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []
