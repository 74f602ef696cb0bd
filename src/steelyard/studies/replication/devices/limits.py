"""Limits of a device that is played by a part of this host: control groups of our own, of either version.

A group carries the name of the place's private folder, so that it is found and removed also after a kill.
What was asked for is read back from the groups a process of the place is in, natively and in a container
alike: what counts as applied is what the kernel says.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.cleanup import remove_control_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.run.hosts.device import Device

PERIOD_US: Final = 100_000
"""Period in which the share of CPU time counts; what container engines take too."""
MEBIBYTE: Final = 1 << 20
PERCENT: Final = 100
_LIMIT_FILES: Final = {
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
    "cpuset": ("cpuset.cpus", "cpuset.cpus"),
    "memory": ("memory.limit_in_bytes", "memory.max"),
}
"""File of a limit by controller, for version 1 and 2."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where a controller's groups are.

    Parameters
    ----------
    mount : Path
        Its mount point.
    version : int
        1 or 2.
    group : str
        Group of the process that was asked about, from the mount point.
    """

    mount: Path
    version: int
    group: str

    @property
    def folder(self) -> Path:
        """The group of the process."""
        return self.mount / self.group.lstrip("/")

    def places(self) -> Iterator[Path]:
        """Give where a group may be made, the nearest first."""
        folder = self.folder
        while folder != self.mount and folder.is_relative_to(self.mount):
            yield folder
            folder = folder.parent
        yield self.mount


@dataclass(slots=True)
class Limits:
    """What was made for a device, and what could not be.

    Parameters
    ----------
    groups : list of Path
        Groups that its processes enter.
    missing : list of str
        What could not be had, with the reason.
    """

    groups: list[Path] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def remove(self) -> None:
        """Remove the groups with what lives in them."""
        for group in self.groups:
            remove_control_group(group)
        self.groups.clear()


def hierarchies(groups_of_process: str, root: Path = Path("/")) -> dict[str, Hierarchy]:
    """Give where the groups of `cpu`, `cpuset` and `memory` are, from what ``/proc/PROCESS/cgroup`` says."""
    lines = (line.split(":", 2) for line in groups_of_process.splitlines() if line.count(":") > 1)
    groups = {names: path for _, names, path in lines}
    found: dict[str, Hierarchy] = {}
    for line in _read(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        point = root / before.split(" ")[4].replace("\\040", " ").lstrip("/")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            offered = _read(point / "cgroup.controllers").split()
            group, version = groups.get("", "/"), 2
        elif kind == "cgroup":
            offered = options.split(",")
            names = next((one for one in groups if set(one.split(",")) & set(offered)), "")
            group, version = groups.get(names, "/"), 1
        else:
            continue
        for controller in set(offered) & set(_LIMIT_FILES):
            found.setdefault(controller, Hierarchy(point, version, group))
    return found


def make_limits(device: Device, key: str, root: Path = Path("/")) -> Limits:
    """Make the groups of a device."""
    made = Limits()
    known = hierarchies(_read(root / "proc/self/cgroup"), root)
    shared: Path | None = None
    for controller in _wanted(device):
        where = known.get(controller)
        if where is None:
            made.missing.append(f"{_said(device, controller)}: no hierarchy has the controller {controller}")
            continue
        # A process is in one group of version 2 only: the controllers share it.
        places = [shared] if shared is not None and where.version > 1 else list(where.places())
        reason = _try_places(places, (key, controller, device, where), made)
        if reason:
            made.missing.append(f"{_said(device, controller)}: {reason}")
        elif where.version > 1:
            shared = made.groups[-1].parent
    return made


def _try_places(places: Sequence[Path], wanted: tuple[str, str, Device, Hierarchy], made: Limits) -> str:
    """Make a group at the first place where its limit can be written; give why there is none, or nothing."""
    key, controller, device, where = wanted
    reason = "cannot create a group"
    for place in places:
        group = place / key
        try:
            _make_group(group, controller, where)
            _write(group, controller, device, where.version)
        except OSError as error:
            reason = f"`{place}`: {error.strerror}"
            if group not in made.groups:
                with suppress(OSError):
                    group.rmdir()
            continue
        if group not in made.groups:
            made.groups.append(group)
        return ""
    return reason


def limits_of(device: Device, groups_of_process: str, root: Path = Path("/")) -> tuple[list[str], list[str]]:
    """Say which limits of a device hold for a process of its place, and which do not, with what is there."""
    known = hierarchies(groups_of_process, root)
    applied, missing = [], []
    for controller in _wanted(device):
        said, where = _said(device, controller), known.get(controller)
        found = None if where is None else _in_force(where, controller)
        if found == _asked(device, controller):
            assert where is not None  # noqa: S101 - it gave what was found
            applied.append(f"{said} (control group, version {where.version})")
        else:
            missing.append(f"{said}: the kernel says {'nothing' if found is None else found}")
    return applied, missing


def cpu_list(text: str) -> tuple[int, ...]:
    """Read a list of CPUs in the kernel's form.

    Examples
    --------
    >>> cpu_list("0-2,5")
    (0, 1, 2, 5)
    """
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _wanted(device: Device) -> list[str]:
    asked = {"cpu": device.cpu_percent, "cpuset": device.cpus, "memory": device.memory_mib}
    return [controller for controller, limit in asked.items() if limit is not None]


def _said(device: Device, controller: str) -> str:
    if controller == "cpu":
        return f"{device.cpu_percent} % of a CPU"
    if controller == "memory":
        return f"{device.memory_mib} MiB of memory"
    return f"CPUs {','.join(map(str, device.cpus or ()))}"


def _asked(device: Device, controller: str) -> object:
    if controller == "cpu":
        return device.cpu_percent
    return device.memory_mib if controller == "memory" else device.cpus


def _in_force(where: Hierarchy, controller: str) -> object:
    """Give the limit that a group states, in the device's units; ``None`` where it states none."""
    text = _read(where.folder / _LIMIT_FILES[controller][where.version - 1]).strip()
    try:
        if controller == "cpuset":
            return cpu_list(text)
        if controller == "memory":
            return int(text) // MEBIBYTE
        quota, period = text.split() if where.version > 1 else (text, _period(where))
        return None if int(quota) < 0 else round(int(quota) * PERCENT / int(period))
    except ValueError:
        return None


def _period(where: Hierarchy) -> str:
    return _read(where.folder / "cpu.cfs_period_us")


def _make_group(group: Path, controller: str, where: Hierarchy) -> None:
    """Make a group that has the controller."""
    if where.version > 1 and controller not in _read(group.parent / "cgroup.subtree_control").split():
        (group.parent / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
    group.mkdir(exist_ok=True)


def _write(group: Path, controller: str, device: Device, version: int) -> None:
    path = group / _LIMIT_FILES[controller][version - 1]
    if controller == "cpu":
        quota = (device.cpu_percent or 0) * PERIOD_US // PERCENT
        if version == 1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
        path.write_text(str(quota) if version == 1 else f"{quota} {PERIOD_US}", encoding="ascii")
    elif controller == "memory":
        path.write_text(str((device.memory_mib or 0) * MEBIBYTE), encoding="ascii")
    else:
        nodes = _read(group.parent / "cpuset.mems").strip()
        if version == 1:
            (group / "cpuset.mems").write_text(nodes, encoding="ascii")
        path.write_text(",".join(map(str, device.cpus or ())), encoding="ascii")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
