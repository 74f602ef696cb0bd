"""The guest's initial file system: a newc archive with the launcher as ``/init`` and the programs.

References
----------
.. [1] Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.run.guest.kernel import guest_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAGIC: Final = "070701"
TRAILER: Final = "TRAILER!!!"
ALIGNMENT: Final = 4
ELF_64: Final = b"\x7fELF\x02"
INTERPRETER_SEGMENT: Final = 3  # SOURCE: elf.h, PT_INTERP
FOLDERS: Final = (
    *(
        "bin",
        "box",
        "dev",
        "etc",
        "lib",
        "lib64",
        "proc",
        "root",
        "run",
        "sys",
        "tmp",
        "usr",
        "usr/bin",
        "usr/lib",
    ),
    *("var", "var/tmp", "steelyard", "steelyard/shared"),
)
OPEN_FOLDERS: Final = frozenset({"tmp", "var/tmp", "box"})
ACCOUNTS: Final = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
GROUPS: Final = b"root:x:0:\nnogroup:x:65534:\n"
NULL_DEVICE: Final = (1, 3)
CONSOLE_DEVICE: Final = (5, 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder, link or device of an archive.

    Parameters
    ----------
    path : str
        Without leading slash.
    mode : int
        Type and permissions.
    content : bytes
        Content of a file, target of a link.
    device : tuple of int
        Major and minor number of a device.
    """

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)

    @classmethod
    def folder(cls, path: str, permissions: int = 0o755) -> Entry:
        """Give a folder."""
        return cls(path, stat.S_IFDIR | permissions)

    @classmethod
    def file(cls, path: str, content: bytes, permissions: int = 0o644) -> Entry:
        """Give a regular file."""
        return cls(path, stat.S_IFREG | permissions, content)

    @classmethod
    def link(cls, path: str, target: str) -> Entry:
        """Give a symbolic link."""
        return cls(path, stat.S_IFLNK | 0o777, target.encode())

    @classmethod
    def character_device(cls, path: str, device: tuple[int, int]) -> Entry:
        """Give a device node."""
        return cls(path, stat.S_IFCHR | 0o600, device=device)


def pack(entries: Iterable[Entry]) -> bytes:
    """Give the archive; the same entries give the same bytes."""
    archive = bytearray()
    for number, entry in enumerate([*entries, Entry(TRAILER, 0)], start=1):
        name = entry.path.encode() + b"\0"
        fields = [number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device, len(name), 0]
        archive += (MAGIC + "".join(f"{field:08x}" for field in fields)).encode() + name
        archive += bytes(-len(archive) % ALIGNMENT)
        archive += entry.content
        archive += bytes(-len(archive) % ALIGNMENT)
    return bytes(archive)


def guest_entries(programs: Path, workloads: Path, extra: Iterable[Entry] = ()) -> list[Entry]:
    """Give everything the guest has: folders, two accounts, the launcher as ``/init``, the programs.

    Parameters
    ----------
    programs : Path
        Folder of the static programs.
    workloads : Path
        Folder of the workloads; its static programs are taken along.
    extra : iterable of Entry
        Further entries.
    """
    entries = [Entry.folder(name, 0o1777 if name in OPEN_FOLDERS else 0o755) for name in FOLDERS]
    entries.append(Entry.character_device("dev/console", CONSOLE_DEVICE))
    entries.append(Entry.character_device("dev/null", NULL_DEVICE))
    entries.append(Entry.file("etc/passwd", ACCOUNTS))
    entries.append(Entry.file("etc/group", GROUPS))
    entries += _static_programs(programs, "steelyard/bin")
    entries += _static_programs(workloads, "steelyard/workloads")
    entries.append(Entry.link("init", "/steelyard/bin/steelyard-launch"))
    entries.extend(extra)
    return entries


def _static_programs(folder: Path, place: str) -> list[Entry]:
    """Give the static programs below a folder, with the folders they lie in."""
    entries = [Entry.folder(place)]
    for path in sorted(folder.rglob("*")):
        name = f"{place}/{path.relative_to(folder)}"
        if path.name.startswith("."):
            continue
        if path.is_dir():
            entries.append(Entry.folder(name))
        elif os.access(path, os.X_OK) and is_static_program(content := path.read_bytes()):
            entries.append(Entry.file(name, content, 0o755))
    return entries


def is_static_program(content: bytes) -> bool:
    """Whether a file is a program of this machine's word size that needs no other file to start.

    References
    ----------
    .. [1] System V ABI, chapter 5: a program with a segment of type ``PT_INTERP`` needs another one.
    """
    if content[:5] != ELF_64:
        return False
    table, size, count = (
        struct.unpack_from(form, content, offset)[0]
        for form, offset in (("<Q", 0x20), ("<H", 0x36), ("<H", 0x38))
    )
    kinds = (struct.unpack_from("<I", content, table + index * size)[0] for index in range(count))
    return INTERPRETER_SEGMENT not in kinds


def cached_archive(entries: list[Entry]) -> Path:
    """Write an archive into the cache unless it is there, and give its path."""
    content = pack(entries)
    digest = hashlib.sha256(content).hexdigest()[:16]
    place = guest_folder() / f"initramfs-{digest}.cpio"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(place)
    return place
