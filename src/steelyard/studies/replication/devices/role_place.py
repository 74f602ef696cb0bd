"""A place on any ground: starts, ends and finds programs by the same few scripts everywhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Self

from steelyard.errors import InternalError, RunError
from steelyard.run.cleanup import SESSION_VARIABLE
from steelyard.run.session import PrivateFolder
from steelyard.studies.replication.devices.interface import Place, Process
from steelyard.studies.replication.devices.placement import PATIENCE_S, SIGNALLED, spawn
from steelyard.studies.replication.devices.scripts import KILL, START, TERMINATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from steelyard.run.hosts.device import Device
    from steelyard.studies.replication.devices.placement import Ground

LOG_BYTES: Final = 64 * 1024
"""What is kept of a log, from its end."""
SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RECORDS: Final = ".steelyard"
"""Folder in the role's own one, of who its programs are."""

_ASK: Final = """
echo "host=$(uname -n)"
echo "kernel=$(uname -r)"
echo "machine=$(uname -m)"
sed -n 's/^model name[[:space:]]*: /processor=/p;s/^Model[[:space:]]*: /processor=/p' /proc/cpuinfo |
  head -n 1
echo "cpus=$(getconf _NPROCESSORS_ONLN)"
sed -n 's/^MemTotal:[[:space:]]*\\([0-9]*\\) kB/memory_kib=\\1/p' /proc/meminfo
sed -n 's/^/clock_source=/p' /sys/devices/system/clocksource/clocksource0/current_clocksource
echo "storage_kind=$(stat -f -c %T "$1")"
df -Pk "$1" | sed -n '2s/^\\([^ ]*\\) .*/storage_source=\\1/p'
df -Pk "$1" | awk 'NR == 2 {print "storage_free_kib=" $4}'
true
"""


class Program(Process):
    """A program at a place."""

    def __init__(self, ground: Ground, command: subprocess.Popen[bytes], record: str, marker: str) -> None:
        self._ground = ground
        self._command = command
        self._record = record
        self._marker = marker

    def poll(self) -> int | None:
        """Give the exit status, as the interface says."""
        status = self._command.poll()
        return None if status is None else _plain(status)

    def wait(self, timeout_s: float) -> int:
        """Wait for the end."""
        try:
            return _plain(self._command.wait(timeout=timeout_s))
        except subprocess.TimeoutExpired as error:
            message = f"`{self._record}` still lives after {timeout_s:g} s"
            raise TimeoutError(message) from error

    def terminate(self) -> None:
        """Ask it to end."""
        if self._command.poll() is None:
            self._ground.aside(["sh", "-c", TERMINATE, "sh", self._record, self._marker])

    def kill(self) -> None:
        """End it and everything it started."""
        self._ground.aside(["sh", "-c", KILL, "sh", self._record, self._marker])
        with suppress(subprocess.TimeoutExpired):
            self._command.wait(timeout=PATIENCE_S / 10)
        if self._command.poll() is None:
            # The client of an engine or ssh may outlive what it was a client of.
            self._command.kill()
            self._command.wait()


