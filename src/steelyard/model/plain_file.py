"""Bytes of a file that somebody named: of one that ends, whole, and as one moment left it."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_KINDS: Final = {
    stat.S_IFIFO: "it is a pipe; write what it gives to a file",
    stat.S_IFSOCK: "it is a socket; write what it gives to a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
}


def read_plain_file(path: Path) -> bytes:
    """Give the bytes of a regular file.

    A pipe would be waited for, and a device never ends: neither is opened. What has more bytes than the
    machine has memory is refused before any is read.

    Parameters
    ----------
    path : Path
        The file, or a link to it.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, does not fit into memory, or was written to meanwhile; its
        ``strerror`` says so in words.
    """
    _require_regular(path, os.stat(path))  # noqa: PTH116 - before it is opened, which some devices notice
    with open(path, "rb", opener=_at_once) as file:
        before = os.fstat(file.fileno())
        _require_regular(path, before)
        if before.st_size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
            raise OSError(errno.EFBIG, "it is larger than the memory of this machine", str(path))
        content = file.read(before.st_size + 1) or b""
        after = os.fstat(file.fileno())
    # Half of a line, or of a number, would be taken for a whole one.
    if (len(content), before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        reason = "it was written to while it was read; repeat the command when its program has ended"
        raise OSError(errno.EBUSY, reason, str(path))
    return content


def _require_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, _KINDS[stat.S_IFMT(found.st_mode)], str(path))


def _at_once(path: str, flags: int) -> int:
    """Open without waiting, should a pipe have taken the place of the file."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
