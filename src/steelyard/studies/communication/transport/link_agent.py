"""Starts a command on one side of a link; run by its path, so it needs nothing but Python.

    python link_agent.py SIDES.json enter SIDE PROGRAM ARGUMENT...     as it is, without a shell
    python link_agent.py SIDES.json ssh [OPTIONS] HOST WORD...         as ssh does: words to a shell

Before the command takes its place, the process enters the side's network namespace and gets a host name,
a file of host names and an IPC namespace of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000  # SOURCE: linux/sched.h
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000  # SOURCE: linux/mount.h
MS_REC = 0x4000
MS_SLAVE = 0x80000
FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
OPTIONS_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"  # SOURCE: ssh(1), SYNOPSIS


def main(words: list[str]) -> NoReturn:
    """Read the command line, enter the side, become the command."""
    if len(words) < 3 or words[1] not in {"enter", "ssh"}:  # noqa: PLR2004
        _fail(f"usage: {__doc__}")
    sides = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    rest = words[2:] if words[1] == "enter" else _without_options(words[2:])
    if len(rest) < 2:  # noqa: PLR2004 - a host and a command
        _fail(f"expected a side and a command, found: {' '.join(rest)}")
    name, *command = rest
    side = _find(sides, name)
    try:
        _enter(side)
    except OSError as error:
        _fail(f"cannot enter side `{name}`: {error}")
    _become(command if words[1] == "enter" else ["/bin/sh", "-c", " ".join(command)])


def _without_options(words: list[str]) -> list[str]:
    """Leave out the options of ssh in front of the host."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        takes_next = len(word) == 2 and word[1] in OPTIONS_WITH_VALUE  # noqa: PLR2004 - a dash, a letter
        place += 2 if takes_next else 1
        if word == "--":
            break
    return words[place:]


def _find(sides: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Find a side by its letter, its host name or its address; a user in front is accepted."""
    wanted = name.rpartition("@")[2]
    found = [side for letter, side in sides.items() if wanted in {letter, side["host"], side["address"]}]
    if not found:
        known = ", ".join(f"{letter}, {side['host']}, {side['address']}" for letter, side in sides.items())
        _fail(f"`{name}` is not a side of this link; known: {known}")
    return found[0]


def _enter(side: dict[str, Any]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(side["network"], os.O_RDONLY | os.O_CLOEXEC)
    _checked(libc.setns(descriptor, CLONE_NEWNET), side["network"])
    os.close(descriptor)
    # Without an IPC namespace of its own, UCX knows the two sides for one host and leaves the cable out.
    own = CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS
    _checked(libc.unshare(own), "own host name, shared memory and mounts")
    # Mounts made here must not travel to the host.
    _mount(libc, "none", "/", MS_REC | MS_SLAVE)
    _mount(libc, side["hosts_file"], "/etc/hosts", MS_BIND)
    _show_own_devices(libc)
    socket.sethostname(side["host"])


def _show_own_devices(libc: ctypes.CDLL) -> None:
    """Mount /sys anew, since it shows the network devices of who mounted it; control groups stay."""
    groups = "/sys/fs/cgroup"
    descriptor = os.open(groups, os.O_PATH | os.O_CLOEXEC) if Path(groups).is_dir() else None
    _mount(libc, "sysfs", "/sys", 0, b"sysfs")
    if descriptor is not None:
        _mount(libc, f"/proc/self/fd/{descriptor}", groups, MS_BIND | MS_REC)
        os.close(descriptor)


def _mount(libc: ctypes.CDLL, source: str, target: str, flags: int, kind: bytes | None = None) -> None:
    places = os.fsencode(source), os.fsencode(target)
    _checked(libc.mount(*places, kind, ctypes.c_ulong(flags), None), target)


def _checked(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _become(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command was given as words
    except FileNotFoundError:
        _fail(f"`{command[0]}` is not found", NOT_FOUND)
    except OSError as error:
        _fail(f"cannot run `{command[0]}`: {error.strerror}", NOT_EXECUTABLE)


def _fail(message: str, code: int = FAILED) -> NoReturn:
    sys.stderr.write(f"link agent: {message}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
