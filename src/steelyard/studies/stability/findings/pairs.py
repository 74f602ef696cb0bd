"""Which cells are compared with which."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from steelyard.studies.stability.findings.cells import NO_AFFINITY, CellKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.studies.stability.findings.cells import Recorded

BASELINE: Final = "bare"
CONTAINERS: Final = ("docker", "docker-bare", "podman", "crun", "runc", "bubblewrap", "nspawn")
MACHINES: Final = ("vm", "vbox-bare")

SANDBOXED: Final = {
    "isolate": "bare",
    "sandbox": "bare",
    "docker-isolate": "docker-bare",
    "vbox-isolate": "vbox-bare",
    "docker-sandbox": "docker",
    "vm-sandbox": "vm",
}
"""Isolations that add a sandbox, with the same isolation without it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells that differ in one factor.

    Parameters
    ----------
    family : str
        ``isolation``, ``sandbox`` or ``affinity``: tests are corrected within a family.
    first, second : CellKey
        In the source's order: bare, container, machine; with sandbox, without; with affinity, without.
    """

    family: str
    first: CellKey
    second: CellKey

    @property
    def setup(self) -> str:
        """Setup both sides share; that of the side without affinity."""
        return self.second.setup

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the sides."""
        if self.family != "affinity":
            return self.first.isolation, self.second.isolation
        return f"{self.first.isolation}-{self.first.affinity}", self.second.isolation


def pairs(recorded: Recorded) -> list[Pair]:
    """Give all comparisons of a result; a side may be a missing cell, but not both."""
    known = {*recorded.cells, *recorded.missing}
    order = {name: place for place, name in enumerate(recorded.isolations)}
    found = [
        pair
        for pair in (*_isolations(known, order), *_sandboxes(known, order), *_affinities(known))
        if pair.first in recorded.cells or pair.second in recorded.cells
    ]
    families = ("isolation", "sandbox", "affinity")
    return sorted(
        found,
        key=lambda pair: (
            families.index(pair.family),
            order.get(pair.first.isolation, 0),
            order.get(pair.second.isolation, 0),
            _place(pair.second),
            pair.first.affinity,
        ),
    )


def _place(key: CellKey) -> tuple[bool, str, int, str, str, str]:
    return (key.setup_type != "single", key.setup_type, key.setup_size, key.affinity, key.workload, key.input)


def _rank(isolation: str) -> int:
    if isolation == BASELINE:
        return 0
    return 1 if isolation in CONTAINERS else 2


def _isolations(known: Iterable[CellKey], order: dict[str, int]) -> Iterator[Pair]:
    """Pair technologies without an added sandbox: bare with each, and each container with each machine."""
    plain = sorted(
        (name for name in order if name not in SANDBOXED), key=lambda name: (_rank(name), order[name])
    )
    wanted = [
        (first, second)
        for first, second in combinations(plain, 2)
        if first == BASELINE or (_rank(first) == 1 and second in MACHINES)
    ]
    shapes = sorted({replace(key, isolation="") for key in known})
    present = set(known)
    for shape in shapes:
        for first, second in wanted:
            sides = replace(shape, isolation=first), replace(shape, isolation=second)
            if any(side in present for side in sides):
                yield Pair("isolation", *sides)


def _sandboxes(known: Iterable[CellKey], order: dict[str, int]) -> Iterator[Pair]:
    for key in sorted(known):
        if SANDBOXED.get(key.isolation) in order:
            yield Pair("sandbox", key, replace(key, isolation=SANDBOXED[key.isolation]))


def _affinities(known: Iterable[CellKey]) -> Iterator[Pair]:
    for key in sorted(known):
        if key.affinity != NO_AFFINITY:
            yield Pair("affinity", key, replace(key, affinity=NO_AFFINITY))
