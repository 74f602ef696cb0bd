"""A package from a stranger, unpacked: every entry is checked before the first byte is written."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, FileIO
from typing import IO, TYPE_CHECKING, Final

from steelyard.errors import DataError, unwritable
from steelyard.share.package.archive_layout import ENCRYPTED, require_layout
from steelyard.share.package.entry_names import quoted, refused, require_names
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_CHUNK_BYTES: Final = 1 << 20
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_UNIX: Final = 3
_LARGEST_READ_BYTES: Final = 256 << 20
_ROOM_LEFT_BYTES: Final = 64 << 20
"""Kept free on the file system, for what is computed beside the package."""

_SHOWN_AS_BYTES: Final = 10 << 10
"""Smaller amounts are named to the byte."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an unpacked package may amount to.

    Parameters
    ----------
    total_bytes : int
        All its files together.
    entries : int
        Number of its files and folders, those included that only the paths of files name.
    ratio : int
        Bytes of a file over bytes in the package, for files above `ratio_from_bytes`: ledgers shrink some
        20 times, a bomb 1000 times; `pack` stores what would shrink more as it is.
    ratio_from_bytes : int
        Smaller files may shrink as they like.
    whole_ratio : int
        Bytes of all files over bytes of the package, above `whole_from_bytes`: many small files that shrink
        1000 times each are a bomb as well.
    whole_from_bytes : int
        Smaller packages may shrink as they like.
    directory_bytes : int
        Of the archive's directory, which is held in memory.
    """

    total_bytes: int = 64 << 30
    entries: int = 500_000
    ratio: int = 200
    ratio_from_bytes: int = 1 << 20
    whole_ratio: int = 50
    whole_from_bytes: int = 64 << 20
    directory_bytes: int = 64 << 20


BOUNDS: Final = Bounds()


def unpack(package: Path, folder: Path, bounds: Bounds = BOUNDS) -> None:
    """Unpack a package into an empty, private folder.

    Nothing is written unless all entries are plain files inside the folder, within the bounds one by one and
    all together, described the same by the archive's directory and by their own headers, and the file system
    has room for them. Archives inside the package stay files.

    Parameters
    ----------
    package : Path
        The archive.
    folder : Path
        Existing, empty folder that only this user may write.
    bounds : Bounds
        What is accepted.

    Raises
    ------
    DataError
        If the package is refused, damaged, or there is no room for it.
    """
    with _opened(package, folder, bounds) as (archive, file):
        entries = _checked(archive, file, str(package), bounds)
        folders = _folder_count(entry.orig_filename for entry in entries)
        require_room(folder, (entry.file_size for entry in entries), str(package), folders=folders)
        for entry in entries:
            _extract(archive, entry, folder, str(package))


def read_entries(package: Path, names: Sequence[str], bounds: Bounds = BOUNDS) -> list[bytes]:
    """Read some files of a package and write nothing; the whole package is checked as for unpacking.

    Parameters
    ----------
    package : Path
        The archive.
    names : sequence of str
        Paths inside it.
    bounds : Bounds
        What is accepted.

    Raises
    ------
    DataError
        If the package is refused or damaged, or lacks one of the files.
    """
    place = str(package)
    with _opened(package, package.parent, bounds) as (archive, file):
        entries = {entry.orig_filename: entry for entry in _checked(archive, file, place, bounds)}
        absent = [name for name in names if name not in entries]
        if absent:
            raise refused(place, f"it has no `{absent[0]}`")
        if any(entries[name].file_size > _LARGEST_READ_BYTES for name in names):
            raise refused(place, f"its metadata have more than {_LARGEST_READ_BYTES} bytes, the limit")
        return [archive.read(entries[name]) for name in names]


def require_package(package: Path, bounds: Bounds = BOUNDS) -> None:
    """Check all entries of a package as for unpacking, and write nothing.

    Parameters
    ----------
    package : Path
        The archive.
    bounds : Bounds
        What is accepted.

    Raises
    ------
    DataError
        If the package is refused or damaged.
    """
    with _opened(package, package.parent, bounds) as (archive, file):
        _checked(archive, file, str(package), bounds)


class _ShortReads(BufferedReader):
    """A file of which so many bytes at most are read at once: `zipfile` reads the directory as a whole."""

    place = ""
    limit_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file."""
        if size is not None and size > self.limit_bytes:
            raise refused(
                self.place,
                f"its directory has {format_bytes(size)}, more than {format_bytes(self.limit_bytes)}",
            )
        return super().read(size)


@contextmanager
def _opened(package: Path, folder: Path, bounds: Bounds) -> Iterator[tuple[zipfile.ZipFile, IO[bytes]]]:
    """Open an archive, and give what goes wrong with it as an error that names it."""
    place = str(package)
    try:
        with _ShortReads(FileIO(place)) as file:
            file.place, file.limit_bytes = place, bounds.directory_bytes
            with zipfile.ZipFile(file) as archive:
                yield archive, file
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, UnicodeError, ValueError) as error:
        raise refused(place, f"it is not a complete ZIP archive: {_short(error)}", "data.package") from error
    except (NotImplementedError, RuntimeError) as error:
        raise refused(place, f"it uses features of ZIP that packages do not: {_short(error)}") from error
    except OSError as error:
        if error.filename != place:
            hint = "set TMPDIR to a folder you may write to"
            raise unwritable(error.filename or folder, error, hint) from error
        message = f"cannot read `{package}`: {error.strerror}"
        raise DataError(
            message, hint="give a package that `steelyard pack` wrote", code="data.absent"
        ) from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return quoted(text).strip("`") or type(error).__name__


