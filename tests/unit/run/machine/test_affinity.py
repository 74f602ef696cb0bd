from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import DesignError
from steelyard.model.cell import Affinity
from steelyard.run.machine.affinity import (
    memory_nodes_of,
    place,
    place_side_by_side,
    recommended_worker_counts,
    source_placement,
)
from steelyard.run.machine.host import CacheGroup, Cpu, MemoryNode, Topology, read_topology


def _topology(cpus: list[Cpu], *, isolated: tuple[int, ...] = ()) -> Topology:
    numbers = tuple(cpu.id for cpu in cpus)
    nodes = sorted({cpu.memory_node for cpu in cpus})
    caches = sorted({cpu.last_level_cache for cpu in cpus})
    return Topology(
        cpus=tuple(cpus),
        online=numbers,
        allowed=numbers,
        isolated=isolated,
        tickless=(),
        socket_count=len({cpu.socket for cpu in cpus}),
        core_count=len({cpu.core for cpu in cpus}),
        smt=any(cpu.thread for cpu in cpus),
        memory_nodes=tuple(MemoryNode(n, tuple(c.id for c in cpus if c.memory_node == n)) for n in nodes),
        last_level_caches=tuple(
            CacheGroup(3, tuple(c.id for c in cpus if c.last_level_cache == n)) for n in caches
        ),
    )


def _grid(sockets: int, caches: int, cores: int, threads: int) -> Topology:
    """Build a host whose second threads have the high numbers, as Linux counts them."""
    count = sockets * caches * cores
    cpus = []
    for thread in range(threads):
        for core in range(count):
            cache = core // cores
            cpus.append(
                Cpu(
                    id=thread * count + core,
                    socket=cache // caches,
                    core=core,
                    thread=thread,
                    memory_node=cache // caches,
                    last_level_cache=cache,
                )
            )
    return _topology(cpus)


GOLDEN = {
    1: [0],
    2: [0, 1],
    4: [0, 10, 1, 11],
    6: [0, 6, 13, 1, 7, 14],
    8: [0, 5, 10, 15, 1, 6, 11, 16],
    10: [0, 4, 8, 12, 16, 1, 5, 9, 13, 17],
    20: [*range(0, 20, 2), *range(1, 20, 2)],
    40: [*range(0, 40, 2), *range(1, 40, 2)],
}


@pytest.mark.parametrize(("workers", "cpus"), GOLDEN.items())
def test_the_placement_of_the_source_is_its_published_table(workers: int, cpus: list[int]) -> None:
    assert source_placement(workers, 2, 10, smt=True) == cpus


@pytest.mark.parametrize(("workers", "smt"), [(3, True), (0, True), (42, True), (40, False)])
def test_the_rule_of_the_source_refuses_what_it_cannot_place(workers: int, smt: bool) -> None:  # noqa: FBT001
    with pytest.raises(DesignError, match=f"`workers` is {workers}"):
        source_placement(workers, 2, 10, smt=smt)


def test_workers_are_spread_over_sockets_then_caches() -> None:
    host = _grid(2, 2, 4, 2)
    placed = [cpus[0] for cpus in place(host, 4, Affinity.CORE) if cpus]
    by_id = {cpu.id: cpu for cpu in host.cpus}
    assert {by_id[cpu].socket for cpu in placed[:2]} == {0, 1}
    assert {by_id[cpu].last_level_cache for cpu in placed} == {0, 1, 2, 3}


