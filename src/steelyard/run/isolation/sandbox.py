"""Steelyard's own sandbox: the launcher builds it around each run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.model.run_spec import Sandbox as SandboxSpec
from steelyard.run.isolation.bare import Bare
from steelyard.run.isolation.interface import Availability, Isolation, place
from steelyard.run.isolation.probe import try_worker

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunSpec
    from steelyard.run.session import Site


class Sandbox(Bare):
    """Five namespaces, a control group, a system call filter and no privileges, per run."""

    name: str = "sandbox"

    def describe(self) -> str:
        """Say what it is."""
        return "Steelyard's sandbox: five namespaces, a control group, a system call filter, no privileges"

    def examine(self) -> Availability:
        """Run one sandboxed program."""
        return try_worker(self, "five namespaces, a control group, a system call filter", "steelyard doctor")

    def inside(self, spec: RunSpec, site: Site) -> RunSpec:
        """Ask for the sandbox, with our programs and the workloads visible."""
        return sandboxed(place(spec, site), visible(self, site))


def visible(technology: Isolation, site: Site) -> list[Path]:
    """Give the folders a sandboxed program must see beside the host's programs."""
    shown = site.session.shown if technology.shows_host else ()
    return [technology.programs(site), technology.workloads(site), *shown]


def sandboxed(spec: RunSpec, read_only: list[Path]) -> RunSpec:
    """Give a run specification that asks for the sandbox.

    Parameters
    ----------
    spec : RunSpec
        Run specification.
    read_only : list of Path
        Folders the program must see beside the host's programs.
    """
    return replace(spec, sandbox=SandboxSpec(read_only=tuple(map(str, read_only))))