def _checked(archive: zipfile.ZipFile, file: IO[bytes], place: str, bounds: Bounds) -> list[zipfile.ZipInfo]:
    """Give the entries that are files, all of them checked."""
    entries = archive.infolist()
    if len(entries) > bounds.entries:
        raise refused(place, f"it has {len(entries)} entries, more than {bounds.entries}")
    for entry in entries:
        fault = _fault_of_entry(entry, bounds)
        if fault is not None:
            raise refused(place, f"its entry {quoted(entry.orig_filename)} {fault}")
    folders = {entry.orig_filename for entry in entries if entry.orig_filename.endswith("/")}
    files = [entry for entry in entries if entry.orig_filename not in folders]
    if len(folders) + len(files) != len(entries):
        raise refused(place, "one of its folders occurs twice")
    require_names((name.removesuffix("/") for name in folders), place)
    require_names((entry.orig_filename for entry in files), place)
    count = len(files) + _folder_count(entry.orig_filename for entry in entries)
    if count > bounds.entries:
        raise refused(place, f"it has {count} files and folders, more than {bounds.entries}")
    require_layout(entries, file, archive.start_dir, place)
    total, packed = sum(entry.file_size for entry in files), os.fstat(file.fileno()).st_size
    if total > bounds.total_bytes:
        raise refused(place, f"its files have {_amount(total)}, more than {_amount(bounds.total_bytes)}")
    if whole_shrinks_too_much(packed, total, bounds):
        grown = f"{_amount(packed)} would grow to {_amount(total)}"
        allowed = f"{bounds.whole_ratio} times, the limit above {_amount(bounds.whole_from_bytes)}"
        raise refused(place, f"its {grown}, more than {allowed}")
    return files


def _folder_count(names: Iterable[str]) -> int:
    """Count the folders that paths lead through."""
    folders: set[str] = set()
    for name in names:
        above = name
        while (above := above.rpartition("/")[0]) and above not in folders:
            folders.add(above)
    return len(folders)


def _amount(byte_count: int) -> str:
    return f"{byte_count} bytes" if byte_count < _SHOWN_AS_BYTES else format_bytes(byte_count)


def _fault_of_entry(entry: zipfile.ZipInfo, bounds: Bounds) -> str | None:
    kind = stat.S_IFMT(entry.external_attr >> 16) if entry.create_system == _UNIX else 0
    is_folder = entry.orig_filename.endswith("/")
    expected = stat.S_IFDIR if is_folder else stat.S_IFREG
    packed, size = entry.compress_size, entry.file_size
    faults = {
        "is encrypted": entry.flag_bits & ENCRYPTED,
        f"is compressed by method {entry.compress_type}; packages know 0 (stored) and 8 (deflated)": (
            entry.compress_type not in _METHODS
        ),
        f"is {_kind_text(kind)}; a package contains plain files only": kind not in {0, expected},
        "is a folder with content": is_folder and size,
        f"would grow from {packed} to {size} bytes, more than {bounds.ratio} times": (
            shrinks_too_much(packed, size, bounds)
        ),
        "is stored, and has two sizes": entry.compress_type == zipfile.ZIP_STORED and packed != size,
    }
    return next((fault for fault, applies in faults.items() if applies), None)


def shrinks_too_much(packed: int, size: int, bounds: Bounds = BOUNDS) -> bool:
    """Whether a file of this size is taken for a bomb when it is packed into so few bytes."""
    return size > max(bounds.ratio_from_bytes, bounds.ratio * packed)


def whole_shrinks_too_much(packed: int, size: int, bounds: Bounds = BOUNDS) -> bool:
    """Whether files of this size together are taken for a bomb when their package has so few bytes."""
    return size > max(bounds.whole_from_bytes, bounds.whole_ratio * packed)


def _kind_text(kind: int) -> str:
    known = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a folder without `/`",
    }
    return known.get(kind, "not a plain file")


def require_room(folder: Path, sizes: Iterable[int], place: str, *, folders: int = 0) -> None:
    """Check that a file system has room for some files before the first byte of them is written.

    Parameters
    ----------
    folder : Path
        Where they will be.
    sizes : iterable of int
        Of each file [bytes]; each takes whole blocks.
    place : str
        What holds them now, for the error.
    folders : int
        Number of folders that will be made.

    Raises
    ------
    DataError
        Naming what is needed and what there is.
    """
    system = os.statvfs(folder)
    block, files, needed = system.f_frsize, 0, 0
    for size in sizes:
        files += 1
        needed += -(-size // block) * block
    needed += folders * block
    free = system.f_bavail * block
    hint = "free space there, or set TMPDIR to a folder with more"
    if needed + _ROOM_LEFT_BYTES > free:
        wanted = f"{_amount(needed)}, and {_amount(_ROOM_LEFT_BYTES)} must stay free"
        message = f"`{place}` needs {wanted}; the file system of `{folder}` has {_amount(free)} left"
        raise DataError(message, hint=hint, code="data.disk-full")
    if system.f_files and files + folders > system.f_favail:
        left = f"the file system of `{folder}` has {system.f_favail} left"
        message = f"`{place}` needs {files + folders} inodes; {left}"
        raise DataError(message, hint=hint, code="data.disk-full")


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, place: str) -> None:
    path = folder / entry.orig_filename
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    written = 0
    with archive.open(entry) as source, os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            written += len(chunk)
            if written > entry.file_size:
                break
            file.write(chunk)
        unused = getattr(getattr(source, "_decompressor", None), "unused_data", b"")
        if unused or getattr(source, "_compress_left", 0):  # which `zipfile` leaves unread and unsaid
            name = quoted(entry.orig_filename)
            raise refused(place, f"bytes behind the compressed content of its entry {name} belong to no file")
    if written != entry.file_size:
        raise refused(place, f"its entry {quoted(entry.orig_filename)} does not have the size it states")
