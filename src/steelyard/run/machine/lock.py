"""The machine-wide lock: two studies must not measure each other."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from steelyard.errors import GateError

if TYPE_CHECKING:
    from types import TracebackType

LOCK_NAME: Final = "steelyard.lock"
_RETRY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Holder:
    """Who measures on this machine.

    Parameters
    ----------
    process_id : int
        Its process.
    command : str
        Its command line.
    since : str
        Start in UTC, ISO 8601.
    """

    process_id: int
    command: str
    since: str

    def __str__(self) -> str:
        """Name the holder in a message."""
        return f"process {self.process_id} (`{self.command}`, since {self.since})"


def lock_path() -> Path:
    """Give the place of the lock: ``/run/lock`` where everybody may write, else the temporary folder."""
    for folder in (Path("/run/lock"), Path("/var/lock")):
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / LOCK_NAME
    return Path(tempfile.gettempdir()) / LOCK_NAME


class MachineLock:
    """Exclusive right to measure on this machine, as a context manager.

    The kernel frees the lock when its process ends, however that happens.

    Parameters
    ----------
    path : Path or None
        The lock file; by default that of the machine.
    patience_s : float
        How long to wait for another holder [s]; 0 does not wait.

    Raises
    ------
    GateError
        On entry, if another process holds the lock for longer than the patience; the message
        names the holder.
    """

    def __init__(self, path: Path | None = None, *, patience_s: float = 0.0) -> None:
        self._path = lock_path() if path is None else path
        self._patience_s = patience_s
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        """The lock file."""
        return self._path

    def __enter__(self) -> Self:
        """Take the lock."""
        descriptor = _open(self._path)
        deadline = time.monotonic() + self._patience_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise _refused(self._path)
            time.sleep(_RETRY_S)
        holder = Holder(
            os.getpid(), " ".join(sys.argv)[:200], datetime.now(UTC).isoformat(timespec="seconds")
        )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free the lock; the file stays, since removing it would let two holders in."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def current_holder(path: Path | None = None) -> Holder | None:
    """Say who holds the lock, this process included; ``None`` when it is free."""
    place = lock_path() if path is None else path
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _try_lock(descriptor):
            return None
        return _read_holder(place)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    # Opened without O_CREAT first: in a sticky folder the kernel refuses to "create" a file of
    # another user (fs.protected_regular), although it may be opened.
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    except PermissionError as error:
        raise _unusable(path, error) from error
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _unusable(path, error) from error
    if os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o666)  # the umask must not lock other users out
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(path: Path) -> Holder:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Holder(int(fields["process_id"]), str(fields["command"]), str(fields["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        # The holder writes its name right after it got the lock.
        return Holder(0, "unknown", "just now")


def _refused(path: Path) -> GateError:
    message = f"another study is measuring on this machine: {_read_holder(path)}"
    hint = "wait until it is done, or end it; two studies at once would disturb each other"
    return GateError(message, hint=hint, code="gate.locked")


def _unusable(path: Path, error: OSError) -> GateError:
    message = f"cannot open the machine-wide lock `{path}`: {error.strerror}"
    return GateError(message, hint=f"sudo chmod 666 {path}", code="gate.lock-file")
