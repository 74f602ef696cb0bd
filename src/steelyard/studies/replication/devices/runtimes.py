"""Container technologies as a role uses them: one container per role, in which its programs are run.

The first process of a container ends when its standard input is closed. The container's client holds the
other end, and is a child of the conductor: however that ends, the container ends with it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import attempt, first_line, installed
from steelyard.run.isolation.docker import LABEL, mount_option
from steelyard.run.isolation.docker import REPAIR as DOCKER_REPAIR
from steelyard.run.isolation.oci import Crun, Runc, container_configuration
from steelyard.run.isolation.podman import LIMITS, podman_client
from steelyard.run.isolation.podman import REPAIR as PODMAN_REPAIR
from steelyard.run.isolation.root_view import make_skeleton
from steelyard.studies.replication.devices.engines import container_engines
from steelyard.studies.replication.devices.limits import MEBIBYTE, PERCENT, PERIOD_US

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from steelyard.run.hosts.device import Device
    from steelyard.run.isolation.attempt import Attempt
    from steelyard.run.isolation.oci import OciRuntime
    from steelyard.run.isolation.root_view import Mount

LIVE: Final = ["sh", "-c", "exec 3<&0; cat <&3 >/dev/null & wait $!"]
"""Lives as long as its standard input, and takes leave of orphans."""
HOST_NETWORK: Final = "host"
OWN_NETWORK: Final = "own, loopback only"
REMOVAL_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Container:
    """What a container is made from.

    Parameters
    ----------
    folder : Path
        Private folder; its name marks everything.
    device : Device
        Whose limits it gets.
    mounts : tuple of Mount
        What of the host it shows.
    network : str
        `HOST_NETWORK` or `OWN_NETWORK`.
    """

    folder: Path
    device: Device
    mounts: tuple[Mount, ...]
    network: str

    @property
    def name(self) -> str:
        """Unique name."""
        return f"{self.folder.name}-role"

    @property
    def root(self) -> Path:
        """Where the skeleton of its root is, for technologies that take one."""
        return self.folder / "root"

    def make_root(self) -> None:
        """Make the skeleton with a point for every mount."""
        make_skeleton(self.root, [mount.target for mount in self.mounts if mount.target.exists()])


class Runtime(ABC):
    """One container technology."""

    name: str = ""
    repair: str = ""
    execute: Callable[..., Attempt] = staticmethod(attempt)
    """How its short commands are executed: here, unless it is set to what executes them elsewhere."""

    @abstractmethod
    def prepare(self, container: Container) -> None:
        """Make what the container needs.

        Raises
        ------
        CapabilityError
            If the technology is not available.
        """

    @abstractmethod
    def live(self, container: Container) -> list[str]:
        """Give the command that holds the container."""

    @abstractmethod
    def enter(self, container: Container) -> list[str]:
        """Give the words in front of a command that is run in the container."""

    @abstractmethod
    def first_process(self, container: Container) -> int | None:
        """Give the number, on the host, of the container's first process."""

    @abstractmethod
    def remove(self, container: Container) -> None:
        """Remove the container, should it still be there."""

    @abstractmethod
    def version(self) -> str:
        """Give what the technology calls itself."""

    def facts(self) -> dict[str, Any]:
        """Give what else is worth knowing."""
        return {}

    def _require(self, *programs: str) -> None:
        for program in programs:
            if installed(program) is None:
                message = f"a container by `{self.name}` needs `{program}`, which is not installed"
                raise CapabilityError(message, hint=self.repair, code="capability.container")


class DockerRuntime(Runtime):
    """Docker.

    Parameters
    ----------
    engine : Mapping or None
        What `container_engines` gave for it; ``None``: an engine for this container alone.
    """

    name = "docker"
    repair = DOCKER_REPAIR

    def __init__(self, engine: Mapping[str, Any] | None) -> None:
        self._engine: Mapping[str, Any] = engine or {}
        self._started = ExitStack()

    @property
    def _client(self) -> list[str]:
        return list(self._engine.get("client", ("docker",)))

    def prepare(self, container: Container) -> None:
        """Start an engine, unless there is one."""
        self._require("docker")
        if not self._engine:
            self._engine = self._started.enter_context(container_engines([self.name]))[self.name]

    def live(self, container: Container) -> list[str]:
        """Give ``docker run``."""
        command = [*self._client, "run", "--interactive", "--rm", "--name", container.name]
        command += ["--label", f"{LABEL}={container.folder.name}", "--log-driver", "none"]
        command += ["--network", "host" if container.network == HOST_NETWORK else "none"]
        if self._engine["group"]:
            command += ["--cgroup-parent", self._engine["group"]]
        for mount in container.mounts:
            command += ["--mount", mount_option(mount)]
        command += ["--tmpfs", "/tmp:exec,mode=1777"]  # noqa: S108 - inside the container
        return [*command, *_limit_words(container.device), self._engine["image"], *LIVE]

    def enter(self, container: Container) -> list[str]:
        """Give ``docker exec``."""
        return [*self._client, "exec", container.name]

    def first_process(self, container: Container) -> int | None:
        """Ask the engine."""
        return _number(
            attempt([*self._client, "inspect", "--format", "{{.State.Pid}}", container.name]).output
        )

    def remove(self, container: Container) -> None:
        """Remove by force."""
        if self._engine:
            self.execute([*self._client, "rm", "--force", container.name], timeout_s=REMOVAL_S)
        self._started.close()

    def version(self) -> str:
        """Ask the engine."""
        return self.execute([*self._client, "version", "--format", "{{.Server.Version}}"]).output

    def facts(self) -> dict[str, Any]:
        """Say whose engine it is."""
        return {"engine": "started for the study" if self._engine["is_own"] else "the host's"}


