"""Files as answers: sent in pieces, to a few readers at a time, so that none has to fit into memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from starlette.responses import StreamingResponse

from steelyard.serve.computing import TooBusyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import BinaryIO

    from starlette.types import Receive, Scope, Send

MOST_READERS: Final = 16
"""Files that are being sent; who stops reading is disconnected and leaves a place."""
_PIECE: Final = 65_536


class FileAnswer(StreamingResponse):
    """An answer with the rest of a file, which is closed at the end.

    Parameters
    ----------
    file : file object
        Open for reading bytes.
    media_type : str
        Kind of content.
    headers : dict of str to str
        Further headers.

    Raises
    ------
    TooBusyError
        When it is to be sent, if `MOST_READERS` are being sent.
    """

    readers: ClassVar[int] = 0

    def __init__(self, file: BinaryIO, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(self._pieces(), media_type=media_type, headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._file:
            if FileAnswer.readers >= MOST_READERS:
                message = f"{MOST_READERS} files are being sent already"
                raise TooBusyError(message, hint="try again in a minute")
            FileAnswer.readers += 1
            try:
                await super().__call__(scope, receive, send)
            finally:
                FileAnswer.readers -= 1

    async def _pieces(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self._file.read, _PIECE):
            yield piece
