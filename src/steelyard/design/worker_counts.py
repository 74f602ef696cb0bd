"""Which numbers of parallel workers a host should be asked about."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.errors import DesignError


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a design needs to know of the host.

    Parameters
    ----------
    cpu_count : int
        Hardware threads that may be used, at least 1.
    core_count : int
        Physical cores among them, 1 to `cpu_count`.
    llc_count : int
        Groups of cores that share a last-level cache.
    memory_node_count : int
        Memory nodes.
    hardware_virtualisation : bool
        Whether virtual machines run natively (KVM) or by software emulation.
    names : tuple of str
        Of a study that is placed: hosts that runs can ask for by name.
    """

    cpu_count: int
    core_count: int
    llc_count: int = 1
    memory_node_count: int = 1
    hardware_virtualisation: bool = False
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.core_count <= self.cpu_count or self.llc_count < 1 or self.memory_node_count < 1:
            message = (
                f"a host with {self.cpu_count} CPUs, {self.core_count} cores, {self.llc_count} "
                f"last-level caches and {self.memory_node_count} memory nodes cannot exist"
            )
            raise DesignError(message, code="design.host")

    @property
    def has_smt(self) -> bool:
        """Whether some core carries several hardware threads."""
        return self.cpu_count > self.core_count


def worker_counts(host: HostFacts) -> tuple[int, ...]:
    """Give the loads worth measuring: one, one per last-level cache, half, all, twice the cores.

    Returns
    -------
    tuple of int
        Ascending, without repetition.

    Examples
    --------
    >>> worker_counts(HostFacts(cpu_count=2, core_count=2))
    (1, 2, 4)
    >>> worker_counts(HostFacts(cpu_count=40, core_count=20, llc_count=2, memory_node_count=2))
    (1, 2, 10, 20, 40)
    """
    cores = host.core_count
    return tuple(sorted({1, host.llc_count, max(cores // 2, 1), cores, 2 * cores}))
