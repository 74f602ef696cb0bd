"""Verification of a result at a click: `steelyard verify` in a process of its own, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.catalogue.folder import stamp_of

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S: Final = 900.0
"""Longest verification [s]; a result of ten million rows takes a tenth of it."""
MOST_BYTES: Final = 1_000_000
SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification found.

    Parameters
    ----------
    state : str
        ``running``, ``confirmed``, ``not confirmed`` or ``failed``.
    stamp : str
        Of the files that were verified.
    took_s : float
        How long it took [s].
    problems, not_compared : tuple of str
        What `steelyard verify` says.
    """

    state: str
    stamp: str
    took_s: float = 0.0
    problems: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()


class Verifications:
    """The verifications of this server."""

    def __init__(self) -> None:
        self._found: dict[str, Verified] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether one is running."""
        return self._task is not None and not self._task.done()

    def of(self, identifier: str, folder: Path) -> Verified | None:
        """Give what is known of a result as its files are now."""
        found = self._found.get(identifier)
        if found is None or (found.state != "running" and found.stamp != stamp_of(folder)):
            return None
        return found

    def begin(self, identifier: str, folder: Path) -> bool:
        """Begin to verify a result; say whether that was possible."""
        if self.is_busy:
            return False
        self._found[identifier] = Verified("running", stamp_of(folder))
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
            self._found[identifier] = Verified("failed", stamp, PATIENCE_S, (reason,))
            return
        except asyncio.CancelledError:
            self._found.pop(identifier, None)
            raise
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        took_s = time.monotonic() - begin_s
        self._found[identifier] = _verified(output, errors, stamp, took_s)


def _verified(output: bytes, errors: bytes, stamp: str, took_s: float) -> Verified:
    try:
        answer = json.loads(output)
        problems = tuple(map(str, answer["problems"][:SHOWN]))
        lacks = tuple(map(str, answer["not_compared"][:SHOWN]))
        state = "confirmed" if answer["confirmed"] else "not confirmed"
    except (ValueError, KeyError, TypeError):
        lines = errors.decode("utf-8", "replace").strip().splitlines()[-SHOWN:]
        return Verified("failed", stamp, took_s, tuple(lines) or ("it ended without an answer",))
    return Verified(state, stamp, took_s, problems, lacks)
