"""Where parallel workers run: CPUs by topology, never two on one core while another is free."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from steelyard.errors import DesignError
from steelyard.model.cell import Affinity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.run.machine.host import Cpu, Topology


def place(topology: Topology, workers: int, affinity: Affinity) -> list[list[int] | None]:
    """Choose the CPUs of each worker.

    Neighbours in the list of workers are as far apart as the host allows: other socket, else other
    last-level cache, else other core. Faster kinds of cores are used before slower ones, and a
    second thread of a core only when every core has a worker. CPUs that were kept free from the
    scheduler are preferred where there are enough of them.

    Parameters
    ----------
    topology : Topology
        The host.
    workers : int
        Number of parallel workers, at least 1.
    affinity : Affinity
        ``none``: the scheduler decides. ``taskset``: one CPU each; beyond the number of CPUs they
        are shared evenly. ``taskset-multi``: equal and disjoint sets, of whole cores as long as
        there are enough. ``numa``: all CPUs of one memory node each, nodes in turn. ``noht``: the
        first thread of a core of its own.

    Returns
    -------
    list
        Shape (workers,): sorted CPU numbers, or ``None`` for "any".

    Raises
    ------
    DesignError
        If there is no such placement on this host.
    """
    if workers < 1:
        message = f"`workers` is {workers}; allowed: 1 or more"
        raise DesignError(message, code="design.workers")
    if affinity is Affinity.NONE:
        return [None] * workers
    cpus = _usable(topology, workers)
    cores = _spread_cores(cpus)
    if affinity is Affinity.CORE:
        order = _spread_threads(cores)
        return [[order[worker % len(order)]] for worker in range(workers)]
    if affinity is Affinity.CORE_SET:
        return [*_equal_sets(cpus, workers)]
    if affinity is Affinity.MEMORY_NODE:
        return [*_nodes_in_turn(cpus, workers)]
    if workers > len(cores):
        message = f"{workers} workers with a core each need {workers} cores; this host offers {len(cores)}"
        raise DesignError(
            message, hint=f"at most {len(cores)} workers, or affinity `taskset`", code="design.cores"
        )
    return [[core[0].id] for core in cores[:workers]]


def place_side_by_side(
    topology: Topology, cpus: Sequence[int] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose the CPUs of two programs that run at the same time: equal numbers of whole cores of one kind.

    Cores next to each other go to different sides, so that both see the same socket and the same caches.

    Parameters
    ----------
    topology : Topology
        The host.
    cpus : sequence of int
        CPUs that may be used; all that this process may use where empty.

    Raises
    ------
    DesignError
        If there are fewer than two cores, whatever their threads.
    """
    wanted = set(cpus) or set(topology.allowed)
    usable = [cpu for cpu in topology.cpus if cpu.id in set(topology.allowed) & wanted]
    kinds: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for cpu in sorted(usable, key=lambda each: (each.socket, each.last_level_cache, each.core)):
        kinds[cpu.efficiency_class][cpu.core].append(cpu.id)
    cores = next((list(kinds[kind].values()) for kind in sorted(kinds) if len(kinds[kind]) > 1), None)
    if cores is None:
        count = len({cpu.core for cpu in usable})
        message = f"two programs at the same time need two cores of one kind; usable here: {count}"
        raise DesignError(message, hint="let them take turns: `--mode turns`", code="design.cores")
    pairs = len(cores) // 2
    first, second = (
        tuple(sorted(chain.from_iterable(cores[2 * pair + side] for pair in range(pairs)))) for side in (0, 1)
    )
    return first, second


def memory_nodes_of(topology: Topology, cpus: Iterable[int]) -> list[int]:
    """Give the memory nodes near to some CPUs, sorted: what a worker with ``numa`` is bound to."""
    chosen = set(cpus)
    return sorted({cpu.memory_node for cpu in topology.cpus if cpu.id in chosen})


