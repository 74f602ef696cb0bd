"""What a killed session leaves on the host, found by the session's key and removed.

The key is part of the command line or the environment of every process that could outlive its
parent, of every mount below the session's folder, and of the name of every control group.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION_VARIABLE: Final = "STEELYARD_SESSION"
CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
CGROUP_DEPTH: Final = 4
PATIENCE_S: Final = 5.0
KEY_OF_LAUNCHERS: Final = "steelyard-"
LAUNCHER_GROUP: Final = re.compile(r"steelyard-(\d{1,7})(?:\.\d+)?")
OUTSIDE_FILE: Final = "outside"
YOUNG_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of something a dead study left.

    Parameters
    ----------
    name : str
        Namespace or folder.
    refused : str or None
        Why it is still there; ``None`` when it is gone.
    """

    name: str
    refused: str | None = None


def end_remains(folder: Path) -> None:
    """End the processes, mounts and control groups that carry the name of a session's folder."""
    key = folder.name
    ended = end_processes(key)
    unmount_below(folder)
    remove_control_groups(key)
    remove_groups_of(ended)
    remove_dead_launchers_groups()


def note_outside(folder: Path, made: Path) -> None:
    """Note a folder that will be made outside a private one and carries its name."""
    with (folder / OUTSIDE_FILE).open("a", encoding="utf-8") as notes:
        notes.write(f"{made}\n")


def remove_outside(folder: Path) -> None:
    """Remove what `note_outside` noted; never what does not carry the name."""
    with suppress(OSError):
        for line in (folder / OUTSIDE_FILE).read_text(encoding="utf-8").splitlines():
            if Path(line).name == folder.name:
                remove_tree(Path(line))


def end_processes(key: str) -> set[int]:
    """Kill every process whose command line or environment holds `key`; wait until they are gone."""
    deadline = time.monotonic() + PATIENCE_S
    ended: set[int] = set()
    while time.monotonic() < deadline:
        found = list(_processes_of(key))
        if not found:
            break
        ended.update(found)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
    return ended


def unmount_below(folder: Path) -> None:
    """Unmount everything mounted below a folder, the deepest first."""
    prefix = f"{folder}/"
    points = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        point = line.split(" ", 5)[4].replace("\\040", " ")
        if point.startswith(prefix):
            points.append(point)
    for point in reversed(points):
        attempt(["umount", "--lazy", point])


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours; never follows a mount that could not be removed."""
    unmount_below(folder)
    shutil.rmtree(folder, ignore_errors=True)


def remove_control_groups(key: str, root: Path = CGROUP_ROOT) -> None:
    """Remove the control groups whose name holds `key`, in every hierarchy, with what lives in them."""
    for group in list(_control_groups(root, key, CGROUP_DEPTH)):
        remove_control_group(group)


def remove_control_group(group: Path) -> None:
    """Remove one control group and those below it, with what lives in them."""
    deadline = time.monotonic() + PATIENCE_S
    while group.exists() and time.monotonic() < deadline:
        _empty_group(group)
        if group.exists():
            time.sleep(0.02)


def remove_groups_of(launchers: set[int], root: Path = CGROUP_ROOT) -> None:
    """Remove the control groups of launchers that were killed just now, with what lives in them.

    A launcher that is killed together with its guard ends nothing: the program that it measured has an
    environment of its own and is found in its group alone.
    """
    for group in list(_control_groups(root, KEY_OF_LAUNCHERS, CGROUP_DEPTH)):
        found = LAUNCHER_GROUP.fullmatch(group.name)
        if found is not None and int(found[1]) in launchers and not _is_of_another(group):
            remove_control_group(group)


def remove_dead_launchers_groups(root: Path = CGROUP_ROOT) -> None:
    """Remove the control groups of launchers that were killed together with their guards.

    A launcher removes them itself when it starts, but not while the killed one still lingers as a
    process nobody waited for. A living launcher holds a lock on its group; one that has just made
    its group is given a moment to take it.
    """
    for group in list(_control_groups(root, KEY_OF_LAUNCHERS, 1)):
        found = LAUNCHER_GROUP.fullmatch(group.name)
        if found is None or _is_running(int(found[1])):
            continue
        with suppress(OSError):
            if time.time_ns() - group.stat().st_mtime_ns < YOUNG_NS:
                continue
            descriptor = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _empty_group(group)
            finally:
                os.close(descriptor)


def _is_running(process: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _is_of_another(group: Path) -> bool:
    """Whether a launcher with the same id in another namespace of processes lives: none of ours is there."""
    if any(_processes_in(folder) for folder, _, _ in os.walk(group)):
        return False
    with suppress(FileNotFoundError):
        descriptor = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _processes_in(group: str) -> list[int]:
    """Give the processes of a group that are in this namespace; `kill` takes the 0 of others for us."""
    try:
        found = map(int, (Path(group) / "cgroup.procs").read_text(encoding="ascii").split())
    except OSError:
        return []
    return [each for each in found if each]


def _empty_group(group: Path) -> None:
    """Kill what lives in a group and remove the group with its descendants, the deepest first."""
    for folder, _, _ in os.walk(group, topdown=False):
        for process in _processes_in(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with suppress(OSError):  # with a priority of real time it may wait for seconds to die
                os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0))
        with suppress(OSError):
            Path(folder).rmdir()


def _control_groups(folder: Path, key: str, depth: int) -> Iterator[Path]:
    try:
        children = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in children:
        if key in entry.name:
            yield Path(entry.path)
        elif depth > 0:
            yield from _control_groups(Path(entry.path), key, depth - 1)


def _processes_of(key: str) -> Iterator[int]:
    wanted = key.encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            process = Path(entry.path)
            if wanted in (process / "cmdline").read_bytes() or wanted in (process / "environ").read_bytes():
                yield int(entry.name)
