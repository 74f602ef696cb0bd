"""Server-sent events of running studies: one reader of a ledger, whatever the number of viewers."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from steelyard.catalogue.folder import FAULTS, holds, reason_of
from steelyard.record.folder_lock import is_held
from steelyard.report.html import coded
from steelyard.report.shown_text import shown
from steelyard.serve.computing import TooBusyError
from steelyard.serve.live import Follower

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from steelyard.serve.live import Snapshot

PERIOD_S: Final = 1.0
"""Between two readings [s]."""
REST: Final = 20.0
"""How many times the CPU time of a reading passes before the next one."""
MOST_VIEWERS: Final = 40


class _Stream:
    """The readings of one study for all who look at it."""

    def __init__(self) -> None:
        self.viewers = 0
        self.number = 0
        self.event = ""
        self.is_over = False
        self.changed = asyncio.Condition()
        self.task: asyncio.Task[None] | None = None

    async def tell(self, event: str, *, is_over: bool = False) -> None:
        async with self.changed:
            self.number += 1
            self.event, self.is_over = event, is_over
            self.changed.notify_all()

    async def events(self) -> AsyncIterator[str]:
        seen = 0
        while True:
            async with self.changed:
                while self.number <= seen and not self.is_over:
                    await self.changed.wait()
                is_new, seen, event, is_over = self.number > seen, self.number, self.event, self.is_over
            if is_new:
                yield event
            if is_over:
                return


class LiveStreams:
    """Streams of events by result.

    Parameters
    ----------
    rendered : callable
        Gives a snapshot as HTML.
    """

    def __init__(self, rendered: Callable[[Snapshot], str]) -> None:
        self._rendered = rendered
        self._streams: dict[Path, _Stream] = {}

    def answer(self, identifier: str, folder: Path) -> Response:
        """Give the events of a study until it is over."""
        return _Answer(self, identifier, folder)

    @contextmanager
    def viewed(self, identifier: str, folder: Path) -> Iterator[_Stream]:
        """Hold the stream of a study for a viewer; the last one who leaves ends the reading.

        Raises
        ------
        TooBusyError
            If there are as many viewers as can be served.
        """
        if sum(stream.viewers for stream in self._streams.values()) >= MOST_VIEWERS:
            message = f"{MOST_VIEWERS} viewers follow studies already"
            raise TooBusyError(message, hint="close one of them, or open the page again later")
        stream = self._streams.setdefault(folder, _Stream())
        stream.viewers += 1
        if stream.task is None:
            stream.task = asyncio.create_task(self._follow(identifier, folder, stream))
        try:
            yield stream
        finally:
            stream.viewers -= 1
            if not stream.viewers:
                self._streams.pop(folder)
                stream.task.cancel()

    async def close(self) -> None:
        """End all streams; browsers ask again until there is a server."""
        for stream in list(self._streams.values()):
            await stream.tell(stream.event, is_over=True)

    async def _follow(self, identifier: str, folder: Path, stream: _Stream) -> None:
        follower: Follower | None = None
        try:
            while not stream.is_over:
                begin_s = time.process_time()
                is_running = await asyncio.to_thread(is_held, folder)
                try:
                    if follower is None:
                        # Another result has a page of its own.
                        is_running = is_running and await asyncio.to_thread(holds, folder, identifier)
                        follower = await asyncio.to_thread(Follower, folder)
                        begin_s = time.process_time()
                    text = self._rendered(await asyncio.to_thread(follower.snapshot))
                except FAULTS as error:
                    follower = None
                    text = f'<p class="notice bad">{coded(shown(reason_of(error)))}</p>'
                await stream.tell(_event("snapshot", text))
                if not is_running:
                    await stream.tell(_event("ended", ""), is_over=True)
                # What is long to read is read more rarely: somebody measures on this machine.
                await asyncio.sleep(max(PERIOD_S, REST * (time.process_time() - begin_s)))
        finally:
            # Nobody waits for what does not come, whatever a plug-in has raised.
            await stream.tell(stream.event, is_over=True)


class _Answer(StreamingResponse):
    """The events of a study as an answer, whose viewer counts while it is sent."""

    def __init__(self, streams: LiveStreams, identifier: str, folder: Path) -> None:
        super().__init__(iter(()), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._viewed = partial(streams.viewed, identifier, folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        with self._viewed() as stream:
            self.body_iterator = stream.events()
            await super().__call__(scope, receive, send)


def _event(name: str, text: str) -> str:
    r"""Write an event; a line of its data cannot end it.

    Examples
    --------
    >>> _event("snapshot", "a" + chr(10) + chr(10) + "event: b")
    'event: snapshot\ndata: a\ndata: \ndata: event: b\n\n'
    """
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
