"""systemd-nspawn: a light container, used without a running systemd."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import first_line, installed
from steelyard.run.isolation.contained import Contained
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.offered_groups import offer_groups, offered_mounts, withdraw_groups
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import site_mounts, skeleton
from steelyard.run.isolation.serving import serve_command

if TYPE_CHECKING:
    from steelyard.run.session import Site

PROPAGATE: Final = Path("/run/systemd/nspawn/propagate")
REPAIR: Final = "sudo apt-get install systemd-container"


class Nspawn(Contained):
    """A systemd-nspawn container; no service manager is needed on the host or inside."""

    name: str = "nspawn"

    def describe(self) -> str:
        """Say what it is."""
        return "systemd-nspawn: a container with the host's programs mounted read-only, no network"

    def examine(self) -> Availability:
        """Run one program in it."""
        if installed("systemd-nspawn") is None:
            return Availability.no("`systemd-nspawn` is not installed", REPAIR)
        return try_worker(self, first_line(["systemd-nspawn", "--version"]), REPAIR)

    def prepare(self, site: Site) -> None:
        """Make the groups of the worker's runs, and in the root where they are mounted."""
        offer_groups(site)
        for mount in offered_mounts(site, has_namespace=True):
            (skeleton(site.session) / str(mount.target)[1:]).mkdir(parents=True, exist_ok=True)

    def wrap(self, site: Site) -> list[str]:
        """Give the ``systemd-nspawn`` command."""
        command = ["systemd-nspawn", "--quiet", f"--directory={skeleton(site.session)}", "--read-only"]
        command += ["--private-network", "--register=no", "--keep-unit", "--as-pid2", "--console=pipe"]
        command += [
            f"--machine={_machine_name(site)}",
            "--tmpfs=/tmp:mode=1777",
            "--link-journal=no",
            "--timezone=off",
        ]
        command += ["--resolv-conf=off"]
        if site.cpus is not None:
            command.append(f"--cpu-affinity={','.join(map(str, site.cpus))}")
        for mount in [*site_mounts(site), *offered_mounts(site, has_namespace=True)]:
            option = "--bind" if mount.writable else "--bind-ro"
            command.append(f"{option}={mount.source}:{mount.target}")
        return [*command, *serve_command(site.session.launcher)]

    def tear_down(self, site: Site) -> None:
        """Remove the folder nspawn leaves when it runs without a service manager."""
        withdraw_groups(site)
        with suppress(OSError):
            (PROPAGATE / _machine_name(site)).rmdir()

    def sweep(self, folder: Path) -> None:
        """Remove the folders of a dead session's containers."""
        for left in PROPAGATE.glob(f"{folder.name}-*"):
            with suppress(OSError):
                left.rmdir()


def _machine_name(site: Site) -> str:
    """Give a name within the 64 characters of a host name."""
    return site.name[:64].rstrip("-")
