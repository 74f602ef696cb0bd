"""The names of a link's namespaces, and the removal of those whose owner is gone.

A link leaves nothing outside the kernel but a folder of small files, and everything it makes carries its
owner in its name: the process, when that started, and the space in which its number means something.
So the name is the journal: what a killed study left is found by it, without a file that could be lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final

from steelyard.run.cleanup import Removal
from steelyard.run.isolation.attempt import attempt
from steelyard.run.machine.journal import process_start

NAMESPACES: Final = Path("/run/netns")
"""SOURCE: ip-netns(8): a named namespace is a file there."""
SIDES: Final = ("a", "b")
PATIENCE_S: Final = 5.0
_KEY: Final = re.compile(r"steelyard-(\d+)-(\d+)-(\d+)-(\d+)")
_NUMBERS: Final = count()


def new_key() -> str:
    """Give the name of a new link of this process: no other living process has or will have it."""
    process = os.getpid()
    return f"steelyard-{process}-{process_start(process)}-{_process_space()}-{next(_NUMBERS)}"


def is_abandoned(key: str) -> bool:
    """Whether a name is that of a link, by a process that is gone.

    What belongs to another space of process numbers (a container) cannot be judged from here, and is
    never called abandoned.

    Examples
    --------
    >>> is_abandoned("steelyard"), is_abandoned("somebody-1-2-3-4")
    (False, False)
    """
    matched = _KEY.fullmatch(key)
    if matched is None or int(matched[3]) != _process_space():
        return False
    return not _lives(int(matched[1]), int(matched[2]))


def folder_of(key: str) -> Path:
    """Give the folder of a link's files."""
    return Path(tempfile.gettempdir()) / key


def remove_abandoned_links(root: Path = NAMESPACES) -> list[Removal]:
    """Remove the namespaces and folders of dead processes of this user; those of others stay."""
    done = []
    for path in _own_entries(root):
        key, _, side = path.name.rpartition("-")
        if side in SIDES and is_abandoned(key):
            done.append(Removal(path.name, remove_namespace(path.name)))
    for path in _own_entries(Path(tempfile.gettempdir())):
        if is_abandoned(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            done.append(Removal(str(path), "cannot be removed" if path.exists() else None))
    return done


def remove_namespace(name: str) -> str | None:
    """End what runs in a namespace and remove it; give the reason if it is still there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        inside = attempt(["ip", "netns", "pids", name]).output.split()
        if not inside:
            break
        for process in inside:
            with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
                os.kill(int(process), signal.SIGKILL)
        time.sleep(0.02)
    said = attempt(["ip", "netns", "del", name])
    return said.last_words if (NAMESPACES / name).exists() else None


def _own_entries(folder: Path) -> list[Path]:
    """Give what lies in a folder and belongs to this user."""
    found = []
    with contextlib.suppress(OSError):
        for entry in sorted(folder.iterdir()):
            with contextlib.suppress(OSError):
                if entry.lstat().st_uid == os.geteuid():
                    found.append(entry)
    return found


def _lives(process: int, start: int) -> bool:
    """Whether a process is the one that began then, and more than a zombie."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    state = text.rpartition(")")[2].split()[0]
    return state not in {"Z", "X"} and process_start(process) == start


def _process_space() -> int:
    """Give the number of the space that this process's number belongs to."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0
