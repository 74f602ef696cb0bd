"""Parts of a study as processes of this host, some at a time: what a fleet does, without one."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Final

from steelyard.run.hosts.engine import Pending, is_running, part_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

END_S: Final = 30.0
"""Time that a part gets to end what it has started [s]."""


class LocalEngine:
    """Runs parts on this host.

    Parameters
    ----------
    width : int
        Parts at a time. They take turns where they measure: one study at a time measures on a host.
    folder : Path
        Folder of the parts; those that an earlier process has started are found there.
    """

    is_here: Final = True
    names: Final = ()

    def __init__(self, width: int, folder: Path) -> None:
        self._width = width
        self._earlier = sorted(folder.glob("part-*"))
        self._waiting: list[Path] = []
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def size(self) -> int:
        """Parts at a time."""
        return self._width

    @property
    def width(self) -> int:
        """Parts at a time."""
        return self._width

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        """Queue parts."""
        self._waiting += parts
        self._fill()

    def pending(self) -> Pending:
        """Give the parts that run or wait."""
        self._running = {name: each for name, each in self._running.items() if each.poll() is None}
        self._fill()
        self._earlier = list(filter(is_running, self._earlier))
        known = (part.name for part in (*self._waiting, *self._earlier))
        return Pending(frozenset([*self._running, *known]))

    def cancel(self) -> None:
        """End all parts in order, and those that do not end in time at once."""
        self._waiting = []
        for each in self._running.values():
            each.send_signal(signal.SIGTERM)
        for each in self._running.values():
            try:
                each.wait(END_S)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._width:
            part = self._waiting.pop(0)
            with (part / "output.txt").open("ab") as output:
                # A session of its own: Ctrl-C reaches the parts through `cancel` alone.
                self._running[part.name] = subprocess.Popen(
                    part_command(part),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