class PodmanRuntime(Runtime):
    """Podman on the skeleton root.

    Parameters
    ----------
    elsewhere : tuple or None
        Podman's words and where the skeleton is, for another host; ``None``: this one, where the skeleton and
        podman's storage are in the private folder.
    """

    name = "podman"
    repair = PODMAN_REPAIR

    def __init__(self, elsewhere: tuple[Sequence[str], str] | None = None) -> None:
        self._elsewhere = elsewhere

    def _client(self, container: Container) -> list[str]:
        return podman_client(container.folder) if self._elsewhere is None else list(self._elsewhere[0])

    def prepare(self, container: Container) -> None:
        """Make the skeleton."""
        self._require("podman", "runc")
        container.make_root()

    def live(self, container: Container) -> list[str]:
        """Give ``podman run``."""
        command = [*self._client(container), "run", "--interactive", "--rm", "--name", container.name]
        command += ["--network", "host" if container.network == HOST_NETWORK else "none"]
        command += ["--log-driver", "none"]
        if self._elsewhere is None:
            command += ["--cgroup-parent", f"/{container.folder.name}"]
        for limit in LIMITS:
            command += ["--ulimit", limit]
        for mount in container.mounts:
            command += ["--volume", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"]
        command += [*_limit_words(container.device), "--read-only"]
        root = str(container.root) if self._elsewhere is None else self._elsewhere[1]
        return [*command, "--rootfs", root, *LIVE]

    def enter(self, container: Container) -> list[str]:
        """Give ``podman exec``."""
        return [*self._client(container), "exec", container.name]

    def first_process(self, container: Container) -> int | None:
        """Ask podman."""
        command = [*self._client(container), "inspect", "--format", "{{.State.Pid}}", container.name]
        return _number(self.execute(command).output)

    def remove(self, container: Container) -> None:
        """Remove by force."""
        command = [*self._client(container), "rm", "--force", "--time", "0", "--ignore"]
        self.execute([*command, container.name], timeout_s=REMOVAL_S)

    def version(self) -> str:
        """Ask podman."""
        return self.execute(["podman", "--version"]).output.partition("\n")[0]


class BareRuntime(Runtime):
    """An OCI runtime on the skeleton root, without any engine.

    Parameters
    ----------
    technology : OciRuntime
        Which.
    """

    def __init__(self, technology: OciRuntime) -> None:
        self._technology = technology
        self.name = technology.name
        self.repair = f"sudo apt-get install {technology.name}"

    def prepare(self, container: Container) -> None:
        """Make the skeleton and the bundle."""
        self._require(self.name)
        container.make_root()
        configuration = container_configuration(container.root, container.mounts, LIVE)
        linux = configuration["linux"]
        linux["cgroupsPath"] = f"/{container.folder.name}/{container.name}"
        linux["resources"] |= _limit_document(container.device)
        if container.network == HOST_NETWORK:
            linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "network"]
        text = json.dumps(configuration, indent=1)
        (container.folder / "config.json").write_text(text, encoding="utf-8")

    def live(self, container: Container) -> list[str]:
        """Give the ``run`` command."""
        runtime = self._technology.runtime(container.folder)
        return [*runtime, "run", "--bundle", str(container.folder), container.name]

    def enter(self, container: Container) -> list[str]:
        """Give the ``exec`` command."""
        return [*self._technology.runtime(container.folder), "exec", container.name]

    def first_process(self, container: Container) -> int | None:
        """Read the runtime's state."""
        said = attempt([*self._technology.runtime(container.folder), "state", container.name]).output
        try:
            return int(json.loads(said)["pid"]) or None
        except (ValueError, KeyError, TypeError):
            return None

    def remove(self, container: Container) -> None:
        """Delete by force."""
        runtime = self._technology.runtime(container.folder)
        if (container.folder / self.name / container.name).exists():
            attempt([*runtime, "delete", "--force", container.name], timeout_s=REMOVAL_S)

    def version(self) -> str:
        """Ask the program."""
        return first_line([self.name, "--version"])


def runtime_of(technology: str, engines: Mapping[str, Mapping[str, Any]]) -> Runtime:
    """Give a container technology by name.

    Raises
    ------
    CapabilityError
        If there is no such technology.
    """
    if technology == "docker":
        return DockerRuntime(engines.get("docker"))
    if technology == "podman":
        return PodmanRuntime()
    if technology in {"crun", "runc"}:
        return BareRuntime(Crun() if technology == "crun" else Runc())
    message = f"`{technology}` is not a container technology for roles; known: {', '.join(TECHNOLOGIES)}"
    raise CapabilityError(message, hint="name one of them", code="capability.container")


TECHNOLOGIES: Final = ("docker", "podman", "crun", "runc")
"""In the order in which they are tried where none is named."""


def _limit_words(device: Device) -> list[str]:
    words = []
    if device.cpu_percent is not None:
        words += ["--cpus", f"{device.cpu_percent / PERCENT:g}"]
    if device.cpus is not None:
        words += ["--cpuset-cpus", ",".join(map(str, device.cpus))]
    if device.memory_mib is not None:
        words += ["--memory", f"{device.memory_mib}m"]
    return words


def _limit_document(device: Device) -> dict[str, Any]:
    cpu: dict[str, Any] = {}
    if device.cpu_percent is not None:
        cpu |= {"period": PERIOD_US, "quota": device.cpu_percent * PERIOD_US // PERCENT}
    if device.cpus is not None:
        cpu["cpus"] = ",".join(map(str, device.cpus))
    found: dict[str, Any] = {"cpu": cpu} if cpu else {}
    if device.memory_mib is not None:
        found["memory"] = {"limit": device.memory_mib * MEBIBYTE}
    return found


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() and int(text) > 0 else None
