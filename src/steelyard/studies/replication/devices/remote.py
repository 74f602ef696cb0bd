"""Programs of a role on another host, by ssh.

One connection per place carries everything. At its other end a keeper makes the role's folders, waits for
the end of its input, and then ends the programs and removes the folders: however the conductor ends, its
host closes the connection, so that nothing stays on the other one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tarfile
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import RunError
from steelyard.run.hosts.hostfile import Host
from steelyard.run.hosts.ssh import PINNED, address_and_port, login_refused
from steelyard.studies.replication.devices.native import FALLBACK_USER
from steelyard.studies.replication.devices.placement import (
    PATIENCE_S,
    Account,
    Ground,
    artefacts_folder,
    as_account,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.run.hosts.device import Device

OF_MACHINE: Final = ("python",)
"""What is built for one kind of processor and is left out where the other host has another one."""
BROUGHT_FILE: Final = ".brought"
"""Says of a folder that it was brought, not built there."""
SEND_S: Final = 60.0

KEEP: Final = """
# sh -c KEEP sh KEY STORAGE
key=$1; storage=$2
trap '' HUP PIPE
memory=/dev/shm; [ -w "$memory" ] || memory=${TMPDIR:-/tmp}
began() { IFS= read -r line < "/proc/$1/stat" && set -- ${line##*) } && echo "${20}"; }
forget() {
  umount -l "$1/stored" 2>/dev/null
  rm -rf "$1" "$2"
}
for folder in "$memory"/steelyard-*; do
  [ -O "$folder/keeper" ] || continue
  { read -r process start; IFS= read -r on_storage; } < "$folder/keeper"
  [ "$(began "$process" 2>/dev/null)" = "$start" ] || forget "$folder" "$on_storage"
done
folder=$memory/$key
case $storage in
  memory) on_storage=$folder/memory ;;
  "~/"*) on_storage=$HOME/${storage#"~/"}/$key ;;
  *) on_storage=$storage/$key ;;
esac
umask 022
mkdir -p "$folder/own" || exit 1
printf '%s\\n%s\\n' "$$ $(began $$)" "$on_storage" > "$folder/keeper"
mkdir -p "$on_storage" || { rm -rf "$folder"; exit 1; }
stored=$on_storage
user=$(id -u)
if [ "$user" = 0 ] && ! setpriv --reuid=65534 --clear-groups test -r "$on_storage"; then
  mkdir "$folder/stored" && mount --bind "$on_storage" "$folder/stored" && stored=$folder/stored
