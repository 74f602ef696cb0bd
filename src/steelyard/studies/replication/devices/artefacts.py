"""What ``make deps-replication`` built, brought to another host once."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Final

from steelyard.run.state import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.replication.devices.remote import RemoteGround

OF_MACHINE: Final = ("python",)
"""What is built for one kind of processor and is left out where the other host has another one."""
BROUGHT_FILE: Final = ".brought"
"""Says of a folder that it was brought, not built there."""
SEND_S: Final = 60.0


def artefacts_folder() -> Path:
    """Give the folder of this host in which ``make deps-replication`` leaves what it builds."""
    return cache_folder() / "replication"


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
    looked = ground.aside(["sh", "-c", _LOOK, "sh", folder], timeout_s=SEND_S).output.split()
    there = looked[1] if len(looked) == 2 else ""  # noqa: PLR2004 - whether it was brought, and what it is
    if there and looked[0] == "built":
        return f"built there, {_named(there)}", []
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
        ground.require(["sh", "-c", _REPLACE, "sh", folder, f"{parent}/{fresh}"], timeout_s=SEND_S)
    return f"brought, {_named(digest)}", missing


def _named(digest: str) -> str:
    return f"sha256 {digest[:16]}"


_DIGEST: Final = f"""
# The SHA-256 of the folder's names, kinds, rights to execute and contents; ARGUMENTS name what is left out.
digest() {{
  for left_out in "$@"; do set -- "$@" ! -path "./$left_out" ! -path "./$left_out/*"; shift; done
  {{
    find . -type d "$@" -exec printf 'd %s\\n' {{}} +
    find . -type f "$@" ! -path ./{BROUGHT_FILE} -exec sha256sum {{}} +
    find . -type f "$@" -perm -100 -exec printf 'x %s\\n' {{}} +
    find . -type l "$@" -exec sh -c 'for l; do printf "l %s %s\\n" "$l" "$(readlink "$l")"; done' sh {{}} +
  }} | LC_ALL=C sort | sha256sum | cut -c 1-64
}}
"""
_LOOK: Final = f"""{_DIGEST}
cd "$1" 2> /dev/null || exit 0
shift
[ -e {BROUGHT_FILE} ] && echo brought || echo built
digest "$@"
"""
_REPLACE: Final = f"""
: > "$2/{BROUGHT_FILE}" && rm -rf "$1" && mv "$2" "$1"
"""


@cache
def digest_of(folder: Path, left_out: tuple[str, ...] = ()) -> str:
    """Give the SHA-256 of a folder here, as another host computes that of its own.

    Parameters
    ----------
    folder : Path
        Which.
    left_out : tuple of str
        Names directly below it that do not count.
    """
    command = ["sh", "-c", _LOOK, "sh", str(folder), *left_out]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return answer.stdout.split()[1]
