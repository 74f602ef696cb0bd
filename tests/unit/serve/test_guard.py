"""Requests as the guard sees them: by which name they came."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `serve`")

from starlette.responses import PlainTextResponse

from steelyard.serve.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 80


def status_of(guard: Guard, host: str) -> int:
    said: list[Any] = []

    async def session() -> None:
        async def send(message: Any) -> None:
            said.append(message)

        async def receive() -> Any:
            return {"type": "http.request"}

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": [(b"host", host.encode())],
        }
        await guard(scope, receive, send)

    asyncio.run(session())
    return int(said[0]["status"])


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_silent_name_server_delays_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def full_name() -> str:
        answered.wait(20)
        return "Scale.example.org"

    monkeypatch.setattr(socket, "getfqdn", full_name)
    begin = time.monotonic()
    guard = Guard(PlainTextResponse("shown"), PORT, None)
    assert status_of(guard, "localhost") == 200
    assert status_of(guard, socket.gethostname()) == 200
    assert status_of(guard, "scale.example.org") == 421, "a name that is not known yet is a stranger's"
    assert time.monotonic() - begin < 5
    answered.set()
    until(lambda: status_of(guard, "scale.example.org") == 200)
    assert status_of(guard, "evil.example") == 421
