"""What ``make deps-replication`` built, brought to another host once."""

from __future__ import annotations

import hashlib
import os
import stat
from functools import cache
from typing import TYPE_CHECKING, Final

from steelyard.run.devices.device import artefacts_folder

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.run.devices.remote import RemoteGround

OF_MACHINE: Final = ("python",)
"""What is built for one kind of processor and is left out where the other host has another one."""
DIGEST_FILE: Final = ".brought"
"""Says of a folder that it was brought, and what was in it."""
SEND_S: Final = 60.0


def send_artefacts(ground: RemoteGround, machine: str) -> tuple[str, list[str]]:
    """Bring what was built to another host, unless it has it: brought before, or built there.

    Parameters
    ----------
    ground : RemoteGround
        Connected.
    machine : str
        Kind of the other host's processor, as ``uname -m`` says it.

    Returns
    -------
    tuple
        What there is on the other host, in words, and what could not be brought, with the reason.
    """
    source, folder = artefacts_folder(), ground.artefacts
    there = ground.aside(["sh", "-c", _LOOK, "sh", folder]).output.strip()
    if there == "built":
        return "built there", []
    if not source.is_dir():
        return "none", ["nothing was built here that could be brought: make deps-replication"]
    own = os.uname().machine
    left_out = OF_MACHINE if machine != own else ()
    missing = [
        f"`{name}` is built for {own} and not brought to {machine}: make deps-replication there"
        for name in left_out
        if (source / name).exists()
    ]
    digest = digest_of(source, left_out)
    if there != digest:
        parent, _, name = folder.rpartition("/")
        fresh = f"{name}.new"
        ground.require(["sh", "-c", 'mkdir -p "$1" && rm -rf "$1/$2"', "sh", parent, fresh])
        ground.send(source, fresh, parent, left_out)
        words = ["sh", "-c", _REPLACE, "sh", folder, f"{parent}/{fresh}", digest]
        ground.require(words, timeout_s=SEND_S)
    return f"brought, sha256 {digest[:16]}", missing


_LOOK: Final = f"""
if [ -f "$1/{DIGEST_FILE}" ]; then cat "$1/{DIGEST_FILE}"
elif [ -d "$1" ]; then echo built
fi
"""
_REPLACE: Final = f"""
printf '%s\\n' "$3" > "$2/{DIGEST_FILE}" && rm -rf "$1" && mv "$2" "$1"
"""


@cache
def digest_of(folder: Path, left_out: tuple[str, ...] = ()) -> str:
    """Give the SHA-256 of a folder: of names, kinds, rights and contents, in order.

    Parameters
    ----------
    folder : Path
        Which.
    left_out : tuple of str
        Names directly below it that do not count.
    """
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] in left_out:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = str(path.readlink()).encode()
        elif stat.S_ISREG(mode):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        else:
            content = b""
        for part in (str(name).encode(), oct(mode).encode(), content):
            total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()