def recommended_worker_counts(topology: Topology) -> tuple[int, ...]:
    """Give the numbers of workers worth comparing on a host.

    Returns
    -------
    tuple of int
        Ascending, without repetition: 1, one per last-level cache, half of the cores, all cores,
        twice the cores.
    """
    cpus = _usable(topology, topology.core_count)
    cores = len({cpu.core for cpu in cpus})
    caches = len({cpu.last_level_cache for cpu in cpus})
    return tuple(sorted({1, caches, max(1, cores // 2), cores, 2 * cores}))


def source_placement(workers: int, sockets: int, cores_per_socket: int, *, smt: bool) -> list[int]:
    """Place workers as the evaluation of ReCodEx did, for comparison with its results.

    With n workers, s sockets and c cores in total, each socket gets ``per = floor(n / s)`` workers;
    the step is ``t / per``, cut to two decimals, where ``t`` is c, or 2c if n > c and cores have two
    threads; socket j gets the CPUs ``floor(k * step + j)`` for k = 0 .. per - 1. CPU numbers alternate
    between the sockets on the machine of the source.

    Parameters
    ----------
    workers : int
        n, at least 1; 1 or a multiple of the number of sockets.
    sockets, cores_per_socket : int
        At least 1.
    smt : bool
        Whether cores have two threads.

    Returns
    -------
    list of int
        Shape (workers,): CPU of each worker, the sockets one after the other.

    Raises
    ------
    DesignError
        If the rule gives no CPU to some worker.

    References
    ----------
    .. [1] Evaluation of isolation and parallelism for ReCodEx, placement of workers by taskset.

    Examples
    --------
    >>> source_placement(6, 2, 10, smt=True)
    [0, 6, 13, 1, 7, 14]
    """
    if workers == 1:
        return [0]
    cores = sockets * cores_per_socket
    total = 2 * cores if smt and workers > cores else cores
    per_socket = workers // sockets
    if workers < 1 or workers % sockets or workers > total:
        allowed = f"1, or a multiple of {sockets} up to {2 * cores if smt else cores}"
        message = f"`workers` is {workers}; the rule of the source allows: {allowed}"
        raise DesignError(message, code="design.workers")
    hundredths = 100 * total // per_socket
    return [(k * hundredths + 100 * socket) // 100 for socket in range(sockets) for k in range(per_socket)]


def _usable(topology: Topology, workers: int) -> list[Cpu]:
    allowed = [cpu for cpu in topology.cpus if cpu.id in set(topology.allowed)]
    reserved = [cpu for cpu in allowed if cpu.id in set(topology.isolated)]
    if len({cpu.core for cpu in reserved}) >= workers:
        return reserved
    # The scheduler never moves work away from reserved CPUs, so half-reserved sets are not comparable.
    return [cpu for cpu in allowed if cpu not in reserved] or allowed


def _interleave(lists: Iterable[Sequence[list[Cpu]]]) -> list[list[Cpu]]:
    rounds = zip_longest(*lists)
    return [core for turn in rounds for core in turn if core is not None]


def _spread_cores(cpus: Iterable[Cpu]) -> list[list[Cpu]]:
    """Order cores so that any first n of them are as far apart as possible; threads in order inside."""
    cores: dict[int, list[Cpu]] = defaultdict(list)
    for cpu in cpus:
        cores[cpu.core].append(cpu)
    groups: dict[int, dict[int, dict[int, list[list[Cpu]]]]] = {}
    for number in sorted(cores):
        threads = sorted(cores[number], key=lambda cpu: cpu.thread)
        first = threads[0]
        sockets = groups.setdefault(first.efficiency_class, {})
        sockets.setdefault(first.socket, {}).setdefault(first.last_level_cache, []).append(threads)
    return [
        core
        for _, sockets in sorted(groups.items())
        for core in _interleave(_interleave(caches.values()) for caches in sockets.values())
    ]


def _spread_threads(cores: Sequence[list[Cpu]]) -> list[int]:
    """Give every CPU: the first thread of each core, then the second of each, and so on."""
    rounds = zip_longest(*cores)
    return [cpu.id for turn in rounds for cpu in turn if cpu is not None]


def _equal_sets(cpus: Sequence[Cpu], workers: int) -> list[list[int]]:
    """Cut cores that lie together into equal parts; threads instead of cores when these are too few."""
    near = sorted(cpus, key=lambda cpu: (cpu.efficiency_class, cpu.socket, cpu.last_level_cache, cpu.core))
    cores: dict[int, list[int]] = defaultdict(list)
    for cpu in near:
        cores[cpu.core].append(cpu.id)
    parts = list(cores.values())
    if workers > len(parts):
        parts = [[thread] for core in parts for thread in core]
    size = len(parts) // workers
    if size == 0:
        message = f"{workers} disjoint sets of CPUs need {workers} CPUs; this host offers {len(parts)}"
        raise DesignError(message, hint=f"at most {len(parts)} workers", code="design.cores")
    cut = (parts[worker * size : (worker + 1) * size] for worker in range(workers))
    return [sorted(chain.from_iterable(part)) for part in cut]


def _nodes_in_turn(cpus: Iterable[Cpu], workers: int) -> list[list[int]]:
    nodes: dict[int, list[int]] = defaultdict(list)
    for cpu in cpus:
        nodes[cpu.memory_node].append(cpu.id)
    members = [sorted(nodes[node]) for node in sorted(nodes)]
    return [members[worker % len(members)] for worker in range(workers)]
