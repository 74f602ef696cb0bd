"""The clocks of workers on another kernel, in terms of the host's.

A virtual machine's monotonic clock starts with the machine and stands still while it is stopped. Its
offset is measured before and after each batch by round trips: the guest's reading lies between the
host's two, so half the shortest round trip bounds the error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.model.run_outcome import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import RunOutcome


@dataclass(frozen=True, slots=True)
class Reading:
    """A worker's clock between two readings of the host's [ns]."""

    sent_ns: int
    there_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Worker's monotonic clock minus the host's, with a bound of its error [ns]."""

    offset_ns: int
    error_ns: int

    def until(self, after: ClockOffset) -> ClockOffset:
        """Give the offset of a batch from those before and after it; a drift widens the bound."""
        low = min(self.offset_ns - self.error_ns, after.offset_ns - after.error_ns)
        high = max(self.offset_ns + self.error_ns, after.offset_ns + after.error_ns)
        return ClockOffset((low + high) // 2, (high - low + 1) // 2)


def offset_of(readings: Sequence[Reading]) -> ClockOffset:
    """Give the offset from round trips: that of the shortest one.

    Examples
    --------
    >>> offset_of([Reading(100, 1150, 200), Reading(300, 1305, 310)])
    ClockOffset(offset_ns=1000, error_ns=5)
    """
    best = min(readings, key=lambda reading: reading.received_ns - reading.sent_ns)
    middle = (best.sent_ns + best.received_ns) // 2
    return ClockOffset(best.there_ns - middle, (best.received_ns - best.sent_ns + 1) // 2)


def translate(outcome: RunOutcome, offset: ClockOffset, utc_minus_monotonic_ns: int) -> RunOutcome:
    """Give an outcome with its stamps in the host's clocks; durations stay the worker's own.

    Parameters
    ----------
    outcome : RunOutcome
        Outcome with stamps of the worker's clock.
    offset : ClockOffset
        Offset during its batch; kept in the outcome as ``clock``.
    utc_minus_monotonic_ns : int
        Host's UTC minus host's monotonic clock [ns].
    """
    start_ns, end_ns = (
        None if stamp_ns is None else stamp_ns - offset.offset_ns
        for stamp_ns in (outcome.start_ns, outcome.end_ns)
    )
    return replace(
        outcome,
        start_ns=start_ns,
        end_ns=end_ns,
        start_utc_ns=outcome.start_utc_ns if start_ns is None else start_ns + utc_minus_monotonic_ns,
        clock=Clock(offset.offset_ns, offset.error_ns),
    )
