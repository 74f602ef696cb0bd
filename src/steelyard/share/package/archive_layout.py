"""Where the bytes of an archive belong: each to one file, to the directory or to its end."""

from __future__ import annotations

import os
import struct
from typing import IO, TYPE_CHECKING, Final

from steelyard.share.package.entry_names import quoted, refused

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Sequence

ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
"""Bits of an entry's flags: encrypted, strongly encrypted, its header masked."""

_SIZES_BEHIND: Final = 0x8
_LOCAL_HEADER: Final = struct.Struct("<4s5H3I2H")
_DIRECTORY_ENTRY: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_END_64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR: Final = struct.Struct("<4sIQI")
_EXTRA: Final = struct.Struct("<2H")
_ZIP64_FIELD: Final = 1
_MARK_16, _MARK_32 = 0xFFFF, 0xFFFFFFFF
"""What stands in a field whose value needs ZIP64."""


def require_layout(entries: Sequence[zipfile.ZipInfo], file: IO[bytes], directory: int, place: str) -> None:
    """Check that an archive is its files, one behind the other, then its directory and its end: no byte else.

    Parameters
    ----------
    entries : sequence of ZipInfo
        As the directory describes them.
    file : file
        The archive.
    directory : int
        Where its directory begins [bytes].
    place : str
        The archive, for the error.

    Raises
    ------
    DataError
        If a byte belongs to nothing or to two files, or headers, directory and end contradict each other.
    """
    end = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        name = quoted(entry.orig_filename)
        if entry.header_offset < end:
            raise refused(place, f"its entry {name} shares bytes with another one")
        if entry.header_offset > end:
            where = f"before its entry {name}" if end else "before its first file"
            raise refused(place, f"{entry.header_offset - end} bytes {where} belong to no file")
        end = _end_of_entry(entry, file, place)
    if end > directory:
        raise refused(place, "its entries reach into its directory")
    if end < directory:
        raise refused(place, f"{directory - end} bytes before its directory belong to no file")
    _require_end(entries, file, directory, place)


def _end_of_entry(entry: zipfile.ZipInfo, file: IO[bytes], place: str) -> int:
    """Check that an entry's own header says what the directory says, and give where the entry ends."""
    about = f"the header of {quoted(entry.orig_filename)} is not what the directory says"
    file.seek(entry.header_offset)
    header = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    signature, _, flags, method, time, date, check, packed, size, name_bytes, extra_bytes = header
    if signature != b"PK\x03\x04" or file.read(name_bytes) != _name_bytes(entry):
        raise refused(place, f"{about}: its name")
    if method != entry.compress_type or flags != entry.flag_bits:
        raise refused(place, f"{about}: its method")
    if (date, time) != _dos_date(entry):
        raise refused(place, f"{about}: its date")
    _require_extra(file.read(extra_bytes), entry, place)
    stated = (entry.CRC, entry.compress_size, entry.file_size)
    if not flags & _SIZES_BEHIND and not _agrees((check, packed, size), stated):
        raise refused(place, f"{about}: its size")
    end: int = entry.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes + entry.compress_size
    if flags & _SIZES_BEHIND:
        file.seek(end)
        found = file.read(24)
        forms = [
            sign + struct.pack(form, *stated) for sign in (b"PK\x07\x08", b"") for form in _behind(stated)
        ]
        behind = next((form for form in forms if found.startswith(form)), None)
        if behind is None:
            raise refused(place, f"{about}: its size")
        end += len(behind)
    return end


def _behind(stated: tuple[int, int, int]) -> tuple[str, ...]:
    return ("<IQQ", "<3I") if max(stated) <= _MARK_32 else ("<IQQ",)


def _dos_date(entry: zipfile.ZipInfo) -> tuple[int, int]:
    year, month, day, hour, minute, second = entry.date_time
    return (year - 1980) << 9 | month << 5 | day, hour << 11 | minute << 5 | second // 2


def _agrees(header: tuple[int, int, int], stated: tuple[int, int, int]) -> bool:
    """Compare check sum and sizes; a size that needs ZIP64 stands in a field that Python reads and checks."""
    return header[0] == stated[0] and all(
        found in {_MARK_32, expected} for found, expected in zip(header[1:], stated[1:], strict=True)
    )


def _name_bytes(entry: zipfile.ZipInfo) -> bytes:
    is_utf8 = entry.flag_bits & 0x800
    return entry.orig_filename.encode("utf-8" if is_utf8 else "cp437")


def _require_extra(extra: bytes, entry: zipfile.ZipInfo, place: str) -> None:
    """Check that beside a name there is nothing but the sizes that need ZIP64."""
    if not extra:
        return
    kind, count = _EXTRA.unpack_from(extra) if len(extra) >= _EXTRA.size else (0, 0)
    if kind != _ZIP64_FIELD or _EXTRA.size + count != len(extra) or count > _LOCAL_HEADER.size:
        name = quoted(entry.orig_filename)
        raise refused(
            place, f"its entry {name} has {len(extra)} bytes beside its name that packages do not have"
        )


def _require_end(entries: Sequence[zipfile.ZipInfo], file: IO[bytes], directory: int, place: str) -> None:
    """Check that the directory has these entries and nothing else, and that its end says so."""
    whole = os.fstat(file.fileno()).st_size
    at = whole - _END.size
    file.seek(max(at, 0))
    signature, disk, first, here, count, size, begin, comment = _END.unpack(file.read(_END.size))
    if signature != b"PK\x05\x06" or comment:
        raise refused(place, "it has a comment, or bytes behind its end: they belong to no file")
    marks: set[int] = set()
    if directory + size != at:
        at -= _LOCATOR.size + _END_64.size
        file.seek(max(at, 0))
        big = _END_64.unpack(file.read(_END_64.size))
        locator = _LOCATOR.unpack(file.read(_LOCATOR.size))
        if big[0] != b"PK\x06\x06" or big[1] != _END_64.size - 12 or locator != (b"PK\x06\x07", 0, at, 1):
            raise refused(place, "its directory does not end where it says: bytes there belong to no file")
        marks = {_MARK_16, _MARK_32}
        if big[4:] != (0, 0, len(entries), len(entries), at - directory, directory):
            raise refused(place, f"its end does not count the {len(entries)} entries of its directory")
    told = (disk, first, here, count, size, begin)
    wanted = (0, 0, len(entries), len(entries), at - directory, directory)
    if any(found not in {right, *marks} for found, right in zip(told, wanted, strict=True)):
        raise refused(place, f"its end does not count the {len(entries)} entries of its directory")
    _require_directory(entries, file, (directory, at), place)


def _require_directory(
    entries: Sequence[zipfile.ZipInfo], file: IO[bytes], span: tuple[int, int], place: str
) -> None:
    """Check that nothing stands in the directory beside its entries, no comment of one either."""
    file.seek(span[0])
    content = file.read(span[1] - span[0])
    position = 0
    for entry in entries:
        if position + _DIRECTORY_ENTRY.size > len(content):
            break
        found = _DIRECTORY_ENTRY.unpack_from(content, position)
        name_bytes, extra_bytes, comment_bytes = found[10:13]
        if found[0] != b"PK\x01\x02" or comment_bytes:
            raise refused(place, f"its entry {quoted(entry.orig_filename)} has a comment")
        position += _DIRECTORY_ENTRY.size + name_bytes
        _require_extra(content[position : position + extra_bytes], entry, place)
        position += extra_bytes
    if position != len(content):
        raise refused(place, "its directory does not end where it says: bytes there belong to no file")
