"""What a design needs to know of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Final

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import CapabilityError
from steelyard.run.guest.machine import choose_accelerator
from steelyard.run.machine.host import Topology, read_topology

if TYPE_CHECKING:
    from collections.abc import Iterator


_PLANNED: Final[ContextVar[tuple[HostFacts, tuple[str, ...]] | None]] = ContextVar("planned", default=None)


def host_facts() -> HostFacts:
    """Give what the design needs to know of this machine, or of the hosts that are planned for."""
    planned = _PLANNED.get()
    return _own_facts() if planned is None else planned[0]


def planned_hosts() -> tuple[str, ...]:
    """Give the names of the hosts that runs are placed on; none where they are run by this process."""
    planned = _PLANNED.get()
    return () if planned is None else planned[1]


@contextmanager
def planned_for(facts: HostFacts, names: tuple[str, ...] = ()) -> Iterator[None]:
    """Plan for other hosts than this one, or for runs that are placed on this one."""
    token = _PLANNED.set((facts, names))
    try:
        yield
    finally:
        _PLANNED.reset(token)


@cache
def _own_facts() -> HostFacts:
    return facts_of(read_topology(), hardware_virtualisation=_has_hardware_virtualisation())


def _has_hardware_virtualisation() -> bool:
    try:
        accelerator, _ = choose_accelerator()
    except CapabilityError:
        return False  # no guest can be booted at all; the probe of `vm` gives the reason
    return accelerator == "kvm"


def facts_of(topology: Topology, *, hardware_virtualisation: bool) -> HostFacts:
    """Count what this process may use of a host."""
    cpus = [cpu for cpu in topology.cpus if cpu.id in topology.allowed]
    return HostFacts(
        cpu_count=len(cpus),
        core_count=len({cpu.core for cpu in cpus}),
        llc_count=len({cpu.last_level_cache for cpu in cpus}),
        memory_node_count=len({cpu.memory_node for cpu in cpus}),
        hardware_virtualisation=hardware_virtualisation,
    )
