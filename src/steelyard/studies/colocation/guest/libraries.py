"""A program for the guest with its libraries, at the places where it looks for them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.run.guest.initramfs import Entry, is_static_program
from steelyard.studies.colocation.guest.task_init import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = "steelyard/bin"
LIBRARY: Final = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
TIMEOUT_S: Final = 30


def program_entries(programs: Mapping[str, Path]) -> list[Entry]:
    """Give the programs, and the libraries and folders of those that are not static.

    Parameters
    ----------
    programs : Mapping
        From the name below ``/steelyard/bin`` to the program on this machine.

    Raises
    ------
    UsageError
        If a program cannot be read, or a library of it is missing.
    """
    entries = []
    libraries: set[Path] = set()
    for name, path in sorted(programs.items()):
        try:
            content = path.read_bytes()
        except OSError as error:
            message = f"cannot read `{path}`: {error.strerror}"
            raise UsageError(message, code="usage.guest-program") from error
        entries.append(Entry.file(f"{PLACE}/{name}", content, 0o755))
        if content.startswith(b"\x7fELF") and not is_static_program(content):
            libraries |= _libraries(path)
    folders: set[str] = set()
    for library in libraries:
        folders |= {str(parent)[1:] for parent in PurePosixPath(library).parents if str(parent) != "/"}
    entries += [Entry.folder(name) for name in sorted(folders - set(FOLDERS))]
    entries += [Entry.file(str(path)[1:], path.read_bytes(), 0o755) for path in sorted(libraries)]
    return entries


def _libraries(program: Path) -> set[Path]:
    """Give the libraries as the loader of this machine finds them."""
    command = ["/usr/bin/ldd", str(program)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    missing = re.findall(r"^\s*(\S+) => not found", answer.stdout, re.MULTILINE)
    if answer.returncode != 0 or missing:
        message = f"cannot copy `{program}` into a guest: {', '.join(missing) or answer.stderr.strip()}"
        raise UsageError(message, hint="install its libraries", code="usage.guest-program")
    return {Path(found) for found in LIBRARY.findall(answer.stdout)}
