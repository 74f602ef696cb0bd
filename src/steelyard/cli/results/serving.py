"""``steelyard serve``: results as pages in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003 - the command line reads annotations at run time
from typing import Final

from steelyard.cli.amounts import Whole  # noqa: TC001 - cyclopts reads it
from steelyard.errors import CapabilityError, UsageError

TOKEN_VARIABLE: Final = "STEELYARD_TOKEN"  # noqa: S105 - the name of a variable
INSTALL: Final = "pip install 'steelyard[serve]'"
_HIGHEST_PORT: Final = 65535


def serve(
    directory: Path | None = None,
    *,
    catalogue: str | None = None,
    port: Whole = 8645,
    host: str = "127.0.0.1",
    token: str | None = None,
) -> None:
    """Show results as pages in a browser: list, read, follow live, compare.

    Nothing is changed, and only this machine can reach the pages, unless `--host` says otherwise: then a
    reader must show a token once. One click computes a result again, as `steelyard verify` does.

    Parameters
    ----------
    directory
        Folder with result folders, looked through to a depth of four. The catalogue is shown unless given.
    catalogue
        File, or `postgresql://...`; the user's own by default.
    port
        0 takes a free one.
    host
        Address to listen at; `0.0.0.0` is every network that this machine is in.
    token
        What a reader must show, at least 16 letters or digits; better in the variable STEELYARD_TOKEN, since
        other users see command lines. One is made and printed where it is needed and not given.

    Examples
    --------
    Look at everything that was measured here::

        steelyard serve

    Look at the results of one folder::

        steelyard serve results
    """
    if directory is not None and catalogue is not None:
        message = "a folder and `--catalogue` exclude each other"
        raise UsageError(message, hint="leave out one of them")
    if not 0 <= port <= _HIGHEST_PORT:
        message = f"`--port` is {port}; allowed: 0 to {_HIGHEST_PORT}"
        raise UsageError(message, hint="`--port 0` takes a free one", code="usage.range")
    try:
        from steelyard.serve import server  # noqa: PLC0415 - an extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "uvicorn", "anyio", "h11", "click"}:
            raise
        message = f"cannot serve pages: the Python package `{error.name}` is not installed"
        raise CapabilityError(message, hint=INSTALL, code="capability.package") from error

    def said(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        sys.stderr.write("interrupt with Ctrl-C\n")

    place = server.Place(host, port, token or os.environ.get(TOKEN_VARIABLE))
    server.serve(place, directory, catalogue, said)