fi
cat <<END
own=$folder/own
stored=$stored
user=$user
machine=$(uname -m)
cache=${XDG_CACHE_HOME:-$HOME/.cache}
ready=yes
END
cat > /dev/null
round=0
while [ $round -lt 50 ]; do
  round=$((round + 1))
  left=$(grep -lsF "STEELYARD_SESSION=$key-" /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  for one in $left; do one=${one#/proc/}; kill -KILL "${one%/environ}" 2>/dev/null; done
  sleep 0.05
done
forget "$folder" "$on_storage"
"""
"""The keeper. It also removes what a keeper left that was killed or lost its host."""
PLAIN_STATUS: Final = '"$@"; exit $?'
"""ssh says 255 of a program that a signal ended; a shell in between says which signal it was."""


class RemoteGround(Ground):
    """Another host.

    Parameters
    ----------
    device : Device
        Of kind ``ssh``.
    storage : str
        Folder there, or ``memory``.
    folder : Path
        Private folder of this host; its name marks everything.
    """

    def __init__(self, device: Device, storage: str, folder: Path) -> None:
        self._device = device
        self._storage = storage
        self._folder = folder
        self._host = host_of(device)
        self._said: dict[str, str] = {}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._artefacts_are = ""
        self._missing: list[str] = []

    def open(self) -> None:
        """Connect, have the folders made, and what was built brought there."""
        _, port = address_and_port(self._host, self._device.ssh_options)
        errors = self._folder / "ssh.log"
        words = self._ssh("yes", ["sh", "-c", KEEP, "sh", self._folder.name, self._storage])
        with errors.open("wb") as log:
            self._keeper = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self._keeper.stdout is not None  # noqa: S101 - a pipe was asked for
        for line in self._keeper.stdout:
            key, _, value = line.decode(errors="replace").rstrip("\n").partition("=")
            self._said[key] = value
            if key == "ready":
                break
        if "ready" not in self._said:
            self._keeper.wait()
            raise self._refused(errors.read_text(errors="replace"), port)
        self.own, self.stored = self._said["own"], self._said["stored"]
        self.artefacts = f"{self._said['cache']}/steelyard/replication"
        self._artefacts_are, self._missing = send_artefacts(self, self._said["machine"])

    def close(self) -> None:
        """Let the keeper remove everything, and wait for it."""
        if self._keeper is None:
            return
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._keeper.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self._keeper = None

    def enter(self, words: Sequence[str], account: Account | None = None) -> list[str]:
        """Run there, on the CPUs of the device."""
        command = list(words)
        if self._device.cpus is not None:
            command = ["taskset", "--cpu-list", ",".join(map(str, self._device.cpus)), *command]
        return ["setpriv", "--pdeathsig", "KILL", *self.enter_aside([*as_account(account), *command])]

    def enter_aside(self, words: Sequence[str]) -> list[str]:
        """Run there."""
        return self._ssh("no", ["sh", "-c", PLAIN_STATUS, "sh", *words])

    def account(self, user: str) -> Account | None:
        """Give the account of that name there, else `FALLBACK_USER`; ``None`` unless we are root there."""
        if self._said.get("user") != "0":
            return None
        for name in (user, FALLBACK_USER):
            found = self.aside(["getent", "passwd", name]).output.split(":")
            if len(found) > 3:  # noqa: PLR2004 - SOURCE: passwd(5): name, password, user, group, ...
                return Account(found[0], int(found[2]), int(found[3]))
        return None

    def put(self, source: Path, name: str) -> None:
        """Send as an archive."""
        self.send(source, name, self.own)

    def send(self, source: Path, name: str, folder: str, left_out: Sequence[str] = ()) -> None:
        """Send a file or a folder as an archive that is unpacked below a folder there.

        Raises
        ------
        RunError
            If it cannot be read here or written there.
        """

        def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
            return None if member.name in {f"{name}/{one}" for one in left_out} else member

        command = self.enter_aside(["tar", "-C", folder, "-xf", "-"])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as unpacking:
            assert unpacking.stdin is not None  # noqa: S101 - a pipe was asked for
            reason = ""
            try:
                with tarfile.open(fileobj=unpacking.stdin, mode="w|") as archive:
                    archive.add(source, arcname=name, filter=kept)
            except OSError as error:
                reason = error.strerror or str(error)
            _, said = unpacking.communicate()
        if unpacking.returncode != 0 or reason:
            words = (said.decode(errors="replace").strip().splitlines() or [reason])[-1]
            message = f"cannot send `{source}` to device `{self._device.name}`: {words}"
            raise RunError(message, hint="check for free space and `tar` there", code="run.place")

    def get(self, name: str, target: Path) -> None:
        """Fetch."""
        command = self.enter_aside(["cat", "--", f"{self.own}/{name}"])
        with target.open("wb") as file:
            done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            target.unlink()
            words = done.stderr.decode(errors="replace").strip()
            message = f"the program of a role left no file `{name}`: {words}"
            raise RunError(message, hint="read the end of its log", code="run.place-file")

    def facts(self) -> dict[str, Any]:
        """Say how the host was reached."""
        applied = []
        if self._device.cpus is not None:
            applied.append(f"affinity to CPUs {','.join(map(str, self._device.cpus))}")
        return {
            "container": None,
            "network": "host",
            "ssh": self._device.host,
            "artefacts": self._artefacts_are,
            "applied": applied,
            "missing": self._missing,
        }

    def _ssh(self, master: str, words: Sequence[str]) -> list[str]:
        shared = ["-o", f"ControlMaster={master}", "-o", f"ControlPath={self._folder}/ssh"]
        options = [*shared, *self._device.ssh_options, *PINNED]
        return ["ssh", *options, "--", self._device.host, shlex.join(words)]

    def _refused(self, said: str, port: str) -> Exception:
        if self._keeper is not None and self._keeper.returncode not in {0, 255}:
            words = (said.strip().splitlines() or ["no reason was given"])[-1]
            message = f"cannot create the folders of a role on device `{self._device.name}`: {words}"
            hint = "state a storage folder you may write to there in the device file"
            return RunError(message, hint=hint, code="run.place")
        return login_refused(self._host, said, port)


def host_of(device: Device) -> Host:
    """Give the host of a device of kind ``ssh``."""
    user, _, name = device.host.rpartition("@")
    return Host(name, user or None)


def send_artefacts(ground: RemoteGround, machine: str) -> tuple[str, list[str]]:
    """Bring what was built to another host, unless it has it: brought before, or built there.

    Give what there is, in words, and what could not be brought, with the reason.
    """
    source, folder = artefacts_folder(), ground.artefacts
    looked = ground.aside(["sh", "-c", _LOOK, "sh", folder], timeout_s=SEND_S).output.split()
    there = looked[1] if len(looked) == 2 else ""  # noqa: PLR2004 - whether it was brought, and what it is
    if there and looked[0] == "built":
        return f"built there, {_named(there)}", []
    if not source.is_dir():
        return "none", ["nothing was built here that could be copied: make deps-replication"]
    own = os.uname().machine
    left_out = OF_MACHINE if machine != own else ()
    missing = [
        f"`{name}` is built for {own} and cannot be copied to {machine}: make deps-replication there"
        for name in left_out
        if (source / name).exists()
    ]
    digest = digest_of(source, left_out)
    if there != digest:
        parent, _, name = folder.rpartition("/")
        fresh = f"{name}.new"
        ground.require(["sh", "-c", 'mkdir -p "$1" && rm -rf "$1/$2"', "sh", parent, fresh])
        ground.send(source, fresh, parent, left_out)
        ground.require(["sh", "-c", _REPLACE, "sh", folder, f"{parent}/{fresh}"], timeout_s=SEND_S)
    return f"brought, {_named(digest)}", missing


def _named(digest: str) -> str:
    return f"sha256 {digest[:16]}"


_DIGEST: Final = f"""
# The SHA-256 of the folder's names, kinds, rights to execute and contents; ARGUMENTS name what is left out.
digest() {{
  for left_out in "$@"; do set -- "$@" ! -path "./$left_out" ! -path "./$left_out/*"; shift; done
  {{
    find . -type d "$@" -exec printf 'd %s\\n' {{}} +
    find . -type f "$@" ! -path ./{BROUGHT_FILE} -exec sha256sum {{}} +
    find . -type f "$@" -perm -100 -exec printf 'x %s\\n' {{}} +
    find . -type l "$@" -exec sh -c 'for l; do printf "l %s %s\\n" "$l" "$(readlink "$l")"; done' sh {{}} +
  }} | LC_ALL=C sort | sha256sum | cut -c 1-64
}}
"""
_LOOK: Final = f"""{_DIGEST}
cd "$1" 2> /dev/null || exit 0
shift
[ -e {BROUGHT_FILE} ] && echo brought || echo built
digest "$@"
"""
_REPLACE: Final = f"""
: > "$2/{BROUGHT_FILE}" && rm -rf "$1" && mv "$2" "$1"
"""


@cache
def digest_of(folder: Path, left_out: tuple[str, ...] = ()) -> str:
    """Give the SHA-256 of a folder here as another host computes it, without some names directly below."""
    command = ["sh", "-c", _LOOK, "sh", str(folder), *left_out]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return answer.stdout.split()[1]
