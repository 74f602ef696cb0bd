"""What a design needs to know of an isolation technology on this host."""

from __future__ import annotations

from typing import Protocol


class Technology(Protocol):
    """Whether a technology works; `steelyard.run.isolation.interface.Availability` is one."""

    @property
    def available(self) -> bool:
        """Whether it works here."""

    @property
    def reason(self) -> str | None:
        """Why it does not."""
