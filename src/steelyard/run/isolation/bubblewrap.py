"""Bubblewrap: namespaces around the worker, no control group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import first_line, installed
from steelyard.run.isolation.contained import Contained
from steelyard.run.isolation.interface import Availability
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.root_view import site_mounts, skeleton
from steelyard.run.isolation.serving import serve_command

if TYPE_CHECKING:
    from steelyard.run.session import Site

REPAIR: Final = "sudo apt-get install bubblewrap"


class Bubblewrap(Contained):
    """Bubblewrap's namespaces; the program's CPUs are set by the launcher inside."""

    name: str = "bubblewrap"

    def describe(self) -> str:
        """Say what it is."""
        return "bubblewrap: all namespaces, the host's programs mounted read-only, no control group"

    def examine(self) -> Availability:
        """Run one program in it."""
        if installed("bwrap") is None:
            return Availability.no("`bwrap` is not installed", REPAIR)
        return try_worker(self, first_line(["bwrap", "--version"]), REPAIR)

    def wrap(self, site: Site) -> list[str]:
        """Give the ``bwrap`` command."""
        command = ["bwrap", "--ro-bind", str(skeleton(site.session)), "/"]
        # In this order: a folder that is shown may lie below one of these.
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]  # noqa: S108 - inside
        for mount in site_mounts(site):
            command += ["--bind" if mount.writable else "--ro-bind", str(mount.source), str(mount.target)]
        return [*command, "--unshare-all", "--die-with-parent", "--", *serve_command(site.session.launcher)]
