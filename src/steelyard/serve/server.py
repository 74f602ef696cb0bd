"""The server: where it listens, who may look, and its end."""

from __future__ import annotations

import asyncio
import secrets
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvicorn

from steelyard.errors import CapabilityError, UsageError
from steelyard.serve.connections import BoundedProtocol
from steelyard.serve.guard import FEWEST_TOKEN_CHARACTERS, Guard, is_loopback
from steelyard.serve.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DEFAULT_PORT: Final = 8645
LARGEST_HEAD: Final = 16_384
"""Bytes of a request line with its headers."""
_TOKEN_BYTES: Final = 24
_CLOSING_S: Final = 2
"""How long readers may take for the rest of an answer when the server ends [s]."""
_BACKLOG: Final = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen, and what a reader must show.

    Parameters
    ----------
    host : str
        Address.
    port : int
        0 takes a free one.
    token : str or None
        ``None``: made where the address can be reached from elsewhere.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = None

    def settled_token(self) -> str | None:
        """Give the token that readers must show; ``None`` where only this machine can reach the server.

        Raises
        ------
        UsageError
            If the one that was given is too short, or has signs that an address cannot hold.
        """
        if self.token is None:
            return None if is_loopback(self.host) else secrets.token_urlsafe(_TOKEN_BYTES)
        is_plain = self.token.isascii() and all(sign.isalnum() or sign in "-_.~" for sign in self.token)
        if len(self.token) < FEWEST_TOKEN_CHARACTERS or not is_plain:
            message = (
                f"cannot use this token: it needs at least {FEWEST_TOKEN_CHARACTERS} letters, digits, "
                "`-`, `_`, `.` or `~`"
            )
            raise UsageError(message, hint="leave out `--token`, so that one is made", code="usage.token")
        return self.token


def serve(place: Place, directory: Path | None, catalogue: str | None, said: Callable[[str], object]) -> None:
    """Serve pages until it is interrupted.

    Parameters
    ----------
    place : Place
        Where.
    directory : Path or None
        Folder with results; ``None`` shows a catalogue.
    catalogue : str or None
        Its address; ``None`` takes the user's.
    said : callable
        Told the address to open.

    Raises
    ------
    UsageError
        If token or folder cannot be used.
    CapabilityError
        If it cannot listen there.
    """
    token = place.settled_token()
    listener = _listening(place)
    try:
        port = int(listener.getsockname()[1])
        pages = Pages(directory, catalogue)
        config = uvicorn.Config(
            Guard(pages.application(), port, token),
            http=BoundedProtocol,
            ws="none",
            lifespan="on",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2 * _CLOSING_S,
            backlog=_BACKLOG,
        )
        shown = "127.0.0.1" if place.host in {"0.0.0.0", "::", ""} else place.host  # noqa: S104 - shown, not bound
        name = f"[{shown}]" if ":" in shown else shown
        said(f"http://{name}:{port}/" + (f"?token={token}" if token else ""))
        _Server(config, pages).run(sockets=[listener])
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """A server that ends what would never end by itself: what is followed, computed, or not read."""

    def __init__(self, config: uvicorn.Config, pages: Pages) -> None:
        super().__init__(config)
        self._pages = pages

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what can be answered, and hang up on the rest."""
        await self._pages.close()
        asyncio.get_running_loop().call_later(_CLOSING_S, BoundedProtocol.leave_all)
        await super().shutdown(sockets)


def _listening(place: Place) -> socket.socket:
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot listen at `{place.host}` port {place.port}: {reason}"
        hint = "`--port 0` takes a free port; `--host 127.0.0.1` is this machine"
        raise CapabilityError(message, hint=hint, code="capability.listen") from error
    return listener
