"""What a gate reads: the counters and processes of the running machine, or those of a test."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol

from steelyard.run.machine.host import read_activity, read_processes
from steelyard.run.machine.lock import current_holder

if TYPE_CHECKING:
    from steelyard.run.machine.host import Activity, Process


class Sensors(Protocol):
    """What a gate reads; the running machine by default."""

    def activity(self) -> Activity:
        """Read the counters."""

    def processes(self) -> tuple[Process, ...]:
        """List the processes."""

    def other_study(self) -> str | None:
        """Name another study that measures here."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class MachineSensors:
    """The running machine."""

    def activity(self) -> Activity:
        """Read the counters."""
        return read_activity()

    def processes(self) -> tuple[Process, ...]:
        """List the processes."""
        return read_processes()

    def other_study(self) -> str | None:
        """Name another study that measures here."""
        holder = current_holder()
        return None if holder is None or holder.process_id == os.getpid() else str(holder)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
