"""Files that are sent: a few at a time, in pieces, and only to readers who read."""

from __future__ import annotations

import asyncio
import io
import socket
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `serve`")

import uvicorn
from starlette.responses import StreamingResponse

from steelyard.serve import connections
from steelyard.serve.computing import TooBusyError
from steelyard.serve.connections import BoundedProtocol
from steelyard.serve.file_answer import MOST_READERS, FileAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SCOPE: dict[str, Any] = {"type": "http", "asgi": {"spec_version": "2.4"}}


async def nothing() -> Any:
    await asyncio.sleep(60)


class CountedFile(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        return piece


def test_a_file_is_read_as_fast_as_it_is_taken_and_few_at_a_time() -> None:
    async def session() -> None:
        async def never(_: Any) -> None:
            await asyncio.sleep(60)

        files = [CountedFile(bytes(10_000_000)) for _ in range(MOST_READERS + 1)]
        answers = [FileAnswer(file, "text/html", {}) for file in files]
        tasks = [asyncio.create_task(each(SCOPE, nothing, never)) for each in answers[:-1]]
        await asyncio.sleep(0.05)
        assert sum(file.taken for file in files) < 10_000_000
        with pytest.raises(TooBusyError, match="are being sent"):
            await answers[-1](SCOPE, nothing, never)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(file.closed for file in files)

        sent: list[Any] = []

        async def take(message: Any) -> None:
            sent.append(message)

        await FileAnswer(io.BytesIO(b"whole" * 50_000), "text/html", {})(SCOPE, nothing, take)
        assert b"".join(each.get("body", b"") for each in sent) == b"whole" * 50_000

    asyncio.run(session())


def test_who_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_S", 0.5)
    monkeypatch.setattr(connections, "IDLE_S", 0.4)
    ended: list[str] = []

    async def endless(path: str) -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(65_536)
                await asyncio.sleep(0.001)
        finally:
            ended.append(path)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(endless(scope["path"]))(scope, receive, send)

    async def session() -> None:
        config = uvicorn.Config(application, http=BoundedProtocol, lifespan="off", log_level="critical")
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        host, port = listener.getsockname()
        _, lazy = await asyncio.open_connection(host, port, limit=1)
        lazy.write(b"GET /lazy HTTP/1.1\r\nHost: x\r\n\r\n")
        reader, keen = await asyncio.open_connection(host, port)
        keen.write(b"GET /keen HTTP/1.1\r\nHost: x\r\n\r\n")
        loop = asyncio.get_running_loop()
        end = loop.time() + 10
        while ended != ["/lazy"] and loop.time() < end:
            assert await reader.read(1_000_000)
        assert ended == ["/lazy"]
        assert await reader.read(1_000_000)
        for writer in (lazy, keen):
            writer.transport.abort()
        server.should_exit = True
        await serving

    asyncio.run(session())
