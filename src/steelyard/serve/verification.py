"""Verification of a result at a click: `steelyard verify` in a process of its own, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from steelyard import __version__
from steelyard.catalogue import Verified
from steelyard.catalogue.folder import folder_state
from steelyard.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.serve.catalogue_source import Results

PATIENCE_S: Final = 900.0
"""Longest verification [s]; a result of ten million rows takes a tenth of it."""
MOST_BYTES: Final = 1_000_000
SHOWN: Final = 50


class Verifications:
    """The verifications of this server; the catalogue keeps what came of them.

    Parameters
    ----------
    results : Results
        Where they are kept.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._found: dict[str, Verified] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether one is running."""
        return self._task is not None and not self._task.done()

    async def of(self, identifier: str, folder: Path) -> Verified | None:
        """Give what is known of a result as its files are now."""
        found = self._found.get(identifier) or await self._results.verified(folder)
        if found is None or found.state == "running":
            return found
        try:
            return found if found.stamp == await asyncio.to_thread(folder_state, folder) else None
        except DataError:
            return None  # it has got more files since than anybody looks at

    async def begin(self, identifier: str, folder: Path) -> bool:
        """Begin to verify a result; say whether that was possible."""
        stamp = await asyncio.to_thread(folder_state, folder)
        if self.is_busy:
            return False
        self._found[identifier] = Verified("running", stamp)
        self._task = asyncio.create_task(self._verify(identifier, folder))
        return True

    async def close(self) -> None:
        """End a verification that is running."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _verify(self, identifier: str, folder: Path) -> None:
        stamp, begin_s = self._found[identifier].stamp, time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "steelyard", "verify", "--json", "--", str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=MOST_BYTES,
        )
        try:
            output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        except TimeoutError:
            reason = f"it took longer than {PATIENCE_S:g} s and was ended"
            now = datetime.now(UTC)
            self._found[identifier] = Verified("failed", stamp, PATIENCE_S, (reason,), ended=now)
            return
        except asyncio.CancelledError:
            self._found.pop(identifier, None)
            raise
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        took_s = time.monotonic() - begin_s
        found = self._found[identifier] = _verified(output, errors, stamp, took_s)
        if found.state != "failed" and await self._results.keep_verified(folder, found):
            # Another server of the same catalogue may verify it later: what is kept is the latest.
            del self._found[identifier]


def _verified(output: bytes, errors: bytes, stamp: str, took_s: float) -> Verified:
    now = datetime.now(UTC)
    try:
        answer = json.loads(output)
        problems = tuple(map(str, answer["problems"][:SHOWN]))
        lacks = tuple(map(str, answer["not_compared"][:SHOWN]))
        state = "confirmed" if answer["confirmed"] else "not confirmed"
    except (ValueError, KeyError, TypeError):
        lines = errors.decode("utf-8", "replace").strip().splitlines()[-SHOWN:]
        said = tuple(lines) or ("it ended without an answer",)
        return Verified("failed", stamp, took_s, said, (), now, __version__)
    return Verified(state, stamp, took_s, problems, lacks, now, __version__)
