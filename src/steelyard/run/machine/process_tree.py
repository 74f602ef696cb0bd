"""Tells our processes from foreign ones and from what a killed study left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.run.machine.host import Process

OWN_GROUP: Final = "steelyard"
"""Groups whose name starts so were made by Steelyard."""
LEFTOVER_NAMES: Final = frozenset({"stress-ng", "stress-ng-cpu", "stress-ng-memcpy", "steelyard-work"})
"""Programs that only ever run as load or workload of a study."""
OWN_PROGRAMS: Final = "steelyard-"
"""Names of Steelyard's own programs begin so."""
_NAMED_CULPRITS: Final = 3


def own_tree(processes: Iterable[Process], roots: Iterable[int]) -> set[int]:
    """Give the ids of some processes and everything below them."""
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent_id, []).append(process.id)
    own: set[int] = set()
    waiting = list(roots)
    while waiting:
        process_id = waiting.pop()
        if process_id not in own:
            own.add(process_id)
            waiting += children.get(process_id, [])
    return own


def _used(before: Iterable[Process], after: Iterable[Process]) -> dict[int, tuple[str, int]]:
    """Give name and ticks used in between, by process id; a reused id counts from zero."""
    earlier = {(process.id, process.start_ticks): process.cpu_ticks for process in before}
    return {
        process.id: (process.name, process.cpu_ticks - earlier.get((process.id, process.start_ticks), 0))
        for process in after
    }


def ticks_between(before: Iterable[Process], after: Iterable[Process], own: set[int]) -> int:
    """Give the CPU time [ticks] that the processes of `own` used between two listings."""
    return sum(ticks for process_id, (_, ticks) in _used(before, after).items() if process_id in own)


def foreign(before: Iterable[Process], after: Iterable[Process], own: set[int]) -> set[int]:
    """Give the processes of two listings that are no part of a study, in whatever container it lives.

    While a batch runs, some of a study's processes are outside its own tree: launchers in
    containers, whose parent is an engine. They are known by their names and groups.
    """
    listed = {process.id: process for process in (*before, *after)}
    return {
        process.id
        for process in listed.values()
        if process.id not in own and not _is_ours(process) and not process.name.startswith(OWN_PROGRAMS)
    }


def culprits(before: Iterable[Process], after: Iterable[Process], own: set[int]) -> str:
    """Name the foreign processes that used most CPU time; empty when none is listed."""
    used = [
        (ticks, name, process_id)
        for process_id, (name, ticks) in _used(before, after).items()
        if process_id not in own and ticks > 0
    ]
    worst = sorted(used, reverse=True)[:_NAMED_CULPRITS]
    if not worst:
        return ""
    return ": " + ", ".join(f"{name} ({process_id})" for _, name, process_id in worst)


def leftovers(processes: Iterable[Process], own: set[int]) -> list[Process]:
    """Give living processes that look like a study's and are not among `own`."""
    return [
        process
        for process in processes
        if process.id not in own and process.state not in {"Z", "X"} and _is_ours(process)
    ]


def _is_ours(process: Process) -> bool:
    paths = (group.partition(":")[2] for group in process.groups)
    in_group = any(part.startswith(OWN_GROUP) for path in paths for part in path.split("/"))
    return in_group or process.name in LEFTOVER_NAMES
