"""Server-sent events of running studies: one reader of a ledger, whatever the number of viewers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from steelyard.errors import SteelyardError
from steelyard.record.folder_lock import is_held
from steelyard.serve.computing import TooBusyError
from steelyard.serve.live import Follower

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

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

    def require_room(self) -> None:
        """Refuse a viewer too many.

        Raises
        ------
        TooBusyError
            If there are as many as can be served.
        """
        if sum(stream.viewers for stream in self._streams.values()) >= MOST_VIEWERS:
            message = f"{MOST_VIEWERS} viewers follow studies already"
            raise TooBusyError(message, hint="close one of them, or open the page again later")

    async def events(self, folder: Path) -> AsyncIterator[str]:
        """Give the events of a study until it is over; the last viewer who leaves ends the reading."""
        stream = self._streams.setdefault(folder, _Stream())
        stream.viewers += 1
        if stream.task is None:
            stream.task = asyncio.create_task(self._follow(folder, stream))
        seen = 0
        try:
            while True:
                async with stream.changed:
                    while stream.number <= seen:
                        await stream.changed.wait()
                    seen, event, is_over = stream.number, stream.event, stream.is_over
                yield event
                if is_over:
                    return
        finally:
            stream.viewers -= 1
            if not stream.viewers:
                self._streams.pop(folder, None)
                stream.task.cancel()

    async def close(self) -> None:
        """End all streams."""
        for stream in list(self._streams.values()):
            await stream.tell(_event("bye", ""), is_over=True)

    async def _follow(self, folder: Path, stream: _Stream) -> None:
        follower: Follower | None = None
        while True:
            begin_s = time.process_time()
            try:
                is_running = await asyncio.to_thread(is_held, folder)
                if follower is None:
                    follower = await asyncio.to_thread(Follower, folder)
                    begin_s = time.process_time()
                text = self._rendered(await asyncio.to_thread(follower.snapshot))
                await stream.tell(_event("snapshot", text))
                if not is_running:
                    await stream.tell(_event("ended", ""), is_over=True)
                    return
            except SteelyardError as error:
                if not await asyncio.to_thread(is_held, folder):
                    await stream.tell(_event("ended", error.message), is_over=True)
                    return
            # What is long to read is read more rarely: somebody measures on this machine.
            await asyncio.sleep(max(PERIOD_S, REST * (time.process_time() - begin_s)))


def _event(name: str, text: str) -> str:
    r"""Write an event; a line of its data cannot end it.

    Examples
    --------
    >>> _event("snapshot", "a" + chr(10) + chr(10) + "event: b")
    'event: snapshot\ndata: a\ndata: \ndata: event: b\n\n'
    """
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
