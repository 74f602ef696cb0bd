"""Files of a result folder that may be shown: those that lie in it, and are files."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.catalogue.folder import files_in
from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import BinaryIO

_HINT: Final = "put the file itself into the result folder"


def open_inside(folder: Path, name: str, most_bytes: int) -> BinaryIO:
    """Open a file of a result folder for reading.

    No part of the path below the folder may be a link: what is opened is what was checked, also while
    somebody changes the folder.

    Parameters
    ----------
    folder : Path
        Result folder.
    name : str
        Path below it, such as ``report.html``.
    most_bytes : int
        Largest size.

    Raises
    ------
    DataError
        If it is absent, a link, no file, or too large.
    """
    path = folder / name
    *folders, last = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in (*folders, last)):
        message = f"cannot read `{name}`: it is not a path below the result folder"
        raise DataError(message, hint=_HINT, code="data.outside")
    try:
        with ExitStack() as stack:
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, place)
            for part in folders:
                place = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place
                )
                stack.callback(os.close, place)
            # Without waiting: a pipe in place of a file has nobody at its other end.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.fdopen(os.open(last, flags, dir_fd=place), "rb")
    except FileNotFoundError as error:
        message = f"`{path}` does not exist"
        raise DataError(
            message, hint="the folder may have been changed or removed", code="data.absent"
        ) from error
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint=_HINT, code="data.outside") from error
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        file.close()
        message = f"cannot show `{path}`: it is not a file of at most {most_bytes} bytes"
        raise DataError(message, hint=_HINT, code="data.outside")
    return file


def require_contained(folder: Path, without: Collection[str] = ()) -> None:
    """Refuse a result folder with a link that leads out of it, or with something that is no file.

    Parameters
    ----------
    folder : Path
        Result folder; the analysis that reads it follows links.
    without : collection of str
        Folders in it that are not read.

    Raises
    ------
    DataError
        Naming the file, or if the folder has too many to look at each.
    """
    root = os.path.realpath(folder)
    try:
        os.scandir(root).close()
    except OSError as error:
        message = f"cannot read `{root}`: {error.strerror}"
        raise DataError(
            message, hint="the folder may have been changed or removed", code="data.absent"
        ) from error
    for each in files_in(Path(root), without):
        if each.is_symlink():
            target = os.path.realpath(each.path)
            if os.path.commonpath([root, target]) != root:
                message = f"cannot show `{folder}`: `{each.path}` is a link that leads out of it"
                raise DataError(message, hint=_HINT, code="data.outside")
        elif not each.is_file(follow_symlinks=False):
            message = f"cannot show `{folder}`: `{each.path}` is neither a file nor a folder"
            raise DataError(message, hint=_HINT, code="data.outside")