class RolePlace(Place):
    """Where one role lives.

    Parameters
    ----------
    role : str
        Name of the role.
    device : Device
        Which device.
    ground_in : callable
        Gives how its programs are run, for a private folder whose name marks all that is made.
    address_of : callable
        Gives the address under which the other roles reach it.
    """

    def __init__(
        self, role: str, device: Device, ground_in: Callable[[Path], Ground], address_of: Callable[[], str]
    ) -> None:
        self.role = role
        self.device = device
        self._ground_in = ground_in
        self._made: Ground | None = None
        self._private: PrivateFolder | None = None
        self._address_of = address_of
        self._address: str | None = None
        self._programs: list[Program] = []
        self._logs: set[Path] = set()
        self._facts: dict[str, Any] | None = None

    @property
    def _ground(self) -> Ground:
        if self._made is None:
            message = f"the place of role `{self.role}` was not entered"
            raise InternalError(message, code="internal.place")
        return self._made

    @property
    def _key(self) -> str:
        assert self._private is not None  # noqa: S101 - it is there as long as the ground
        return self._private.path.name

    @property
    def address(self) -> str:
        """Give the address, as the interface says."""
        if self._address is None:
            self._address = self._address_of()
        return self._address

    @property
    def artefacts(self) -> str:
        """Give the folder of what was built."""
        return self._ground.artefacts

    def path(self, name: str) -> str:
        """Give the path of a file of the own folder."""
        return _below(self._ground.own, name)

    def stored_path(self, name: str) -> str:
        """Give the path of a file on the storage."""
        return _below(self._ground.stored, name)

    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder into the own folder."""
        _below(self._ground.own, name)
        self._ground.put(source, name)

    def get(self, name: str, target: Path) -> None:
        """Copy a file of the own folder to this host."""
        _below(self._ground.own, name)
        self._ground.get(name, target)

    def start(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        user: str = "",
    ) -> Program:
        """Start a program, as the interface says."""
        number = len(self._programs)
        marker = f"{self._key}-{number}."
        self._put_environment(
            f"{RECORDS}/{number}.environment", {**(environment or {}), SESSION_VARIABLE: marker}
        )
        account = self._ground.account(user) if user else None
        if account is not None:
            self._hand_over(account.user_id, account.group_id)
        record = self.path(f"{RECORDS}/{number}")
        words = ["sh", "-c", START, "sh", record, self._ground.own, *command]
        self._logs.add(log)
        program = Program(self._ground, spawn(self._ground.enter(words, account), log), record, marker)
        self._programs.append(program)
        return program

    def facts(self) -> dict[str, Any]:
        """Give what is known of the device and of the role's place on it."""
        if self._facts is None:
            self._facts = {
                **_device_facts(self.device, self._ground),
                "role": self.role,
                "key": self._key,
                "address": self.address,
                **self._ground.facts(),
            }
        return self._facts

    def __enter__(self) -> Self:
        """Make the place."""
        self._private = PrivateFolder()
        try:
            self._made = self._ground_in(self._private.path)
            self._made.open()
            self._made.require(["mkdir", "-p", "-m", "1777", self.path(RECORDS)])
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every program, remove everything, keep the ends of the logs."""
        try:
            for program in reversed(self._programs):
                if program.poll() is None or not self._ground.ends_all:
                    program.kill()
        finally:
            self._remove()
            for log in self._logs:
                keep_end(log)

    def _remove(self) -> None:
        if self._made is not None:
            self._made.close()
        if self._private is not None:
            self._private.remove()

    def _put_environment(self, name: str, added: Mapping[str, str]) -> None:
        known = {"PATH": SEARCH_PATH, "HOME": self._ground.own, "TMPDIR": self._ground.own, "LANG": "C.UTF-8"}
        for one in added:
            if VARIABLE.fullmatch(one) is None:
                message = f"`{one}` is not a name of an environment variable"
                raise RunError(message, hint="letters, digits and `_`, not a digit first", code="run.place")
        lines = [f"export {key}={shlex.quote(value)}\n" for key, value in {**known, **added}.items()]
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".environment") as file:
            file.writelines(lines)
            file.flush()
            self._ground.put(Path(file.name), name)

    def _hand_over(self, user_id: int, group_id: int) -> None:
        """Make an account the owner of the folders, so that a program of its can write there."""
        folders = [self._ground.own, self._ground.stored]
        self._ground.require(["chown", "-R", f"{user_id}:{group_id}", *folders])


def keep_end(log: Path) -> None:
    """Keep the last `LOG_BYTES` of a file, from the begin of a line."""
    with suppress(OSError), log.open("r+b") as file:
        size = file.seek(0, 2)
        if size <= LOG_BYTES:
            return
        file.seek(size - LOG_BYTES)
        end = file.read()
        _, _, whole = end.partition(b"\n")
        file.seek(0)
        file.write(whole or end)
        file.truncate()


def wait_until_gone(program: Process, timeout_s: float) -> int | None:
    """Ask a program to end, end it where it does not in time, and give its status."""
    program.terminate()
    deadline = time.monotonic() + timeout_s
    try:
        return program.wait(max(deadline - time.monotonic(), 0.0))
    except TimeoutError:
        program.kill()
        return program.poll()


def _plain(status: int) -> int:
    return SIGNALLED - status if status < 0 else status


def _below(folder: str, name: str) -> str:
    """Give a path below a folder, and refuse one that leads out of it."""
    asked = PurePosixPath(name)
    if asked.is_absolute() or ".." in asked.parts:
        message = f"`{name}` leads out of the folder of a role"
        raise RunError(message, hint="give a name below it", code="run.place")
    return str(PurePosixPath(folder) / asked)


def _device_facts(device: Device, ground: Ground) -> dict[str, Any]:
    """Give host, kernel, processor, memory, storage and what was stated of a device."""
    pairs = (line.partition("=") for line in ground.look(_ASK).splitlines())
    found: dict[str, Any] = {key: value for key, _, value in pairs if value}
    for key in ("cpus", "memory_kib", "storage_free_kib"):
        if str(found.get(key, "")).isdigit():
            found[key] = int(found[key])
    return {"device": device.name, "kind": device.kind, "is_played": device.is_played, **found}
