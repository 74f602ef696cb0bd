"""Which settings are compared: what a container, swapped roles, swapped storages and other devices change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from steelyard.studies.replication.values.summaries import CellRuns

NATIVE: Final = "native"
CONTAINER: Final = "container"
SWAPPED: Final = "swapped"
STORAGE_SWAPPED: Final = "storage-swapped"

BY_CONTAINER: Final = "container"
BY_ROLES: Final = "roles swapped"
BY_STORAGE: Final = "storages swapped"
BY_DEVICE: Final = "device"

EFFECTS: Final = (BY_DEVICE, BY_CONTAINER, BY_ROLES, BY_STORAGE)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two settings that differ in one thing.

    Parameters
    ----------
    effect : str
        One of `EFFECTS`.
    first, second : str
        Names of the settings; the verdict is about the second against the first.
    """

    effect: str
    first: str
    second: str


def pairs_of(settings: Collection[str]) -> Iterator[Pair]:
    """Give the comparisons of an experiment's settings.

    Examples
    --------
    >>> [(each.effect, each.first, each.second) for each in pairs_of(("native", "container"))]
    [('container', 'native', 'container')]
    >>> [each.effect for each in pairs_of(("D1-native", "D1-container", "D2-native"))]
    ['container', 'device']
    >>> [each.effect for each in pairs_of(("D1-native", "D1-storage-swapped"))]
    ['storages swapped']
    """
    plain = ((BY_CONTAINER, CONTAINER), (BY_ROLES, SWAPPED), (BY_STORAGE, STORAGE_SWAPPED))
    for effect, other in plain:
        if NATIVE in settings and other in settings:
            yield Pair(effect, NATIVE, other)
    for device in devices_of(settings):
        first, second = f"{device}-{NATIVE}", f"{device}-{CONTAINER}"
        if first in settings and second in settings:
            yield Pair(BY_CONTAINER, first, second)
        moved = f"{device}-{STORAGE_SWAPPED}"
        if first in settings and moved in settings:
            yield Pair(BY_STORAGE, first, moved)
    for technology in (NATIVE, CONTAINER):
        present = [name for device in devices_of(settings) if (name := f"{device}-{technology}") in settings]
        for other in present[1:]:
            yield Pair(BY_DEVICE, present[0], other)


def devices_of(settings: Collection[str]) -> tuple[str, ...]:
    """Give the devices that settings are named after, in order.

    Examples
    --------
    >>> devices_of(("D1-native", "D1-container", "D2-native", "storage-swapped"))
    ('D1', 'D2')
    """
    found = [
        name.removesuffix(f"-{technology}")
        for name in settings
        for technology in (NATIVE, CONTAINER)
        if name.endswith(f"-{technology}")
    ]
    return tuple(dict.fromkeys(found))


def sharing_of(cells: Iterable[CellRuns]) -> str:
    """Say how devices of some cells are parts of one machine; nothing of those that are machines."""
    facts = [each for cell in cells for each in _devices(cell)]
    if any(each.get("is_played") is True for each in facts):
        return "played devices"
    return "hosts of one machine" if any(each.get("shares_machine_with") for each in facts) else ""


def machine_of_host(cell: CellRuns) -> str | None:
    """Give the machine of the host that a cell was placed on; ``None`` where devices are no such hosts."""
    return next((str(each["machine"]) for each in _devices(cell) if "shares_machine_with" in each), None)


def _devices(cell: CellRuns) -> Iterator[Mapping[str, Any]]:
    for run in cell.runs:
        for facts in (run.recorded.header.get("devices") or {}).values():
            if isinstance(facts, dict):
                yield facts
