"""What a transport is: two endpoints, started by commands, that leave a trace in a folder.

A *transport* knows which command starts both endpoints; it starts nothing itself. Whoever runs a
run asks it in this order:

=====================  ========================================================================
`Transport.probe`      does it work on this host? Answered by a real, short attempt.
`Transport.facts`      what it is: versions and declared parameters, for the provenance
`Transport.invocations`  the commands of one run; they are started together and end by themselves
=====================  ========================================================================

The endpoints write the trace (`steelyard.studies.communication.trace`) into the folder they are given. They
end with status 0 when the plan is done, 2 when the request is wrong, 3 when the other side was lost; what was
stamped until then can be read in each case. On SIGTERM they end and leave nothing behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.run.isolation.interface import Availability


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a plan is run; the same for every transport.

    Parameters
    ----------
    block : int
        Operations of one block, at least 1: between blocks the state of the host is recorded.
    probes : int
        Clock probes at each block, 0 or more.
    budget_ms : int or None
        Time after which rank 0 ends the run at the next block [ms]; ``None``: the plan decides.
    gap_us : int
        Pause before each operation [us].
    canary : Path or None
        File that both endpoints map to time a cache line between them; ``None``: not timed.
    cpus : tuple of int or None
        CPU of rank 0 and of rank 1; ``None``: the scheduler decides.
    extra : tuple of str
        Further arguments of this transport's program.
    """

    block: int = 256
    probes: int = 10
    budget_ms: int | None = None
    gap_us: int = 0
    canary: Path | None = None
    cpus: tuple[int, int] | None = None
    extra: tuple[str, ...] = ()

    def arguments(self) -> tuple[str, ...]:
        """Give the arguments that every endpoint program understands.

        Examples
        --------
        >>> TraceOptions(cpus=(0, 1)).arguments()
        ('--block', '256', '--probes', '10', '--cpus', '0,1')
        """
        words = ["--block", str(self.block), "--probes", str(self.probes)]
        if self.budget_ms is not None:
            words += ["--budget-ms", str(self.budget_ms)]
        if self.gap_us:
            words += ["--gap-us", str(self.gap_us)]
        if self.canary is not None:
            words += ["--canary", str(self.canary)]
        if self.cpus is not None:
            words += ["--cpus", f"{self.cpus[0]},{self.cpus[1]}"]
        return (*words, *self.extra)


@dataclass(frozen=True, slots=True)
class Nodes:
    """Two nodes of the job of Slurm that this process is in.

    Parameters
    ----------
    names : tuple of str
        This node, which takes rank 0, and the other one.
    ways : tuple of str
        How ranks may be started: plug-ins of ``srun --mpi``, and ``mpirun``.
    """

    names: tuple[str, str]
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the two endpoints run; index 0 and 1 are the ranks.

    Parameters
    ----------
    addresses : tuple of str or None
        Addresses of the network between them; ``None``: both on this host, without a link.
    enter : tuple of tuple of str
        Words in front of each endpoint's command that bring it to its place, as
        ``nsenter --net=...`` or ``ssh host``; empty: here.
    agent : Path or None
        Program that starts a remote command as ``ssh`` does (``AGENT [options] HOST COMMAND...``), for
        transports that start their second endpoint themselves.
    hostfile : Path or None
        The hosts as a file of the MPI implementation.
    nodes : Nodes or None
        Where both are nodes of one job of Slurm.
    """

    addresses: tuple[str, str] | None = None
    enter: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    agent: Path | None = None
    hostfile: Path | None = None
    nodes: Nodes | None = None


HERE = Place()
"""Both endpoints on this host."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One process to start.

    Parameters
    ----------
    command : tuple of str
        Program, an absolute path or found on the PATH, and arguments.
    environment : Mapping
        Variables on top of the caller's.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


class Transport(ABC):
    """One transport; see the text of this module."""

    name: str = ""
    """Level of the factor ``transport``."""
    crosses_hosts: bool = False
    """Whether its endpoints can be on two hosts: then `invocations` accepts any `Place`."""

    @abstractmethod
    def probe(self) -> Availability:
        """Say whether it works on this host, or why not and what may change that."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Give versions and declared parameters, as `btl_vader_eager_limit`; empty where none is known."""

    @abstractmethod
    def invocations(
        self, plan: Path, out: Path, options: TraceOptions, place: Place = HERE
    ) -> tuple[Invocation, ...]:
        """Give the commands of one run, to be started together: one, or one per endpoint.

        Parameters
        ----------
        plan : Path
            ``op,size`` lines with that heading; read by rank 0 only.
        out : Path
            Folder for the trace; exists on every host.
        options : TraceOptions
            How the plan is run.
        place : Place
            Where the endpoints run.

        Raises
        ------
        DesignError
            If this transport cannot be used at that place.
        """
