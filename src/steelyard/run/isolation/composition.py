"""Technologies inside one another: the sandbox in a container, the sandbox in a virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.run.isolation.interface import Availability, Isolation
from steelyard.run.isolation.probe import try_worker
from steelyard.run.isolation.sandbox import sandboxed, visible

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunOutcome, RunSpec
    from steelyard.run.session import Session, Site


class Composition(Isolation):
    """The sandbox inside another technology.

    Parameters
    ----------
    outer : Isolation
        Where the worker lives; it must grant what building a sandbox needs.
    name : str
        Level of the factor ``isolation``.
    """

    def __init__(self, outer: Isolation, name: str) -> None:
        super().__init__()
        self.outer = outer
        self.name = name
        self.shares_kernel = outer.shares_kernel
        self.shows_host = outer.shows_host
        self.start_timeout_s = outer.start_timeout_s

    def describe(self) -> str:
        """Say what it is made of."""
        return f"Steelyard's sandbox inside this: {self.outer.describe()}"

    def examine(self) -> Availability:
        """Run one sandboxed program in the outer technology."""
        outer = self.outer.probe()
        return try_worker(self, outer.version, outer.repair) if outer.available else outer

    def prepare(self, site: Site) -> None:
        """Prepare the outer technology."""
        self.outer.prepare(site)

    def wrap(self, site: Site) -> list[str]:
        """Give the outer technology's command."""
        return self.outer.wrap(site)

    def programs(self, site: Site) -> Path:
        """Give what the outer technology shows."""
        return self.outer.programs(site)

    def workloads(self, site: Site) -> Path:
        """Give what the outer technology shows."""
        return self.outer.workloads(site)

    def shared(self, site: Site) -> Path:
        """Give what the outer technology shows."""
        return self.outer.shared(site)

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Ask for the sandbox in the outer technology's place."""
        adapted = self.outer.inside(spec, site)
        return sandboxed(adapted, visible(self, site))

    def collect(self, outcome: RunOutcome, site: Site) -> RunOutcome:
        """Let the outer technology add its values."""
        return self.outer.collect(outcome, site)

    def pause(self, site: Site) -> None:
        """Pause the outer technology."""
        self.outer.pause(site)

    def resume(self, site: Site) -> None:
        """Resume the outer technology."""
        self.outer.resume(site)

    def tear_down(self, site: Site) -> None:
        """Tear the outer technology down."""
        self.outer.tear_down(site)

    def close(self, session: Session) -> None:
        """Close the outer technology."""
        self.outer.close(session)

    def sweep(self, folder: Path) -> None:
        """Sweep the outer technology."""
        self.outer.sweep(folder)
