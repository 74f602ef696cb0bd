"""The file of a package: a ZIP archive whose bytes depend on its content alone."""

from __future__ import annotations

import hashlib
import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Protocol

from steelyard.errors import DataError, UsageError, unwritable
from steelyard.share.package.entry_names import require_names
from steelyard.share.package.unpack import BOUNDS, shrinks_too_much, whole_shrinks_too_much

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHUNK_BYTES: Final = 1 << 20
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The first that ZIP knows: a package does not tell when it was packed."""

_UNIX: Final = 3
_MODE: Final = 0o100644 << 16
_LEVEL: Final = 6
_COMPRESSED_ALREADY: Final = frozenset({".parquet", ".png", ".zst", ".gz"})


class Watcher(Protocol):
    """Told how far the packing is."""

    def packed(self, done_bytes: int, total_bytes: int) -> None:
        """Take note of bytes written so far, before compression."""


class Unwatched:
    """Tells nobody."""

    def packed(self, done_bytes: int, total_bytes: int) -> None:
        """Nothing."""


UNWATCHED: Final = Unwatched()


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a package.

    Parameters
    ----------
    name : str
        Path inside the package.
    content : Path or bytes
        Where its bytes are.
    sha256 : str
        Their hash, as hexadecimal text.
    byte_count : int
        How many.
    """

    name: str
    content: Path | bytes
    sha256: str
    byte_count: int


def part_of_text(name: str, text: str) -> Part:
    """Give a part that is made while packing."""
    content = text.encode()
    return Part(name, content, hashlib.sha256(content).hexdigest(), len(content))


def part_of_file(name: str, path: Path) -> Part:
    """Give a part that is a file; it is read once for its hash, and again when it is packed."""
    digest, count = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            count += len(chunk)
    return Part(name, path, digest.hexdigest(), count)


def write_archive(path: Path, parts: Sequence[Part], watcher: Watcher = UNWATCHED) -> None:
    """Write an archive; it is whole or absent.

    Sorted by name, every date and right the same: the same parts give the same bytes wherever the same
    version of zlib compresses. Tables and pictures are compressed already and stored as they are.

    Parameters
    ----------
    path : Path
        File that must not exist yet.
    parts : sequence of Part
        In any order.
    watcher : Watcher
        Told how far it is.

    Raises
    ------
    UsageError
        If the file exists.
    DataError
        If it cannot be written, a file changed meanwhile, or has a name that a package cannot hold.
    """
    require_names((part.name for part in parts), str(path))
    _require_free(path)
    total = sum(part.byte_count for part in parts)
    if total > BOUNDS.total_bytes or len(parts) > BOUNDS.entries:
        message = f"`{path}` would contain {len(parts)} files with {total} bytes, which is too much to unpack"
        hint = f"allowed: {BOUNDS.entries} files, {BOUNDS.total_bytes} bytes; split the study"
        raise DataError(message, hint=hint, code="data.too-large")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    hint = "give a file in a folder you may write to with `-o`"
    try:
        with temporary.open("xb") as file:
            whole = sorted(parts, key=lambda part: part.name)
            suspicious = _write(file, whole, watcher, frozenset())
            if suspicious:
                file.seek(0)
                file.truncate()
                _write(file, whole, watcher, suspicious)
            file.flush()
            os.fsync(file.fileno())
        _require_free(path)
        temporary.rename(path)
    except OSError as error:
        raise unwritable(path, error, hint) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _require_free(path: Path) -> None:
    if os.path.lexists(path):
        message = f"`{path}` already exists"
        raise UsageError(message, hint="give another file with `-o`, or remove that one", code="usage.exists")


def _write(file: BinaryIO, parts: Sequence[Part], watcher: Watcher, stored: frozenset[str]) -> frozenset[str]:
    """Write all parts, and give the names of those that became so small that nobody would unpack them.

    Where only all together are too small, those are given that shrank more than all together may.
    """
    total, done = sum(part.byte_count for part in parts), 0
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for part in parts:
            entry = zipfile.ZipInfo(part.name, _DATE)
            entry.create_system = _UNIX
            entry.external_attr = _MODE
            is_stored = part.name in stored or Path(part.name).suffix in _COMPRESSED_ALREADY
            entry.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            entry.file_size = part.byte_count  # says whether its header needs the fields of ZIP64
            _set_level(entry)
            with archive.open(entry, "w") as into:
                done = _copy(part, into, (done, total), watcher)
        entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        if whole_shrinks_too_much(packed, total):
            ratio = BOUNDS.whole_ratio
            return frozenset(each.filename for each in entries if each.file_size > ratio * each.compress_size)
        return frozenset(
            entry.filename for entry in entries if shrinks_too_much(entry.compress_size, entry.file_size)
        )


def _set_level(entry: zipfile.ZipInfo) -> None:
    """Fix the level of compression: an attribute whose name differs between versions of Python."""
    for name in ("compress_level", "_compresslevel"):
        if hasattr(entry, name):
            setattr(entry, name, _LEVEL)
            return


def _copy(part: Part, into: IO[bytes], progress: tuple[int, int], watcher: Watcher) -> int:
    done, total = progress
    if isinstance(part.content, bytes):
        into.write(part.content)
        return done + part.byte_count
    digest = hashlib.sha256()
    with part.content.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            into.write(chunk)
            done += len(chunk)
            watcher.packed(done, total)
    if digest.hexdigest() != part.sha256:
        message = f"`{part.content}` changed while it was packed; nothing was written"
        raise DataError(message, hint="wait until nothing writes to the result folder", code="data.changing")
    return done
