"""The transports there are, by name: native ones, then those of MPI implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.studies.communication.transport.mpi import TRANSPORTS as MPI
from steelyard.studies.communication.transport.native import NATIVE

if TYPE_CHECKING:
    from steelyard.studies.communication.transport.interface import Transport


def transports() -> dict[str, Transport]:
    """Give the transports by name, in the order of reports.

    Examples
    --------
    >>> list(transports())
    ['pipe', 'unix', 'tcp', 'shm', 'openmpi', 'openmpi-tcp', 'mpich']
    """
    return {**NATIVE, **{each.name: each for each in MPI}}
