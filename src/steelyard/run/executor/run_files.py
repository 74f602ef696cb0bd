"""Files that a run reads and leaves: a folder in memory while it runs, kept in the result folder after it.

A command that names ``{files}`` gets such a folder. It lies on a memory file system, so that no disk is
waited for while something is measured; when the batch is over, however it ended, the folder is moved into the
result, durable before the batch is complete. A batch that was interrupted is run again, and so are its
files written again: they never belong to another attempt than the recorded one.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from steelyard.model import Batch, Execution

PLACE: Final = "{files}"
FREE_SPACE_HINT: Final = "free some space there, then continue with --resume"


def write_no_inputs(_batch: Batch, _folder: Path) -> None:
    """Leave the folder of a run empty."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where the files of runs are kept, and what lies in their folder at the begin.

    Parameters
    ----------
    kept : Path
        Folder in the result folder; each batch gets one of its own in there.
    write_inputs : callable
        Called with the batch and its empty folder before its runs begin.
    """

    kept: Path
    write_inputs: Callable[[Batch, Path], None] = write_no_inputs


def files_name(batch: int, attempt: int) -> str:
    """Give the name of the folder of a batch: the begin of the ids of its runs.

    Examples
    --------
    >>> files_name(12, 1)
    '000012.01'
    """
    return f"{batch:06d}.{attempt:02d}"


def leaves_files(execution: Execution) -> bool:
    """Tell whether the command names a folder for files."""
    return any(PLACE in word for word in execution.command)


def in_folder(execution: Execution, folder: Path) -> Execution:
    """Give an execution with ``{files}`` in its command replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from steelyard.model import Execution
    >>> in_folder(Execution("bare", ("prog", "--out={files}")), Path("/dev/shm/a")).command
    ('prog', '--out=/dev/shm/a')
    """
    return replace(execution, command=tuple(word.replace(PLACE, str(folder)) for word in execution.command))


@contextmanager
def files_of(batch: Batch, scratch: Path, target: Path, files: RunFiles) -> Iterator[None]:
    """Furnish the folder of a batch, and keep what is in it when the batch is over, however it ends.

    Parameters
    ----------
    batch : Batch
        Whose folder it is.
    scratch : Path
        The folder while the runs last; made and removed.
    target : Path
        Where it is kept. What an earlier execution left there is replaced.
    files : RunFiles
        What lies in the folder at the begin.

    Raises
    ------
    DataError
        If the files cannot be kept, for example because the disk is full.
    """
    try:
        scratch.mkdir(mode=0o700)
        files.write_inputs(batch, scratch)
        yield
    finally:
        try:
            _keep(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _keep(scratch: Path, target: Path) -> None:
    if not scratch.is_dir():
        return
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for source in sorted(path for path in scratch.iterdir() if path.is_file()):
            _copy_durably(source, partial / source.name)
        _sync(partial)
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
        _sync(target.parent)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        msg = f"cannot keep the files of a run in `{target}`: {error.strerror}"
        raise DataError(msg, hint=FREE_SPACE_HINT, code="data.run-files") from error


def _copy_durably(source: Path, target: Path) -> None:
    with source.open("rb") as before, target.open("xb") as after:
        shutil.copyfileobj(before, after, 1 << 20)
        after.flush()
        os.fsync(after.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
