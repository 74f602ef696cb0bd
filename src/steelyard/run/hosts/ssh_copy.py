"""What a part recorded on another host, copied back to where the part lies here, as far as it is written.

Files of runs come before the journal that says they are complete, and the journal only grows: whenever this
stops, what is here is the begin of what is there. Nothing that a host says leads out of the part's folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable
from steelyard.run.hosts.ssh_session import CHUNK_BYTES, HostRefusedError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.run.hosts.ssh_session import Session

JOURNAL: Final = "journal.jsonl"
PROVENANCE: Final = "provenance.json"
TRACES: Final = "traces"
"""As the record stage calls them, which this one does not know."""
LARGEST_BYTES: Final = {JOURNAL: 1 << 32, PROVENANCE: 1 << 24}
LARGEST_FILE_BYTES: Final = 1 << 32
LARGEST_PART_BYTES: Final = 1 << 36
"""64 GiB of files of runs in one look."""
MOST_FILES: Final = 10_000
"""Of one run."""
MOST_STARTS: Final = 256
OUTPUT: Final = "output.txt"
TAIL_BYTES: Final = 1 << 16
"""So much is copied of what a part wrote to standard output and error, and of each log."""
LONGEST_NAME_BYTES: Final = 255
_START: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_OF_RUN: Final = re.compile(r"\d{6,12}\.\d{2,6}", re.ASCII)


def copy_part(session: Session, part: Path, *, is_over: bool) -> None:
    """Bring what is new of a part.

    Parameters
    ----------
    session : Session
        Connection to its host.
    part : Path
        Folder of the part here; there it has the same name.
    is_over : bool
        Whether its process is gone: then its last words come, too.

    Raises
    ------
    HostAwayError
        If the host goes away; what is here by then stays, and is gone on with.
    HostRefusedError
        If the host sends what no part writes.
    DataError
        If it cannot be written here.
    """
    found = _starts(session.ask("starts", part.name))
    try:
        for start, (sizes, folders) in found.items():
            here, there = part / "starts" / start, f"{part.name}/starts/{start}"
            here.mkdir(parents=True, exist_ok=True)
            for name in sorted(folders):
                _copy_folder(session, here / TRACES / name, f"{there}/{TRACES}/{name}")
            _copy_provenance(session, here, there, sizes.get(PROVENANCE, 0), is_over=is_over)
            if JOURNAL in sizes:
                _append(session, here / JOURNAL, f"{there}/{JOURNAL}", sizes[JOURNAL])
            if is_over:
                _copy_tails(session, here / "logs", f"{there}/logs")
        if is_over:
            _copy_tails(session, part, part.name, (OUTPUT,))
    except OSError as error:
        if isinstance(error, ConnectionError):
            raise
        raise unwritable(part, error, "free some space there, then continue with --resume") from error


def _starts(lines: Iterable[str]) -> dict[str, tuple[dict[str, int], set[str]]]:
    """Give the sizes of the files of each start, and the folders of its runs."""
    found: defaultdict[str, tuple[dict[str, int], set[str]]] = defaultdict(lambda: ({}, set()))
    for line in lines:
        said, _, path = line.partition(" ")
        start, *rest = path.split("/")
        if _START.fullmatch(start) is None:
            raise _strange(path)
        sizes, folders = found[start]
        if said == "d":
            if len(rest) != 2 or rest[0] != TRACES or _OF_RUN.fullmatch(rest[1]) is None:  # noqa: PLR2004
                raise _strange(path)
            folders.add(rest[1])
        elif len(rest) == 1 and rest[0] in LARGEST_BYTES:
            sizes[rest[0]] = _size(said, path, LARGEST_BYTES[rest[0]])
    if len(found) > MOST_STARTS:
        message = f"it began a part {len(found)} times; expected at most {MOST_STARTS}"
        raise HostRefusedError(message)
    return dict(found)


def _size(said: str, path: str, largest: int) -> int:
    # No number of a bounded text is too long to read: 20 digits are 64 bits.
    is_number = said.isascii() and said.isdecimal()
    if not is_number or len(said) > 20 or int(said) > largest:  # noqa: PLR2004
        message = f"`{printable(path)}` has {printable(said)} bytes; expected at most {largest}"
        raise HostRefusedError(message)
    return int(said)


def _strange(path: str) -> HostRefusedError:
    return HostRefusedError(f"no part writes `{printable(path)}`")


def _files(session: Session, there: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in session.ask("files", there):
        said, _, name = line.partition(" ")
        too_long = len(os.fsencode(name)) > LONGEST_NAME_BYTES
        if name in {"", ".", ".."} or "/" in name or "\0" in name or too_long:
            path = f"{there}/{name}"
            raise _strange(path)
        found[name] = _size(said, name, LARGEST_FILE_BYTES)
    if len(found) > MOST_FILES or sum(found.values()) > LARGEST_PART_BYTES:
        message = f"`{there}` has {len(found)} files of {sum(found.values())} bytes; "
        message += f"expected at most {MOST_FILES} of {LARGEST_PART_BYTES} bytes"
        raise HostRefusedError(message)
    return found


def _copy_folder(session: Session, here: Path, there: str) -> None:
    """Bring the files of a run, which do not change any more: all, or none."""
    if here.exists():
        return
    partial = here.with_name(f".{here.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, size in _files(session, there).items():
        _append(session, partial / name, f"{there}/{name}", size)
    partial.replace(here)
    _sync(here.parent)


def _append(session: Session, here: Path, there: str, size: int) -> None:
    """Bring what a file has more than here."""
    place = here.stat().st_size if here.exists() else 0
    if place >= size and here.exists():
        return
    with here.open("ab", buffering=0) as file:
        while place < size:
            content = session.read(there, place, min(size - place, CHUNK_BYTES))
            place += len(content)
            while content:
                content = content[file.write(content) :]
        os.fsync(file.fileno())


def _copy_provenance(session: Session, here: Path, there: str, size: int, *, is_over: bool) -> None:
    """Bring what a start says of its host; it is written again when the machine is ready, and at the end."""
    target = here / PROVENANCE
    if not size or (target.exists() and target.stat().st_size == size and not is_over):
        return
    partial = here / f".{PROVENANCE}.partial"
    partial.unlink(missing_ok=True)
    _append(session, partial, f"{there}/{PROVENANCE}", size)
    if not is_over and not _is_document(partial):
        return  # written again and longer since its size was asked for: the next look brings it
    partial.replace(target)
    _sync(here)


def _is_document(path: Path) -> bool:
    """Whether a file has a whole JSON document; the begin of one is none."""
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return True


def _copy_tails(session: Session, here: Path, there: str, names: tuple[str, ...] = ()) -> None:
    found = _files(session, there)
    for name in names or found:
        size = found.get(name, 0)
        begin = max(size - TAIL_BYTES, 0)
        if size:
            here.mkdir(exist_ok=True)
            (here / name).write_bytes(session.read(f"{there}/{name}", begin, size - begin))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
