"""Result folders: whether one is free, and the claim on it, so that one process at a time records in it."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, unwritable
from steelyard.model.plan import PLAN_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LOOKS: Final = 5
_LOOK_S: Final = 0.02


def default_result(study: str, today: str, folder: Path) -> Path:
    """Give a folder that does not exist yet: ``<study>-<date>-<n>``.

    Parameters
    ----------
    study : str
        Name of the study.
    today : str
        Date, ``2026-11-21``.
    folder : Path
        Where results are collected.
    """
    number = 1
    while os.path.lexists(folder / f"{study}-{today}-{number}"):
        number += 1
    return folder / f"{study}-{today}-{number}"


def holds_plan(result: Path) -> bool:
    """Whether a folder holds a study that can be resumed."""
    return os.path.lexists(result / PLAN_NAME)


@contextmanager
def claimed(result: Path) -> Iterator[None]:
    """Hold a result folder alone; made when missing, and removed again if a failure leaves it empty.

    The folder itself is locked, so nothing is left in it; the kernel gives the claim back however
    the process ends.

    Parameters
    ----------
    result : Path
        Result folder.

    Raises
    ------
    DataError
        If the folder cannot be made or written, or another process holds it.
    """
    hint = "give a folder you may write to with --out"
    made = [folder for folder in (result, *result.parents) if not folder.exists()]
    try:
        result.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(result, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(result, error, hint) from error
    try:
        if not os.access(result, os.W_OK | os.X_OK):
            message = f"cannot write to `{result}`: no permission, or its file system is read-only"
            raise DataError(message, hint=hint, code="data.unwritable")
        try:
            _lock(descriptor)
        except OSError as error:
            message = f"another process is running a study in `{result}`"
            hint = "wait for it, or give another folder with --out"
            raise DataError(message, hint=hint, code="data.locked") from error
        with _removed_if_empty(made):
            yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process writes into a result folder at this moment."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int) -> None:
    """Lock a folder alone; who only looks whether it is locked holds it for an instant."""
    for _ in range(_LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOOK_S)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _removed_if_empty(folders: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the first that holds something ends it
            for folder in folders:
                folder.rmdir()
        raise