def test_slow_cores_are_taken_before_second_threads_and_after_fast_cores() -> None:
    cpus = [
        Cpu(0, core=0),
        Cpu(1, core=0, thread=1),
        Cpu(2, core=2),
        Cpu(3, core=2, thread=1),
        Cpu(4, core=4, efficiency_class=1),
    ]
    placed = place(_topology(cpus), 5, Affinity.CORE)
    assert placed == [[0], [2], [4], [1], [3]]


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2)),
    st.integers(1, 40),
)
def test_no_core_is_shared_while_another_is_free(shape: tuple[int, int, int, int], workers: int) -> None:
    host = _grid(*shape)
    placed = [cpus[0] for cpus in place(host, workers, Affinity.CORE) if cpus]
    by_id = {cpu.id: cpu for cpu in host.cpus}
    used = [by_id[cpu].core for cpu in placed]
    assert len(set(used)) == min(workers, host.core_count)
    loads = [placed.count(cpu) for cpu in host.online]
    assert max(loads) - min(loads) <= 1


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2)),
    st.integers(1, 40),
)
def test_core_sets_are_equal_disjoint_and_of_whole_cores(
    shape: tuple[int, int, int, int], workers: int
) -> None:
    host = _grid(*shape)
    if workers > len(host.online):
        with pytest.raises(DesignError, match="disjoint"):
            place(host, workers, Affinity.CORE_SET)
        return
    sets = [set(cpus) for cpus in place(host, workers, Affinity.CORE_SET) if cpus]
    assert len({len(one) for one in sets}) == 1
    assert sum(map(len, sets)) == len(set().union(*sets))
    if workers <= host.core_count:
        by_id = {cpu.id: cpu for cpu in host.cpus}
        cores = [{by_id[cpu].core for cpu in one} for one in sets]
        assert sum(map(len, cores)) == len(set().union(*cores))


def test_memory_nodes_are_taken_in_turn() -> None:
    host = _grid(2, 1, 2, 1)
    assert place(host, 3, Affinity.MEMORY_NODE) == [[0, 1], [2, 3], [0, 1]]
    assert memory_nodes_of(host, [2, 3]) == [1]


def test_without_smt_there_are_as_many_workers_as_cores() -> None:
    host = _grid(1, 1, 2, 2)
    assert place(host, 2, Affinity.NO_SMT) == [[0], [1]]
    with pytest.raises(DesignError, match="3 cores; this host offers 2"):
        place(host, 3, Affinity.NO_SMT)


def test_reserved_cpus_are_used_when_they_suffice_and_avoided_otherwise() -> None:
    cpus = [Cpu(number, core=number) for number in range(4)]
    host = _topology(cpus, isolated=(2, 3))
    assert place(host, 2, Affinity.CORE) == [[2], [3]]
    assert place(host, 3, Affinity.CORE) == [[0], [1], [0]]


def test_no_affinity_leaves_it_to_the_scheduler_and_zero_workers_are_refused() -> None:
    host = _grid(1, 1, 2, 1)
    assert place(host, 2, Affinity.NONE) == [None, None]
    with pytest.raises(DesignError, match="`workers` is 0"):
        place(host, 0, Affinity.CORE)


def test_recommended_counts_follow_the_topology() -> None:
    assert recommended_worker_counts(_grid(2, 2, 5, 2)) == (1, 4, 10, 20, 40)
    assert recommended_worker_counts(_grid(1, 1, 1, 1)) == (1, 2)


def test_this_machine_can_place_a_worker() -> None:
    host = read_topology()
    placed = place(host, 1, Affinity.CORE)
    assert placed[0] is not None
    assert placed[0][0] in host.allowed


def test_both_sides_of_a_duet_get_whole_cores_next_to_each_other() -> None:
    first, second = place_side_by_side(_grid(2, 1, 2, 2))
    assert (first, second) == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert place_side_by_side(_grid(1, 1, 3, 1)) == ((0,), (1,))
    assert place_side_by_side(_grid(1, 1, 4, 2), (2, 3, 6)) == ((2, 6), (3,))


def test_a_duet_needs_two_cores_and_not_two_threads_of_one() -> None:
    for host, cpus in ((_grid(1, 1, 1, 2), ()), (_grid(1, 1, 4, 2), (1, 5)), (_grid(1, 1, 1, 1), ())):
        with pytest.raises(DesignError, match="need two cores of one kind; usable here: 1"):
            place_side_by_side(host, cpus)


def test_the_sides_of_a_duet_have_cores_of_one_kind() -> None:
    kinds = [Cpu(id=n, core=n, siblings=(n,), efficiency_class=int(n > 1)) for n in range(6)]
    assert place_side_by_side(_topology(kinds)) == ((0,), (1,))
    one_fast = [Cpu(id=n, core=n, siblings=(n,), efficiency_class=int(n > 0)) for n in range(5)]
    assert place_side_by_side(_topology(one_fast)) == ((1, 3), (2, 4))
