"""Programs of a role in a container on another host: the same root view there, held through ssh."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError
from steelyard.run.isolation.root_view import (
    ACCOUNTS,
    EMPTY_FOLDERS,
    GROUPS,
    HOST_FILES,
    HOST_FOLDERS,
    HOST_PATTERNS,
    Mount,
)
from steelyard.studies.replication.devices.contained import (
    NOBODY,
    OWN,
    STORED,
    hold,
    release,
    wait_for_container,
)
from steelyard.studies.replication.devices.limits import cpu_list
from steelyard.studies.replication.devices.placement import Account, Ground, as_account
from steelyard.studies.replication.devices.remote import RemoteGround
from steelyard.studies.replication.devices.runtimes import Container, DockerRuntime, PodmanRuntime, Runtime

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from steelyard.run.hosts.device import Device

TECHNOLOGIES: Final = ("docker", "podman")
"""Those that bring what a container needs along: an engine, or a program that a user may execute."""
IMAGE: Final = "steelyard-root"
"""Image of empty folders; its tag says which, and it stays for the next run."""

_MAKE: Final = f"""
# sh -c MAKE sh FOLDER ARTEFACTS ACCOUNTS GROUPS: makes the skeleton, says what is to be shown in it
folder=$1; artefacts=$2; root=$folder/root
printf '%s' "$3" > "$folder/passwd"; printf '%s' "$4" > "$folder/group"
printf '127.0.0.1 localhost %s\\n::1 localhost\\n' "$(uname -n)" > "$folder/hosts"
for name in {" ".join(EMPTY_FOLDERS)}; do mkdir -p "$root/$name" || exit 1; done
mkdir -p "$root{OWN}" "$root{STORED}" "$root$artefacts"
chmod 1777 "$root/tmp" "$root/var/tmp"
show() {{
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")"; : >> "$root$2"; fi
  printf '%s\\t%s\\n' "$(readlink -f "$1")" "$2"
}}
for path in {" ".join(HOST_FOLDERS)}; do
  if [ -L "$path" ]; then ln -s "$(readlink "$path")" "$root$path"
  elif [ -d "$path" ]; then show "$path" "$path"; fi
done
for path in {" ".join((*HOST_FILES, *(f"/etc/{one}" for one in HOST_PATTERNS)))}; do
  [ ! -e "$path" ] || show "$path" "$path"
