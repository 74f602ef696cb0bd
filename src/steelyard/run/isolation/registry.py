"""The table of isolation technologies: the built-in ones and those of plug-ins."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.run.isolation.bare import Bare
from steelyard.run.isolation.bubblewrap import Bubblewrap
from steelyard.run.isolation.composition import Composition
from steelyard.run.isolation.docker import Docker, DockerEngine
from steelyard.run.isolation.isolate import Isolate
from steelyard.run.isolation.nspawn import Nspawn
from steelyard.run.isolation.oci import Crun, Runc
from steelyard.run.isolation.podman import Podman
from steelyard.run.isolation.sandbox import Sandbox
from steelyard.run.isolation.vm import VirtualMachine

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.run.isolation.interface import Isolation

ENTRY_POINTS: Final = "steelyard.isolations"


@cache
def technologies() -> dict[str, Isolation]:
    """Give every technology by its name, in the order of the documentation, plug-ins last."""
    machine = VirtualMachine()
    engine = DockerEngine()
    found: list[Isolation] = [
        Bare(),
        Sandbox(),
        Isolate(),
        Docker(engine),
        Podman(),
        Crun(),
        Runc(),
        Bubblewrap(),
        Nspawn(),
        machine,
        Composition(Docker(engine, privileged=True), "docker-sandbox"),
        Composition(machine, "vm-sandbox"),
    ]
    found += [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    return {technology.name: technology for technology in found}


def technology(name: str) -> Isolation:
    """Give one technology.

    Raises
    ------
    UsageError
        If there is none of that name; the message lists those there are.
    """
    known = technologies()
    if name not in known:
        allowed = ", ".join(f"`{each}`" for each in known)
        message = f"there is no isolation `{name}`; allowed: {allowed}"
        raise UsageError(
            message, hint="steelyard doctor lists what works on this machine", code="usage.isolation"
        )
    return known[name]


def sweep_all(folder: Path) -> None:
    """Let every technology remove what a killed session left outside its folder."""
    for each in technologies().values():
        each.sweep(folder)
