"""Native transports: `steelyard-comm` with a pipe, unix sockets, TCP or shared memory; nothing to install."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import DesignError
from steelyard.run.isolation.interface import Availability
from steelyard.run.programs import comm_program
from steelyard.studies.communication.transport.interface import (
    HERE,
    Invocation,
    Place,
    TraceOptions,
    Transport,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT: Final = 17713
"""Where endpoint 0 listens when the endpoints are on two hosts."""

_PROBE_PLAN: Final = "op,size\npingpong,64\n"
_PROBE_TIMEOUT_S: Final = 20.0


class NativeTransport(Transport):
    """One transport of `steelyard-comm`.

    Parameters
    ----------
    name : str
        ``pipe``, ``unix``, ``tcp`` or ``shm``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.crosses_hosts = name == "tcp"

    def probe(self) -> Availability:
        """Carry one message."""
        with tempfile.TemporaryDirectory() as scratch:
            plan = Path(scratch) / "plan.csv"
            plan.write_text(_PROBE_PLAN, encoding="utf-8")
            (invocation,) = self.invocations(plan, Path(scratch) / "trace", TraceOptions())
            try:
                answer = subprocess.run(
                    invocation.command, check=False, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S
                )
            except subprocess.TimeoutExpired:
                return Availability.no(f"one message did not arrive within {_PROBE_TIMEOUT_S:g} s")
        if answer.returncode != 0:
            return Availability.no(answer.stderr.partition("\n")[0])
        return Availability.yes(None)

    def facts(self) -> Mapping[str, str]:
        """Give nothing: the headers of a trace name version and parameters."""
        return {}

    def invocations(
        self, plan: Path, out: Path, options: TraceOptions, place: Place = HERE
    ) -> tuple[Invocation, ...]:
        """Give one command, or one per host.

        Examples
        --------
        >>> place = Place(addresses=("10.0.0.1", "10.0.0.2"))
        >>> first, second = TCP.invocations(Path("plan.csv"), Path("trace"), TraceOptions(), place)
        >>> second.command[-4:]
        ('--role', 'connect', '--address', '10.0.0.1:17713')
        """
        own = (str(comm_program()), "--transport", self.name)
        both = ("--out", str(out), *options.arguments())
        if place.addresses is None and place.enter == ((), ()):
            return (Invocation((*own, "--plan", str(plan), *both)),)
        if not self.crosses_hosts or place.addresses is None:
            message = f"transport `{self.name}` cannot connect endpoints at two places"
            raise DesignError(
                message, hint="use `tcp`, or an MPI, and name both addresses", code="design.transport"
            )
        address = ("--address", f"{place.addresses[0]}:{PORT}")
        listen = (*place.enter[0], *own, "--plan", str(plan), *both, "--role", "listen", *address)
        connect = (*place.enter[1], *own, *both, "--role", "connect", *address)
        return (Invocation(listen), Invocation(connect))


PIPE: Final = NativeTransport("pipe")
UNIX: Final = NativeTransport("unix")
TCP: Final = NativeTransport("tcp")
SHM: Final = NativeTransport("shm")

NATIVE: Final = {transport.name: transport for transport in (PIPE, UNIX, TCP, SHM)}
"""Every native transport by its name."""


def canary_command(cpus: tuple[int, int]) -> tuple[str, ...]:
    """Give the command that times a cache line between two CPUs and prints it as JSON.

    Its ``round_trip_ns`` is a median; see also ``fastest_ns`` and ``slowest_ns``.

    Parameters
    ----------
    cpus : tuple of int
        Two different CPUs.
    """
    return (str(comm_program()), "canary", "--cpus", f"{cpus[0]},{cpus[1]}", "--json")
