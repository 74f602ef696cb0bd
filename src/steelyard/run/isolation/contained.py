"""What all technologies share whose worker sees the skeleton root with the host's programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.run.isolation.interface import Isolation
from steelyard.run.isolation.root_view import PROGRAMS, SHARED, WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.run.session import Site


class Contained(Isolation):
    """A technology whose worker lives in a container on the host's kernel."""

    def programs(self, site: Site) -> Path:
        """Give the mounted folder."""
        return PROGRAMS

    def workloads(self, site: Site) -> Path:
        """Give the mounted folder."""
        return WORKLOADS

    def shared(self, site: Site) -> Path:
        """Give the mounted folder."""
        return SHARED


def comma_list(numbers: tuple[int, ...]) -> str:
    """Give CPU or node numbers in the form the kernel reads."""
    return ",".join(map(str, numbers))