done
for name in passwd group hosts; do show "$folder/$name" "/etc/$name"; done
[ ! -d "$artefacts" ] || show "$artefacts" "$artefacts"
"""
_IMPORT: Final = """
docker image inspect "$2" > /dev/null 2>&1 || tar -C "$1" -cf - . | docker import - "$2"
"""
_EMPTY: Final = 'find "$@" -mindepth 1 -delete'


class RemoteContainer(Ground):
    """A container on another host.

    Parameters
    ----------
    device : Device
        Of kind ``ssh``.
    storage : str
        Folder there, or ``memory``.
    folder : Path
        Private folder of this host; its name marks everything.
    technology : str
        One of `TECHNOLOGIES`.
    network : str
        As for a container on this host.

    Raises
    ------
    CapabilityError
        If the technology is another one.
    """

    def __init__(self, device: Device, storage: str, folder: Path, technology: str, network: str) -> None:
        if technology not in TECHNOLOGIES:
            known = " and ".join(f"`{one}`" for one in TECHNOLOGIES)
            message = f"device `{device.name}` is reached by ssh, where containers are by {known}: not by "
            message += f"`{technology}`"
            raise CapabilityError(message, hint=f"name one of them: {known}", code="capability.container")
        self._host = RemoteGround(device, storage, folder)
        self._device = device
        self._folder = folder
        self._technology = technology
        self._container = Container(folder, device, (), network)
        self._runtime: Runtime | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.own, self.stored = str(OWN), str(STORED)

    def open(self) -> None:
        """Connect, make the skeleton, start the container."""
        self._host.open()
        self.artefacts = self._host.artefacts
        found = self._host.aside(["sh", "-c", 'command -v "$1"', "sh", self._technology])
        if not found.succeeded:
            message = f"device `{self._device.name}` has no program `{self._technology}`"
            raise CapabilityError(message, hint="install it there", code="capability.container")
        above = str(Path(self._host.own).parent)
        made = self._host.require(["sh", "-c", _MAKE, "sh", above, self.artefacts, ACCOUNTS, GROUPS])
        mounts = [Mount(Path(source), Path(target)) for source, target in map(_pair, made.splitlines())]
        mounts.append(Mount(Path(self._host.own), OWN, writable=True))
        mounts.append(Mount(Path(self._host.stored), STORED, writable=True))
        self._container = Container(self._folder, self._device, tuple(mounts), self._container.network)
        self._runtime = self._make_runtime(f"{above}/root", made)
        self._runtime.execute = self._host.aside
        log = self._folder / "container.log"
        self._process = hold(self._host.enter_aside(self._runtime.live(self._container)), log)
        wait_for_container(self, self._technology, self._process, log)

    def close(self) -> None:
        """Empty the folders as who wrote there, remove the container, let the keeper remove the rest."""
        if self._process is not None and self._runtime is not None:
            self.aside(["sh", "-c", _EMPTY, "sh", self.own, self.stored])
            self._runtime.remove(self._container)
            release(self._process)
            self._process = None
        self._host.close()

    def enter(self, words: Sequence[str], account: Account | None = None) -> list[str]:
        """Run in the container."""
        assert self._runtime is not None  # noqa: S101 - set by `open`
        inside = [*self._runtime.enter(self._container), *as_account(account), *words]
        return ["setpriv", "--pdeathsig", "KILL", *self._host.enter_aside(inside)]

    def look(self, script: str) -> str:
        """Look at the host, which is the device."""
        return self._host.look(script)

    def account(self, user: str) -> Account | None:
        """Give the account that every container has."""
        return NOBODY

    def put(self, source: Path, name: str) -> None:
        """Send to the host; the container shows the folder."""
        self._host.put(source, name)

    def get(self, name: str, target: Path) -> None:
        """Fetch from the host."""
        self._host.get(name, target)

    def facts(self) -> dict[str, Any]:
        """Say which technology, and on which CPUs its programs are."""
        assert self._runtime is not None  # noqa: S101 - set by `open`
        found = self._host.facts()
        said = self.aside(["sed", "-n", "s/^Cpus_allowed_list:[[:space:]]*//p", "/proc/self/status"]).output
        applied, missing = [], list(found["missing"])
        if self._device.cpus is not None:
            words = f"CPUs {','.join(map(str, self._device.cpus))}"
            if cpu_list(said) == self._device.cpus:
                applied.append(f"{words} (limit of the container)")
            else:
                missing.append(f"{words}: the kernel says {said}")
        return {
            **found,
            "container": self._technology,
            "container_version": self._runtime.version(),
            "network": self._container.network,
            "applied": applied,
            "missing": missing,
        }

    def _make_runtime(self, root: str, listing: str) -> Runtime:
        if self._technology == "podman":
            # As on this host: runc where it is installed, which takes every layout of control groups.
            has_runc = self._host.aside(["sh", "-c", "PATH=$PATH:/usr/sbin; command -v runc"])
            runtime = ["--runtime", has_runc.output] if has_runc.succeeded else []
            return PodmanRuntime((["podman", *runtime], root))
        shown = "".join(line.partition("\t")[2] for line in listing.splitlines())
        image = f"{IMAGE}:{hashlib.sha256(shown.encode()).hexdigest()[:16]}"
        self._host.require(["sh", "-c", _IMPORT, "sh", root, image])
        return DockerRuntime({"client": ["docker"], "image": image, "group": "", "is_own": False})


def _pair(line: str) -> tuple[str, str]:
    source, _, target = line.partition("\t")
    return source, target
