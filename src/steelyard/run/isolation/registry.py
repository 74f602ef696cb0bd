"""The isolation technologies there are: Steelyard's own, and those of plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.plug_in import ISOLATION_GROUP, Registry, fault_of
from steelyard.run.isolation.interface import Isolation

if TYPE_CHECKING:
    from pathlib import Path

TECHNOLOGIES: Final[Registry[Isolation]] = Registry(
    ISOLATION_GROUP, "isolation", lambda name, offered: fault_of(name, offered, Isolation)
)


def technologies() -> dict[str, Isolation]:
    """Give every technology that can be loaded, by name, plug-ins last."""
    return TECHNOLOGIES.usable()


def technology(name: str) -> Isolation:
    """Give one technology.

    Raises
    ------
    CapabilityError
        If the package that offers it cannot be used.
    UsageError
        If there is none of that name; the message lists those there are.
    """
    found = TECHNOLOGIES.find(name)
    if found is None:
        allowed = ", ".join(f"`{each}`" for each in TECHNOLOGIES.names())
        message = f"`{name}` is not an isolation technology; allowed: {allowed}"
        raise UsageError(
            message, hint="steelyard doctor lists what works on this machine", code="usage.isolation"
        )
    return found


def sweep_all(folder: Path) -> None:
    """Let every technology remove what a killed session left outside its folder."""
    for each in technologies().values():
        each.sweep(folder)
