"""Podman: a container per worker without an engine, straight on the skeleton root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import attempt, first_line, installed
from steelyard.run.isolation.contained import Contained, comma_list
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.offered_groups import offer_groups, offered_mounts, withdraw_groups
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import site_mounts, skeleton
from steelyard.run.isolation.serving import serve_command

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.run.session import Session, Site

REPAIR: Final = "sudo apt-get install podman runc"
# Podman raises the limits of the caller to large defaults, which needs CAP_SYS_RESOURCE.
LIMITS: Final = ("nofile=1024:1024", "nproc=4096:4096")
MAXIMAL_SHARES: Final = 262144  # SOURCE: kernel, MAX_SHARES of the CPU controller, version 1


class Podman(Contained):
    """A podman container that sees the host's programs and nothing else."""

    name: str = "podman"

    def describe(self) -> str:
        """Say what it is."""
        return "a podman container with the host's programs mounted read-only, no network, runc, no engine"

    def examine(self) -> Availability:
        """Run one program in a container."""
        for program in ("podman", "runc"):
            if installed(program) is None:
                return Availability.no(f"`{program}` is not installed", REPAIR)
        return try_worker(self, first_line(["podman", "--version"]), REPAIR)

    def prepare(self, site: Site) -> None:
        """Make the groups of the worker's runs."""
        offer_groups(site)

    def wrap(self, site: Site) -> list[str]:
        """Give the ``podman run`` command."""
        command = [*podman_client(site.session.folder), "run", "--interactive", "--rm", "--name", site.name]
        command += ["--network", "none", "--log-driver", "none", "--cgroup-parent", f"/{site.session.key}"]
        for limit in LIMITS:
            command += ["--ulimit", limit]
        # KERNEL: version 2 lets no process into a group from outside of its namespace.
        command += ["--cgroupns", "host"]
        for mount in [*site_mounts(site), *offered_mounts(site)]:
            rights = "rw" if mount.writable else "ro"
            command += ["--volume", f"{mount.source}:{mount.target}:{rights}"]
        command += ["--cpu-shares", str(MAXIMAL_SHARES)]
        if site.cpus is not None:
            command += ["--cpuset-cpus", comma_list(site.cpus)]
        if site.memory_nodes is not None:
            command += ["--cpuset-mems", comma_list(site.memory_nodes)]
        command += ["--read-only", "--rootfs", str(skeleton(site.session))]
        return [*command, *serve_command(site.session.launcher)]

    def tear_down(self, site: Site) -> None:
        """Remove the container, should it still be there."""
        attempt(
            [*podman_client(site.session.folder), "rm", "--force", "--time", "0", "--ignore", site.name],
            timeout_s=30,
        )
        withdraw_groups(site)

    def close(self, session: Session) -> None:
        """Forget the private storage."""
        self.sweep(session.folder)

    def sweep(self, folder: Path) -> None:
        """Remove the containers that a private storage knows."""
        if (folder / "p").exists():
            attempt([*podman_client(folder), "rm", "--all", "--force", "--time", "0"], timeout_s=30)


def podman_client(folder: Path) -> list[str]:
    """Give podman with its private storage, without a service manager and an event log.

    The names are short because podman refuses a run folder longer than 50 characters.
    """
    client = ["podman", "--root", f"{folder}/p/s", "--runroot", f"{folder}/p/r"]
    client += ["--tmpdir", f"{folder}/p/t", "--storage-driver", "vfs", "--runtime", "runc"]
    return [*client, "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
