"""Reports in a browser: they may come from strangers, so only scripts of this version are executed."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Final

from markupsafe import escape

from steelyard.errors import DataError
from steelyard.report.drawing.engine import engine_script, has_engine
from steelyard.report.html import inline, policy, template_sources
from steelyard.serve.file_answer import FileAnswer
from steelyard.serve.result_folder import open_inside

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.serve.computing import Computing

REPORT_NAME: Final = "report.html"
LARGEST_REPORT: Final = 200_000_000
STATIC_POLICY: Final = (
    "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Without scripts a report cannot do anything by itself, such as to lead its window elsewhere."""
_HEAD_BYTES: Final = 4096


class Reports:
    """The reports of results, each as it was written.

    A script could reach the network by ways that no policy closes, such as WebRTC, or by leading its window
    elsewhere. So scripts are admitted by their hashes alone, those of the template and of the chart engine
    that are installed here, and only in a frame of our own page, which holds the frame at this server.

    Parameters
    ----------
    computing : Computing
        Where the chart engine is read, which takes seconds.
    """

    def __init__(self, computing: Computing) -> None:
        self._computing = computing
        self._policy: asyncio.Task[str] | None = None

    async def answer(self, folder: Path, *, is_framed: bool) -> FileAnswer:
        """Send the report of a result folder.

        Raises
        ------
        DataError
            If it is absent, leads out of the folder, or is too large.
        TooBusyError
            If too much is computed or sent already.
        """
        allowed = STATIC_POLICY
        if is_framed and await asyncio.to_thread(has_own_scripts, folder):
            allowed = await self.scripts()
        file = await asyncio.to_thread(open_inside, folder, REPORT_NAME, LARGEST_REPORT)
        # No policy forbids to look up the names of servers that a page says it will need.
        return FileAnswer(
            file, "text/html", {"Content-Security-Policy": allowed, "X-DNS-Prefetch-Control": "off"}
        )

    async def scripts(self) -> str:
        """Give the policy that admits the scripts of this version."""
        if self._policy is None or (self._policy.done() and self._policy.exception() is not None):
            self._policy = asyncio.create_task(self._computing.run(_framed_policy))
        return await asyncio.shield(self._policy)


def has_own_scripts(folder: Path) -> bool:
    """Whether a report says that its script is the one of this version; no other is executed anyway."""
    try:
        with open_inside(folder, REPORT_NAME, LARGEST_REPORT) as file:
            return _own_policy_end() in file.read(_HEAD_BYTES)
    except DataError:
        return False


@cache
def _own_policy_end() -> bytes:
    """Give how the policy in a report of this version ends; before it an engine may have its hash."""
    return str(escape(policy(_own_script()).partition("script-src ")[2])).encode()


def _own_script() -> str:
    return inline(template_sources()["page.js"])


def _framed_policy() -> str:
    engine = (inline(engine_script()),) if has_engine() else ()
    admitted = policy(*engine, _own_script())
    return f"sandbox allow-scripts allow-downloads; {admitted}; frame-ancestors 'self'"
