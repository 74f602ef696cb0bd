"""Docker: a container per worker, on the host's engine or on one of our own."""

from __future__ import annotations

import atexit
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError
from steelyard.run.cleanup import end_remains
from steelyard.run.isolation.attempt import attempt, first_line, installed
from steelyard.run.isolation.contained import Contained, comma_list
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.offered_groups import offer_groups, offered_mounts, withdraw_groups
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import make_skeleton, site_mounts, skeleton_archive
from steelyard.run.isolation.serving import serve_command
from steelyard.run.session import PrivateFolder

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunSpec
    from steelyard.run.isolation.root_view import Mount
    from steelyard.run.session import Session, Site

LABEL: Final = "steelyard.session"
ENGINE_START_S: Final = 20.0
STORAGE_DRIVERS: Final = ("overlay2", "vfs")
MAXIMAL_SHARES: Final = 262144  # SOURCE: kernel, MAX_SHARES of the CPU controller, version 1
# What building a sandbox inside needs. Less than `--privileged`, and it works where the engine itself
# lacks a capability, which `--privileged` does not.
BUILDER_OPTIONS: Final = [
    *("--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "NET_ADMIN"),
    *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
    *("--security-opt", "systempaths=unconfined", "--cgroupns", "host"),
    *("--mount", "type=bind,source=/sys/fs/cgroup,target=/sys/fs/cgroup"),
]
REPAIR: Final = "sudo apt-get install docker.io"
# KERNEL: version 2 lets no process into a group from outside of its namespace.
CGROUP_OPTIONS: Final = ["--cgroupns", "host"]


class DockerEngine:
    """The engine containers are started on: the host's if it answers, else one of our own.

    Our own engine has no network, needs no service manager, keeps everything in a private folder
    and ends with this process.
    """

    def __init__(self) -> None:
        self._folder: PrivateFolder | None = None
        self._daemon: subprocess.Popen[bytes] | None = None
        self._image: str | None = None
        self.client: list[str] = ["docker"]

    @property
    def is_own(self) -> bool:
        """Whether the engine was started by us."""
        return self._daemon is not None

    @property
    def group(self) -> str:
        """Give the parent of the containers' control groups, named after the engine's folder."""
        return "" if self._folder is None else f"/{self._folder.path.name}"

    def image(self) -> str:
        """Give the name of the skeleton image; starts the engine and imports the image when needed.

        Raises
        ------
        CapabilityError
            If no engine answers and none can be started.
        RunError
            If the engine refuses the image.
        """
        if self._image is None:
            if self._folder is None:
                self._folder = PrivateFolder()
                atexit.register(self.stop)
            if not attempt(["docker", "version", "--format", "{{.Server.Version}}"]).succeeded:
                self._start()
            self._image = self._import()
        return self._image

    def _import(self) -> str:
        assert self._folder is not None  # noqa: S101 - set by `image`
        root = self._folder.path / "root"
        make_skeleton(root)
        name = f"steelyard-root:{self._folder.path.name}"
        done = subprocess.run(
            [*self.client, "import", "-", name],
            input=skeleton_archive(root),
            capture_output=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            message = f"`docker import` failed: {done.stderr.decode(errors='replace').strip()}"
            raise RunError(message, code="run.isolation")
        return name

    def _start(self) -> None:
        program = installed("dockerd")
        if program is None:
            message = "no docker engine answers, and `dockerd` is not installed to start one"
            raise CapabilityError(message, hint=REPAIR, code="capability.docker")
        words = ""
        for driver in STORAGE_DRIVERS:
            words = self._try_daemon(program, driver)
            if not words:
                return
        message = f"cannot start `dockerd`: {words}"
        raise CapabilityError(message, hint="sudo systemctl start docker", code="capability.docker")

    def _try_daemon(self, program: str, driver: str) -> str:
        """Start a daemon; give the empty text, or why it did not start."""
        assert self._folder is not None  # noqa: S101 - set by `image`
        folder = self._folder.path
        socket = f"unix://{folder}/docker.sock"
        command = ["setpriv", "--pdeathsig", "TERM", program, "--data-root", f"{folder}/data-{driver}"]
        command += ["--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/docker.pid", "--host", socket]
        command += ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver", driver]
        log = folder / f"dockerd-{driver}.log"
        with log.open("wb") as output:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        client = ["docker", "--host", socket]
        deadline = time.monotonic() + ENGINE_START_S
        while time.monotonic() < deadline and daemon.poll() is None:
            if attempt([*client, "version", "--format", "{{.Server.Version}}"]).succeeded:
                self._daemon, self.client = daemon, client
                return ""
            time.sleep(0.1)
        daemon.terminate()
        daemon.wait()
        lines = [line for line in log.read_text(errors="replace").splitlines() if "fail" in line.lower()]
        return (lines or ["it did not answer in time"])[-1]

    def stop(self) -> None:
        """Remove the image, end our own engine and remove its folder. May be called twice."""
        if self._folder is None:
            return
        if self._daemon is None:
            if self._image is not None:
                attempt([*self.client, "image", "rm", "--force", self._image])
        else:
            self._daemon.terminate()
            try:
                self._daemon.wait(timeout=ENGINE_START_S)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
        end_remains(self._folder.path)
        self._folder.remove()
        self._folder = self._daemon = self._image = None
        self.client = ["docker"]


class Docker(Contained):
    """A docker container that sees the host's programs and nothing else.

    Parameters
    ----------
    engine : DockerEngine
        Shared by all docker technologies of the process.
    privileged : bool
        Lift docker's own restrictions, for a sandbox inside.
    """

    name: str = "docker"

    def __init__(self, engine: DockerEngine, *, privileged: bool = False) -> None:
        super().__init__()
        self.engine = engine
        self.privileged = privileged

    def describe(self) -> str:
        """Say what it is."""
        rights = (
            "with the rights to build a sandbox"
            if self.privileged
            else "docker's default seccomp profile and capabilities"
        )
        return f"a docker container with the host's programs mounted read-only, no network, {rights}"

    def examine(self) -> Availability:
        """Run one program in a container."""
        if installed("docker") is None:
            return Availability.no("`docker` is not installed", REPAIR)
        return try_worker(self, first_line(["docker", "--version"]), "steelyard doctor")

    def prepare(self, site: Site) -> None:
        """Start the engine and import the image, once."""
        self.engine.image()
        if not self.privileged:
            offer_groups(site)

    def wrap(self, site: Site) -> list[str]:
        """Give the ``docker run`` command."""
        command = [*self.engine.client, "run", "--interactive", "--rm", "--name", site.name]
        command += ["--label", f"{LABEL}={site.session.key}", "--network", "none", "--log-driver", "none"]
        if self.engine.is_own:
            command += ["--cgroup-parent", self.engine.group]
        for mount in site_mounts(site):
            command += ["--mount", mount_option(mount)]
        command += ["--tmpfs", "/tmp:exec,mode=1777", "--cpu-shares", str(MAXIMAL_SHARES)]  # noqa: S108 - inside
        if site.cpus is not None:
            command += ["--cpuset-cpus", comma_list(site.cpus)]
        if site.memory_nodes is not None:
            command += ["--cpuset-mems", comma_list(site.memory_nodes)]
        if self.privileged:
            command += BUILDER_OPTIONS
        else:
            command += CGROUP_OPTIONS
            for mount in offered_mounts(site):
                # `--mount` splits at commas, which names of hierarchies have.
                command += ["--volume", f"{mount.source}:{mount.target}"]
        return [*command, self.engine.image(), *serve_command(site.session.launcher)]

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Bind the run to its CPUs; its memory is bound by the engine.

        KERNEL: the engine's default system call filter refuses ``set_mempolicy``; the container's
        ``cpuset.mems`` binds the same memory.
        """
        adapted = super().inside(spec, site)
        if self.privileged:
            return adapted
        return replace(adapted, placement=replace(adapted.placement, memory_nodes=None))

    def tear_down(self, site: Site) -> None:
        """Remove the container, should it still be there."""
        attempt([*self.engine.client, "rm", "--force", site.name], timeout_s=30)
        withdraw_groups(site)

    def close(self, session: Session) -> None:
        """End the engine."""
        self.engine.stop()

    def sweep(self, folder: Path) -> None:
        """Remove the containers and the image of a dead session on the host's own engine."""
        if installed("docker") is None or not attempt(["docker", "version"]).succeeded:
            return
        found = attempt(["docker", "ps", "--all", "--quiet", "--filter", f"label={LABEL}={folder.name}"])
        for container in found.output.split():
            attempt(["docker", "rm", "--force", container], timeout_s=30)
        attempt(["docker", "image", "rm", "--force", f"steelyard-root:{folder.name}"], timeout_s=30)


def mount_option(mount: Mount) -> str:
    """Give the value of ``--mount`` for a folder or file of the host."""
    option = f"type=bind,source={mount.source},target={mount.target}"
    return option if mount.writable else f"{option},readonly"
