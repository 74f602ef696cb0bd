"""What this machine is and can do: typed view of what the native readers say."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from steelyard import _native

HOST_SCHEMA: Final = "steelyard/host/1"


@dataclass(frozen=True, slots=True)
class Cpu:
    """One hardware thread; see `Topology` for what the numbers refer to.

    Parameters
    ----------
    id : int
        Number of the CPU.
    socket : int
        Its socket.
    core : int
        Its core, named by the smallest CPU number among the core's threads.
    thread : int
        Position among the threads of its core, 0 for the first.
    siblings : tuple of int
        All threads of its core.
    memory_node : int
        Its memory node.
    last_level_cache : int
        Position in `Topology.last_level_caches`.
    efficiency_class : int
        0 for the most capable kind of core.
    """

    id: int
    socket: int = 0
    core: int = 0
    thread: int = 0
    siblings: tuple[int, ...] = ()
    memory_node: int = 0
    last_level_cache: int = 0
    efficiency_class: int = 0


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """A memory node with the CPUs near to it; memory in bytes where the host says it."""

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """CPUs that share their last level of cache; level 0 where the host does not describe it."""

    level: int
    cpus: tuple[int, ...]
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """Which CPUs there are and what they share.

    Parameters
    ----------
    cpus : tuple of Cpu
        Online CPUs by number.
    online, allowed, isolated, tickless : tuple of int
        CPUs that are online, usable by this process, kept free from the scheduler, without tick.
    socket_count, core_count : int
        Numbers of sockets and of cores.
    smt : bool
        Whether a core shows more than one hardware thread.
    memory_nodes : tuple of MemoryNode
        By number.
    last_level_caches : tuple of CacheGroup
        By first CPU.
    assumptions : tuple of str
        What had to be assumed because the host hides it.
    """

    cpus: tuple[Cpu, ...]
    online: tuple[int, ...]
    allowed: tuple[int, ...]
    isolated: tuple[int, ...]
    tickless: tuple[int, ...]
    socket_count: int
    core_count: int
    smt: bool
    memory_nodes: tuple[MemoryNode, ...]
    last_level_caches: tuple[CacheGroup, ...]
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """Smallest step [ns] and mean cost of one reading [ns] of a clock."""

    granularity_ns: int
    cost_ns: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a host; see the native `Clocks`. `accounting` is ``tick``, ``exact`` or ``unknown``."""

    monotonic: Clock | None
    process_cpu: Clock | None
    rusage: Clock | None
    source: str | None
    accounting: str
    tick_ns: int | None
    user_tick_ns: int


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """CPU time by use since boot, in ticks of `Activity.tick_ns`."""

    user: int = 0
    system: int = 0
    interrupt: int = 0
    idle: int = 0
    steal: int = 0


@dataclass(frozen=True, slots=True)
class PressureLine:
    """Waiting: shares of the last 10 s and 60 s [percent], total since boot [us]."""

    average_10_s_percent: float = 0.0
    average_60_s_percent: float = 0.0
    total_us: int = 0


@dataclass(frozen=True, slots=True)
class Pressure:
    """Pressure of one resource: some task waited, all tasks waited."""

    some: PressureLine
    full: PressureLine | None = None


@dataclass(frozen=True, slots=True)
class SwapActivity:
    """Pages moved from and to swap since boot."""

    pages_in: int = 0
    pages_out: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """What the machine has done since boot, at one instant (`monotonic_ns`)."""

    monotonic_ns: int
    total: CpuTicks
    by_cpu: dict[int, CpuTicks]
    tick_ns: int
    runnable_count: int
    load: tuple[float, float, float]
    pressure: dict[str, Pressure] = field(default_factory=dict)
    swap: SwapActivity = field(default_factory=SwapActivity)
    throttle_count: int | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """One process with the CPU time it used so far, in ticks; groups as ``controllers:path``."""

    id: int
    parent_id: int
    name: str
    state: str
    cpu_ticks: int
    start_ticks: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capability:
    """Something the host can do, or cannot: what was tried, what was seen, what repairs it."""

    name: str
    purpose: str
    available: bool
    mechanism: str
    reason: str
    repair: str | None = None


class Verdict(StrEnum):
    """Judgement on a property that can disturb measurements."""

    PASS = "PASS"  # noqa: S105 - not a password
    CAUTION = "CAUTION"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class NoiseFact:
    """A property that can disturb measurements: what was seen, why it matters, what repairs it."""

    name: str
    title: str
    verdict: Verdict
    seen: str
    why: str
    repair: str | None = None


@dataclass(frozen=True, slots=True)
class Virtualisation:
    """Hypervisor and container around this system, where there are any."""

    hypervisor: str | None = None
    container: str | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Which machine this is; `host_id` is the same on every start of it."""

    host_id: str
    machine_id_hash: str | None
    cpu_model: str | None
    cpu_signature: str | None
    microcode: str | None
    kernel_release: str
    kernel_version: str | None
    architecture: str
    boot_parameters: tuple[str, ...]
    memory_bytes: int | None
    virtualisation: Virtualisation
    distribution: str | None
    libc: str | None


@dataclass(frozen=True, slots=True)
class Host:
    """Everything known about a host at one instant; `dataclasses.asdict` gives what is stored."""

    schema: str
    fingerprint: Fingerprint
    topology: Topology
    clocks: Clocks
    activity: Activity
    capabilities: tuple[Capability, ...]
    noise: tuple[NoiseFact, ...]

    def capability(self, name: str) -> Capability | None:
        """Give a capability by name, or nothing when this kind of host does not know it."""
        return next((one for one in self.capabilities if one.name == name), None)


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_host(root: str = "/") -> Host:
    """Examine a host; takes some 100 ms.

    Parameters
    ----------
    root : str
        Folder under which ``/proc`` and ``/sys`` are read; anything but ``/`` is a recorded host,
        where only files speak.

    Raises
    ------
    CapabilityError
        If not even the CPUs or ``/proc/stat`` can be read.
    """
    found: Host = _adapter(Host).validate_json(_native.host_report(root))
    return found


def read_topology(root: str = "/") -> Topology:
    """Read which CPUs share what.

    Raises
    ------
    CapabilityError
        If the online CPUs cannot be established.
    """
    found: Topology = _adapter(Topology).validate_json(_native.host_topology(root))
    return found


def read_fingerprint(root: str = "/") -> Fingerprint:
    """Read which machine this is."""
    found: Fingerprint = _adapter(Fingerprint).validate_json(_native.host_fingerprint(root))
    return found


def read_activity(root: str = "/") -> Activity:
    """Read the counters of CPU time, pressure, swap and throttling.

    Raises
    ------
    CapabilityError
        If ``/proc/stat`` cannot be read.
    """
    found: Activity = _adapter(Activity).validate_json(_native.host_activity(root))
    return found


def read_processes(root: str = "/") -> tuple[Process, ...]:
    """List the processes with the CPU time they have used."""
    return tuple(_adapter(list[Process]).validate_json(_native.host_processes(root)))
