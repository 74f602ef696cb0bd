"""Programs without a network: a worker in a network namespace of its own, by ``unshare`` of util-linux.

It separates the network and nothing else: a program sees the files and processes of the host, and sockets
that are files (``/run/docker.sock``) stay reachable. It answers whether a time depends on the network.
Without the rights of root the worker lives in a user namespace as well; programs take themselves for root.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from steelyard.run.isolation.attempt import attempt, first_line, installed
from steelyard.run.isolation.interface import Availability, Isolation
from steelyard.run.isolation.probe import try_worker

if TYPE_CHECKING:
    from steelyard.run.session import Site

REPAIR: Final = "sudo apt-get install util-linux iproute2"
# A new namespace has a loopback that is down; programs that speak to themselves need it.
_LOOPBACK: Final = 'ip link set lo up && exec "$@"'


class Offline(Isolation):
    """A network namespace with a loopback."""

    name: str = "offline"

    def describe(self) -> str:
        """Say what it is."""
        return "no network but a loopback of its own; files, processes and rights are those of the host"

    def examine(self) -> Availability:
        """Run one program in it, if a new namespace can be made and has nothing that is connected."""
        for program in ("unshare", "ip"):
            if installed(program) is None:
                return Availability.no(f"`{program}` is not installed", REPAIR)
        version = first_line(["unshare", "--version"])
        up = attempt([*_unshare(), "ip", "-oneline", "link", "show", "up"])
        if not up.succeeded:
            repair = None if os.geteuid() == 0 else "sudo steelyard doctor"
            return Availability.no(f"cannot make a network namespace: {up.last_words}", repair, version)
        if up.output:
            return Availability.no(f"a new network namespace is not empty: {up.output}", None, version)
        return try_worker(self, version, REPAIR)

    def wrap(self, site: Site) -> list[str]:
        """Give the command of a launcher whose network namespace is new."""
        return [*_unshare(), "sh", "-c", _LOOPBACK, "sh", str(site.session.launcher), "serve"]


def _unshare() -> list[str]:
    """Give the command before another; without the rights of root it makes a user namespace as well."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *rights, "--net", "--"]


OFFLINE: Final = Offline()
