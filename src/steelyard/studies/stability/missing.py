"""Rules that make cells of the stability study missing. A missing cell is NA in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.design.factors import MissingRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from steelyard.design.technology import Technology
    from steelyard.design.worker_counts import HostFacts
    from steelyard.studies.stability.workload_choice import WorkloadInput

VM_WORKERS: Final = 20
"""SOURCE: the evaluation this study repeats measured virtual machines up to 20 workers."""


def is_machine(levels: Mapping[str, str]) -> bool:
    """Whether a cell is run in a virtual machine."""
    return levels["isolation"].split("-")[0] == "vm"


def is_homogenous(levels: Mapping[str, str]) -> bool:
    """Whether all load of a cell is measured."""
    return levels["setup_type"] in {"single", "parallel-homogenous"}


def measured_workers(levels: Mapping[str, str]) -> int:
    """Give the number of measured workers; with synthetic neighbours there is one."""
    return int(levels["setup_size"]) if is_homogenous(levels) else 1


def missing_rules(
    host: HostFacts,
    technologies: Mapping[str, Technology],
    workloads: Iterable[WorkloadInput],
    offered: Mapping[str, frozenset[str]],
) -> tuple[MissingRule, ...]:
    """Give the rules of a host in the order in which they are tried.

    A technology that is not in `offered` offers all of the host's programs to workloads.
    """
    return (
        *_unavailable(technologies),
        *_not_ready(workloads),
        *_without_program(workloads, offered),
        *_machine_rules(),
        *_affinity_rules(host),
    )


def _unavailable(technologies: Mapping[str, Technology]) -> Iterator[MissingRule]:
    for name, technology in technologies.items():
        if not technology.available:
            reason = (
                f"{name} is not available on this machine: {technology.reason or 'its probe gave no reason'}"
            )
            yield MissingRule(f"unavailable-{name}", reason, _is("isolation", name))


def _not_ready(workloads: Iterable[WorkloadInput]) -> Iterator[MissingRule]:
    for name, reason in {each.workload: each.unavailable for each in workloads}.items():
        if reason is not None:
            yield MissingRule(f"unavailable-{name}", reason, _is("workload", name))


def _without_program(
    workloads: Iterable[WorkloadInput], offered: Mapping[str, frozenset[str]]
) -> Iterator[MissingRule]:
    needed: dict[str, set[str]] = {}
    for each in workloads:
        for program in each.needs:
            needed.setdefault(program, set()).add(each.workload)
    for program, users in needed.items():
        lacking = frozenset(name for name, programs in offered.items() if program not in programs)
        if lacking:
            yield _lacks_program(program, frozenset(users), lacking)


def _lacks_program(program: str, users: frozenset[str], lacking: frozenset[str]) -> MissingRule:
    def applies(levels: Mapping[str, str]) -> bool:
        return levels["workload"] in users and levels["isolation"] in lacking

    return MissingRule(f"no-{program}", f"this isolation does not contain `{program}`", applies)


def _machine_rules() -> Iterator[MissingRule]:
    yield MissingRule(
        "pinned-machine",
        "virtual machines are not pinned, as in the source",
        lambda levels: is_machine(levels) and levels["affinity"] != "none",
    )
    yield MissingRule(
        "crowded-machine",
        f"virtual machines are measured up to {VM_WORKERS} workers, as in the source",
        lambda levels: is_machine(levels) and int(levels["setup_size"]) > VM_WORKERS,
    )


def _affinity_rules(host: HostFacts) -> Iterator[MissingRule]:
    def pinned(affinity: str, largest: int, reason: str) -> MissingRule:
        def applies(levels: Mapping[str, str]) -> bool:
            return levels["affinity"] == affinity and int(levels["setup_size"]) > largest

        return MissingRule(f"{affinity}-size", reason, applies)

    if host.memory_node_count == 1:
        yield MissingRule("one-node", "this host has one memory node", _is("affinity", "numa"))
    if not host.has_smt:
        reason = "this host has no simultaneous multithreading to leave out"
        yield MissingRule("no-smt", reason, _is("affinity", "noht"))
    yield pinned(
        "taskset-multi", host.cpu_count, f"this host has {host.cpu_count} CPUs, fewer than the processes"
    )
    yield pinned("noht", host.core_count, f"this host has {host.core_count} cores, fewer than the processes")


def _is(column: str, level: str) -> _Is:
    return _Is(column, level)


class _Is:
    """Whether a combination has a level; a class, since a closure in a loop would see the last one."""

    def __init__(self, column: str, level: str) -> None:
        self.column = column
        self.level = level

    def __call__(self, levels: Mapping[str, str]) -> bool:
        return levels[self.column] == self.level
