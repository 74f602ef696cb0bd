"""No isolation: the launcher is a process of the host and runs the program as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.run.isolation.attempt import attempt
from steelyard.run.isolation.interface import Availability, Isolation
from steelyard.run.programs import launcher_path

if TYPE_CHECKING:
    from steelyard.run.session import Site


class Bare(Isolation):
    """The baseline of every comparison."""

    name: str = "bare"

    def describe(self) -> str:
        """Say what it is."""
        return "no isolation: a process of the host, measured by a control group where one is available"

    def examine(self) -> Availability:
        """Start the launcher."""
        found = attempt([launcher_path(), "--version"])
        if not found.succeeded:
            return Availability.no(f"the launcher does not start: {found.last_words}", "make setup")
        return Availability.yes(found.output)

    def wrap(self, site: Site) -> list[str]:
        """Give the launcher itself."""
        return [str(site.session.launcher), "serve"]
