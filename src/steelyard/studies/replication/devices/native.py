"""Programs of a role as processes of this host."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError, RunError
from steelyard.run.cleanup import note_outside, remove_tree
from steelyard.run.hosts.device import MEMORY, Device
from steelyard.run.isolation.attempt import attempt
from steelyard.studies.replication.devices.limits import Limits, limits_of, make_limits
from steelyard.studies.replication.devices.placement import Account, Ground, artefacts_folder
from steelyard.studies.replication.devices.scripts import JOIN

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARED: Final = Path("/dev/shm")  # noqa: S108 - the memory file system of the host, not a temporary file
FALLBACK_USER: Final = "nobody"
"""Who runs what root may not, where the account asked for is unknown."""


class HostFolders:
    """The folders of a role on this host: its own in memory, and one on its storage.

    Parameters
    ----------
    private : Path
        Private folder; its name is part of both names, and it notes what is made outside.
    storage : str
        Folder, or `MEMORY`.
    """

    def __init__(self, private: Path, storage: str) -> None:
        key = private.name
        self._private = private
        self.own = SHARED / key / "own"
        storage_folder = SHARED / key if storage == MEMORY else Path(storage).expanduser() / key
        self._on_storage = storage_folder / "stored"
        self.stored = self._on_storage
        if os.geteuid() == 0 and _is_closed(storage_folder):
            # A database's account cannot pass the home of root: it is shown the folder beside its own.
            self.stored = SHARED / key / "stored"

    def make(self) -> None:
        """Make both; others than the owner may pass, so that a program of another account can.

        Raises
        ------
        RunError
            If one cannot be made.
        """
        for folder in (self.own, self._on_storage):
            try:
                note_outside(self._private, folder.parent)
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.parent.chmod(0o711)
                folder.mkdir()
            except OSError as error:
                message = f"cannot create the folder `{folder}`: {error.strerror}"
                hint = "state a storage folder you may write to in the device file"
                raise RunError(message, hint=hint, code="run.place") from error
        if self.stored != self._on_storage:
            self.stored.mkdir()
            if not attempt(["mount", "--bind", self._on_storage, self.stored]).succeeded:
                self.stored = self._on_storage

    def remove(self) -> None:
        """Remove both."""
        for folder in (self.own.parent, self._on_storage.parent):
            remove_tree(folder)

    def put(self, source: Path, name: str) -> None:
        """Copy a file or folder into the own one."""
        target = self.own / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
            else:
                shutil.copy2(source, target)
        except (OSError, shutil.Error) as error:
            message = f"cannot copy `{source}` to the place of a role: {error}"
            raise RunError(message, code="run.place") from error

    def get(self, name: str, target: Path) -> None:
        """Copy a file out of the own one."""
        try:
            shutil.copyfile(self.own / name, target)
        except OSError as error:
            message = f"the program of a role left no file `{name}`: {error.strerror}"
            raise RunError(message, hint="read the end of its log", code="run.place-file") from error


class NativeGround(Ground):
    """Processes of this host.

    Parameters
    ----------
    device : Device
        ``local`` or ``played``.
    storage : str
        Folder, or `MEMORY`.
    folder : Path
        Private folder; its name is the unique text.
    """

    ends_all = False

    def __init__(self, device: Device, storage: str, folder: Path) -> None:
        self._device = device
        self._folders = HostFolders(folder, storage)
        self.own, self.stored = str(self._folders.own), str(self._folders.stored)
        self.artefacts = str(artefacts_folder())
        self._key = folder.name
        self._limits = Limits()

    def open(self) -> None:
        """Make the folders, and the control groups of a device that is played."""
        require_cpus(self._device)
        self._folders.make()
        self.stored = str(self._folders.stored)
        self._limits = make_limits(self._device, self._key)

    def close(self) -> None:
        """Remove all of it."""
        self._limits.remove()
        self._folders.remove()

    def enter(self, words: Sequence[str], account: Account | None = None) -> list[str]:
        """Run as a process that ends with this thread, in the groups and on the CPUs of the device."""
        groups = [f"{group}/cgroup.procs" for group in self._limits.groups]
        command = ["sh", "-c", JOIN, "sh", str(len(groups)), *groups] if groups else []
        command += ["setpriv", "--pdeathsig", "KILL"]
        if account is not None:
            command += [f"--reuid={account.user_id}", f"--regid={account.group_id}", "--clear-groups"]
        if self._device.cpus is not None:
            command += ["taskset", "--cpu-list", ",".join(map(str, self._device.cpus))]
        return [*command, *words]

    def enter_aside(self, words: Sequence[str]) -> list[str]:
        """Run without limits."""
        return list(words)

    def account(self, user: str) -> Account | None:
        """Give the account of that name, else `FALLBACK_USER`; ``None`` unless this is root."""
        return host_account(user)

    def put(self, source: Path, name: str) -> None:
        """Copy."""
        self._folders.put(source, name)

    def get(self, name: str, target: Path) -> None:
        """Copy."""
        self._folders.get(name, target)

    def facts(self) -> dict[str, Any]:
        """Say that there is no container, and what became of the limits."""
        groups = attempt(self.enter(["cat", "/proc/self/cgroup"])).output
        applied, missing = limits_of(self._device, groups)
        reasons = {one.partition(":")[0]: one for one in self._limits.missing}
        missing = [reasons.get(one.partition(":")[0], one) for one in missing]
        if self._device.cpus is not None:
            applied.append(f"affinity to CPUs {','.join(map(str, self._device.cpus))}")
        return {"container": None, "network": "host", "applied": applied, "missing": missing}


def _is_closed(folder: Path) -> bool:
    """Whether a folder lies in one that others than its owner may not pass."""
    return any(place.exists() and not place.stat().st_mode & stat.S_IXOTH for place in folder.parents)


def require_cpus(device: Device) -> None:
    """Refuse a device of this host with CPUs that this host has not.

    Raises
    ------
    CapabilityError
        Naming them, and those there are.
    """
    usable = os.sched_getaffinity(0)
    absent = [cpu for cpu in device.cpus or () if cpu not in usable]
    if absent:
        message = (
            f"device `{device.name}` has CPUs {absent}, which are not usable on this host; "
            f"usable: {sorted(usable)}"
        )
        raise CapabilityError(message, hint="change `cpus` in the device file", code="capability.cpus")


def host_account(user: str) -> Account | None:
    """Give an account of this host by name, else `FALLBACK_USER`; ``None`` unless this is root."""
    if os.geteuid() != 0:
        return None
    for name in (user, FALLBACK_USER):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_name, found.pw_uid, found.pw_gid)
    return None
