"""A session: the private folders of one running study, and the removal of what a killed one left.

Every folder, container, daemon and virtual machine of a study carries the session's key in its
name. The owner holds a lock on the folder as long as it lives; the kernel gives the lock back
however the owner ends, so the next session recognises the folder of a dead one and sweeps it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.run.cleanup import (
    end_remains,
    remove_control_groups,
    remove_dead_launchers_groups,
    remove_outside,
    remove_tree,
)
from steelyard.run.programs import launcher_path, workloads_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import TextIOWrapper

STATE_VARIABLE: Final = "STEELYARD_STATE"
LONGEST_FOLDER: Final = 46
"""Characters of a private folder: sockets and podman's folders below it must stay within their limits."""
KEY_PREFIX: Final = "steelyard-"
WORK: Final = "steelyard-work"


@dataclass(frozen=True, slots=True)
class Session:
    """Names and folders shared by all workers of one running study.

    Parameters
    ----------
    key : str
        Unique text, part of every name the study gives to anything outside its result folder.
    folder : Path
        Private folder; removed at the end.
    shared : Path
        Folder on a memory file system for the barrier files of workers on this kernel.
    logs : Path
        Folder of the workers' log files.
    programs : Path
        Folder of the launcher and the native workload program.
    workloads : Path
        Folder of the workloads in other languages.
    shown : tuple of Path
        Further folders of the host the programs need (an interpreter outside ``/usr``): shown
        read-only at the same place.
    keeps_logs : bool
        Whether the log files stay, and can be named in an error.
    """

    key: str
    folder: Path
    shared: Path
    logs: Path
    programs: Path
    workloads: Path
    shown: tuple[Path, ...] = ()
    keeps_logs: bool = True

    @property
    def launcher(self) -> Path:
        """Host path of the launcher."""
        return self.programs / launcher_path().name


@dataclass(frozen=True, slots=True)
class Site:
    """Where one worker lives.

    Parameters
    ----------
    session : Session
        The study's session.
    technology : str
        Name of the isolation technology.
    worker : int
        Index of the worker, from 0.
    serial : int
        Counts the workers of a session, so that a restarted worker has a new name.
    cpus : tuple of int or None
        CPUs of the host the worker is bound to; ``None`` leaves it to the scheduler.
    memory_nodes : tuple of int or None
        Memory nodes of the host it may allocate from.
    """

    session: Session
    technology: str
    worker: int
    serial: int = 0
    cpus: tuple[int, ...] | None = None
    memory_nodes: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """Unique name of the worker, fit for containers, machines and files."""
        return f"{self.session.key}-{self.technology}-{self.worker}-{self.serial}"

    @property
    def folder(self) -> Path:
        """Private folder of the worker; the worker's start creates it, its end removes it."""
        return self.session.folder / "workers" / self.name

    @property
    def log(self) -> Path:
        """Where the worker's standard error goes."""
        return self.session.logs / f"{self.technology}-{self.worker}-{self.serial}.log"


def state_root() -> Path:
    """Give the folder that holds the private folders of all sessions of this user.

    ``STEELYARD_STATE`` names it; otherwise ``/run/steelyard`` for root, ``$XDG_RUNTIME_DIR/steelyard``
    or a folder in the temporary directory for others.
    """
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return Path(named)
    if os.geteuid() == 0 and Path("/run").is_dir():
        return Path("/run/steelyard")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "steelyard"
    return Path(tempfile.gettempdir()) / f"steelyard-{os.geteuid()}"


class PrivateFolder:
    """A folder below the state root that is recognised as remains once its owner is dead.

    Attributes
    ----------
    path : Path
        The folder; its name is unique on this host.
    """

    def __init__(self) -> None:
        root = state_root()
        self.path = root / (KEY_PREFIX + secrets.token_hex(4))
        if len(str(self.path)) > LONGEST_FOLDER:
            message = f"the path of the state folder `{root}` is too long for sockets below it"
            longest = LONGEST_FOLDER - len(self.path.name) - 1
            hint = f"set {STATE_VARIABLE} to a folder of at most {longest} characters"
            raise CapabilityError(message, hint=hint, code="capability.state-folder")
        try:
            self.path.mkdir(parents=True, mode=0o711)
        except OSError as error:
            message = f"cannot write the state folder `{root}`: {error.strerror}"
            hint = f"set {STATE_VARIABLE} to a folder you may write to"
            raise CapabilityError(message, hint=hint, code="capability.state-folder") from error
        self._owner = _lock(self.path)

    def remove(self) -> None:
        """Remove the folder and give its lock back."""
        remove_tree(self.path)
        if self._owner is not None:
            self._owner.close()


@contextmanager
def open_session(
    logs: Path | None, sweep: Callable[[Path], None], shown: tuple[Path, ...] = ()
) -> Iterator[Session]:
    """Give a session, after the remains of killed ones are swept; remove its folders at the end.

    Parameters
    ----------
    logs : Path or None
        Folder for the workers' log files; created. ``None``: they go with the session.
    sweep : callable
        Called with the folder of each session whose owner is dead, before the folder is removed.
    shown : tuple of Path
        See `Session`.

    Raises
    ------
    CapabilityError
        If the state folder cannot be written.
    """
    private = PrivateFolder()
    key = private.path.name
    sweep_dead_sessions(private.path.parent, sweep)
    shared = _memory_folder() / key
    shared.mkdir(mode=0o700)
    kept = logs or private.path / "logs"
    kept.mkdir(parents=True, exist_ok=True)
    try:
        yield Session(
            key,
            private.path,
            shared,
            kept.absolute(),
            programs=launcher_path().parent,
            workloads=workloads_path(),
            shown=shown,
            keeps_logs=logs is not None,
        )
    finally:
        shutil.rmtree(shared, ignore_errors=True)
        remove_control_groups(key)
        remove_dead_launchers_groups()
        private.remove()


def sweep_dead_sessions(root: Path, sweep: Callable[[Path], None]) -> list[str]:
    """Remove what killed sessions left: first what `sweep` knows of, then their folders.

    Returns
    -------
    list of str
        Keys of the sessions that were removed.
    """
    swept = []
    for folder in sorted(root.glob(f"{KEY_PREFIX}*")):
        lock = _lock(folder)
        if lock is None:
            continue
        with lock:
            end_remains(folder)
            sweep(folder)
            remove_outside(folder)
            shutil.rmtree(_memory_folder() / folder.name, ignore_errors=True)
            remove_tree(folder)
        swept.append(folder.name)
    return swept


def _lock(folder: Path) -> TextIOWrapper | None:
    """Take the lock of a session's folder; ``None`` if its owner lives or the folder is gone."""
    try:
        lock = (folder / "owner").open("a", encoding="utf-8")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def _memory_folder() -> Path:
    shared = Path("/dev/shm")  # noqa: S108 - the memory file system of the host, not a temporary file
    return shared if shared.is_dir() else state_root()
