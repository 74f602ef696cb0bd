"""How slow a server may be, and how much it may send: connections of which no byte is waited for too long."""

from __future__ import annotations

import http.client
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any, Final

from steelyard.units import format_bytes

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Pace:
    """How slow a server may be: one byte now and then would hold a program for ever.

    Parameters
    ----------
    window_s : float
        Within so many seconds an answer begins, and in any so many `slowest_bytes` arrive [s].
    slowest_bytes : int
        4 KiB a second in the default window; a modem of 1994 was as fast.
    index_s : float
        Within so many seconds the whole index is there [s].
    surplus_bytes : int
        What an answer may have beyond its content: headers, and marks between its chunks.
    """

    window_s: float = 30.0
    slowest_bytes: int = 120 << 10
    index_s: float = 120.0
    surplus_bytes: int = 4 << 20


PACE: Final = Pace()


class Allowance:
    """What one answer may still take, from its first byte to its last.

    Parameters
    ----------
    content_bytes : int
        The most that its content may have.
    total_s : float or None
        Time for all of it [s].
    pace : Pace
        How slow it may be.
    """

    def __init__(self, content_bytes: int, total_s: float | None, pace: Pace) -> None:
        now = time.monotonic()
        self._pace = pace
        self._window_end = now + pace.window_s
        self._end = None if total_s is None else now + total_s
        self._in_window = 0
        self._left = content_bytes + content_bytes // 4 + pace.surplus_bytes

    def wait_s(self) -> float:
        """Give how long the next bytes may take [s].

        Raises
        ------
        TimeoutError
            If the server was too slow so far.
        """
        now = time.monotonic()
        if self._end is not None and now >= self._end:
            message = "the server was too slow: the transfer took longer than allowed"
            raise TimeoutError(message)
        if now >= self._window_end:
            if self._in_window < self._pace.slowest_bytes:
                rate = f"{format_bytes(self._pace.slowest_bytes)} in {self._pace.window_s:g} s"
                message = f"the server was too slow: {format_bytes(self._in_window)}, and {rate} is the least"
                raise TimeoutError(message)
            self._in_window, self._window_end = 0, now + self._pace.window_s
        return max(min(self._window_end, self._end or self._window_end) - now, 0.001)

    def took(self, byte_count: int) -> None:
        """Take note of bytes that arrived, of which kind ever."""
        self._in_window += byte_count
        self._left -= byte_count
        if self._left < 0:
            message = "the server sends more than the answer may contain"
            raise http.client.HTTPException(message)


class _Watched(RawIOBase):
    """The bytes of a connection, none of which is waited for longer than is left."""

    def __init__(self, connection: socket.socket, allowance: Allowance) -> None:
        self._socket = connection
        self._kept_open = connection.makefile("rb", buffering=0)
        self._allowance = allowance

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what there is."""
        while True:
            self._socket.settimeout(self._allowance.wait_s())
            with suppress(TimeoutError):
                count = self._socket.recv_into(buffer)
                break
        self._allowance.took(count)
        return count

    def close(self) -> None:
        """Close it."""
        self._kept_open.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer that is watched from its first byte on."""

    def __init__(self, sock: socket.socket, *args: Any, allowance: Allowance, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = BufferedReader(_Watched(sock, allowance))


def _watched_connection(
    kind: type[http.client.HTTPConnection], allowance: Allowance, *args: Any, **kwargs: Any
) -> http.client.HTTPConnection:
    connection = kind(*args, **kwargs)
    connection.response_class = partial(_Answer, allowance=allowance)  # type: ignore[assignment]
    return connection


class WatchedHttp(urllib.request.HTTPHandler):
    """Opens watched connections.

    Parameters
    ----------
    allowance : Allowance
        What their answers may still take, redirects included.
    """

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._kind = partial(_watched_connection, http.client.HTTPConnection, allowance)

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection that is watched."""
        return self.do_open(self._kind, req)


class WatchedHttps(urllib.request.HTTPSHandler):
    """The same for protected connections."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._kind = partial(_watched_connection, http.client.HTTPSConnection, allowance)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection that is watched."""
        return self.do_open(self._kind, req)
