"""Programs of a role in a container on this host, which sees the host's programs and nothing else of it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError
from steelyard.run.cleanup import remove_control_groups
from steelyard.run.isolation.attempt import attempt
from steelyard.run.isolation.root_view import (
    ACCOUNTS,
    GROUPS,
    HOST_FOLDERS,
    Mount,
    folders_needed,
    host_mounts,
)
from steelyard.studies.replication.devices.limits import limits_of
from steelyard.studies.replication.devices.native import HostFolders, host_account, require_cpus
from steelyard.studies.replication.devices.placement import Account, Ground, artefacts_folder, as_account
from steelyard.studies.replication.devices.runtimes import Container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.run.hosts.device import Device
    from steelyard.studies.replication.devices.runtimes import Runtime

OWN: Final = Path("/steelyard/own")
STORED: Final = Path("/steelyard/stored")
START_S: Final = 60.0
NOBODY: Final = Account("nobody", 65534, 65534)
"""SOURCE: `ACCOUNTS` of the root view."""
HOSTS: Final = f"127.0.0.1 localhost steelyard {os.uname().nodename}\n::1 localhost\n"


class ContainedGround(Ground):
    """A container of one technology.

    Parameters
    ----------
    device : Device
        ``local`` or ``played``; its limits are the container's.
    storage : str
        Folder of the host, or `MEMORY`.
    folder : Path
        Private folder; its name is the unique text.
    runtime : Runtime
        The technology.
    network : str
        `HOST_NETWORK` or `OWN_NETWORK`.
    """

    def __init__(self, device: Device, storage: str, folder: Path, runtime: Runtime, network: str) -> None:
        self._device = device
        self._folders = HostFolders(folder, storage)
        self._runtime = runtime
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.own, self.stored, self.artefacts = str(OWN), str(STORED), str(artefacts_folder())
        self._container = Container(folder, device, (), network)

    def open(self) -> None:
        """Start the container, and wait until it runs."""
        require_cpus(self._device)
        self._folders.make()
        for name, text in (("passwd", ACCOUNTS), ("group", GROUPS), ("hosts", HOSTS)):
            (self._folder / name).write_text(text, encoding="utf-8")
        self._container = Container(
            self._folder, self._device, tuple(self._mounts()), self._container.network
        )
        self._runtime.prepare(self._container)
        log = self._folder / "container.log"
        self._process = hold(self._runtime.live(self._container), log)
        wait_for_container(self, self._runtime.name, self._process, log)

    def close(self) -> None:
        """Remove the container and the folders."""
        if self._process is not None:
            self._runtime.remove(self._container)
            release(self._process)
            self._process = None
            # Runtimes leave the parent of the container's groups.
            remove_control_groups(self._folder.name)
        self._folders.remove()

    def enter(self, words: Sequence[str], account: Account | None = None) -> list[str]:
        """Run in the container; its rights to change the account are the engine's default ones."""
        command = self._runtime.enter(self._container)
        return [*command, *as_account(account), *words]

    def look(self, script: str) -> str:
        """Look at the host, which is the device."""
        return attempt(["sh", "-c", script, "sh", str(self._folders.stored)]).output

    def account(self, user: str) -> Account | None:
        """Give the account of that name on the host, and make it known in the container."""
        found = host_account(user) or NOBODY
        known = self._folder / "passwd"
        text = known.read_text(encoding="utf-8")
        if f":{found.user_id}:" not in text:
            line = f"{found.name}:x:{found.user_id}:{found.group_id}::/nonexistent:/bin/sh\n"
            known.write_text(text + line, encoding="utf-8")
        return found

    def put(self, source: Path, name: str) -> None:
        """Copy; the container shows the folder."""
        self._folders.put(source, name)

    def get(self, name: str, target: Path) -> None:
        """Copy."""
        self._folders.get(name, target)

    def facts(self) -> dict[str, Any]:
        """Say which technology, and what became of the limits."""
        process = self._runtime.first_process(self._container)
        groups = attempt(["cat", f"/proc/{process or 'self'}/cgroup"]).output
        applied, missing = limits_of(self._device, groups)
        return {
            "container": self._runtime.name,
            "container_version": self._runtime.version(),
            "network": self._container.network,
            "applied": applied,
            "missing": missing,
            **self._runtime.facts(),
        }

    def _mounts(self) -> list[Mount]:
        """Give what is shown: host programs, what was built, interpreters it links to, the two folders."""
        mounts = host_mounts()
        built = artefacts_folder()
        if built.is_dir():
            mounts.append(Mount(built.resolve(), built))
            linked = [path.resolve() for path in built.glob("*/bin/python*") if path.is_symlink()]
            outside = [path for path in map(str, linked) if not path.startswith((*HOST_FOLDERS, str(built)))]
            mounts += [Mount(path.resolve(), path) for path in folders_needed(outside)]
        for name in ("passwd", "group", "hosts"):
            mounts.append(Mount(self._folder / name, Path("/etc") / name))
        mounts.append(Mount(self._folders.own, OWN, writable=True))
        mounts.append(Mount(self._folders.stored, STORED, writable=True))
        return mounts


def hold(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start what holds a container; it lives until its input is closed."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )


def release(process: subprocess.Popen[bytes]) -> None:
    """Close the input of what holds a container that was removed, and end it."""
    if process.stdin is not None:
        process.stdin.close()
    process.kill()
    process.wait()


def wait_for_container(ground: Ground, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a container runs programs.

    Raises
    ------
    CapabilityError
        If it ends before, with its last words.
    """
    deadline = time.monotonic() + START_S
    while not ground.aside(["true"]).succeeded:
        if process.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").strip().splitlines()
            words = lines[-1] if lines else "it did not start in time"
            message = f"cannot start a container by `{name}`: {words}"
            raise CapabilityError(message, hint="steelyard doctor", code="capability.container")
        time.sleep(0.02)
