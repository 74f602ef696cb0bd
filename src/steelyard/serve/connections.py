"""Connections: how many there may be, and how long one may say nothing."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

MOST_CONNECTIONS: Final = 200
"""A browser opens six to a host; beyond this the one that has waited longest without a request is closed."""
IDLE_S: Final = 10.0
"""How long a connection may be without a whole request [s]."""
STALL_S: Final = 20.0
"""How long a reader may take for what waits to be sent, about 100 kB [s]."""


class BoundedProtocol(H11Protocol):
    """HTTP with at most `MOST_CONNECTIONS` connections, none of them idle for long.

    A connection that sends nothing, sends a header a byte at a time, or does not read what it asked for,
    would otherwise hold its place for ever.
    """

    open_ones: ClassVar[dict[BoundedProtocol, float]] = {}
    """Connections with the time since when they are without a request, on the monotonic clock [s]."""
    _timer: TimerHandle | None = None
    _full_s = 0.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take a connection; make room for it where there is none."""
        super().connection_made(transport)
        if len(self.open_ones) >= MOST_CONNECTIONS:
            idle = [each for each in self.open_ones if not each.is_answering]
            oldest = min(idle, key=self.open_ones.__getitem__, default=self)
            oldest.leave()
            if oldest is self:
                return
        self.open_ones[self] = time.monotonic()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._forget()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a reader."""
        super().pause_writing()
        self._full_s = time.monotonic()

    @property
    def is_answering(self) -> bool:
        """Whether a request of it is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def leave(self) -> None:
        """Close it without a word."""
        self._forget()
        self.transport.abort()

    @classmethod
    def leave_all(cls) -> None:
        """Close all connections without a word."""
        for each in list(cls.open_ones):
            each.leave()

    def _watch(self) -> None:
        now = time.monotonic()
        if self.is_answering and not (self.flow.write_paused and now - self._full_s > STALL_S):
            self.open_ones[self] = now
        elif self.is_answering or now - self.open_ones[self] > IDLE_S:
            self.leave()
            return
        self._timer = asyncio.get_running_loop().call_later(IDLE_S / 4, self._watch)

    def _forget(self) -> None:
        self.open_ones.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
