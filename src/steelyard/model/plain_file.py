"""Bytes of a file that somebody named: of one that ends, whole, and as one moment left it, or of a pipe."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_KINDS: Final = {
    stat.S_IFIFO: "it is a pipe; write what it gives to a file",
    stat.S_IFSOCK: "it is a socket; write what it gives to a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
}


PATIENCE_S = 5.0
"""So long a pipe is waited for until somebody opens it to write: a shell does at once."""

_CHUNK: Final = 1 << 20


def read_plain_file(path: Path, *, may_be_pipe: bool = False) -> bytes:
    """Give the bytes of a regular file.

    A pipe would be waited for, and a device never ends: neither is opened. What has more bytes than the
    machine has memory is refused before any is read.

    Parameters
    ----------
    path : Path
        The file, or a link to it.
    may_be_pipe : bool
        Whether a pipe that somebody writes to is read until its end, for what is read once. One that nobody
        opens to write is given up.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, does not fit into memory, or was written to meanwhile; its
        ``strerror`` says so in words.
    """
    found = os.stat(path)  # noqa: PTH116 - before it is opened, which some devices notice
    if may_be_pipe and stat.S_ISFIFO(found.st_mode):
        return _read_pipe(path)
    with open_plain_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        _require_fitting(path, size)
        content = file.read(size + 1) or b""
        if len(content) != size:
            raise _written_to(path)
        return content


@contextmanager
def open_plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file to be read from its beginning to its end, however large.

    Parameters
    ----------
    path : Path
        The file, or a link to it.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, or was written to before the block ends; its ``strerror``
        says so in words.
    """
    _require_regular(path, os.stat(path))  # noqa: PTH116 - before it is opened, which some devices notice
    with open(path, "rb", opener=_at_once) as file:
        before = os.fstat(file.fileno())
        _require_regular(path, before)
        yield file
        after = os.fstat(file.fileno())
        is_changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
    # Half of a line, or of a number, would be taken for a whole one.
    if is_changed:
        raise _written_to(path)


def _written_to(path: Path) -> OSError:
    reason = "it was written to while it was read; repeat the command when its program has ended"
    return OSError(errno.EBUSY, reason, str(path))


def _require_fitting(path: Path, size: int) -> None:
    if size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise OSError(errno.EFBIG, "it is larger than the memory of this machine", str(path))


def _read_pipe(path: Path) -> bytes:
    """Give what a pipe holds until its last writer closes it."""
    content = bytearray()
    deadline = time.monotonic() + PATIENCE_S
    descriptor = _at_once(str(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:  # somebody has it open, and has written nothing yet
                poll.poll()
                continue
            content += chunk
            _require_fitting(path, len(content))
            if chunk:
                continue
            # Without a writer a pipe is at its end, unless none came so far.
            if content or any(event & select.POLLHUP for _, event in poll.poll(0)):
                return bytes(content)
            if time.monotonic() > deadline:
                reason = "it is a pipe that nobody writes to; start what writes to it first"
                raise OSError(errno.ETIMEDOUT, reason, str(path))
            poll.poll(50)
    finally:
        os.close(descriptor)


def _require_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, _KINDS[stat.S_IFMT(found.st_mode)], str(path))


def _at_once(path: str, flags: int) -> int:
    """Open without waiting, should a pipe have taken the place of the file."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
