"""How far simulations are: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from steelyard.run.progress import LINE_PERIOD_S, format_left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

WHOLE: Final = 1.0


class Tell(Protocol):
    """Is told how far simulations are."""

    def begin(self, name: str) -> None:
        """Say which simulation begins."""

    def advance(self, share: float) -> None:
        """Say which share of it is done, 0 to 1."""


class _Lines:
    """A line every few seconds; nothing at all about what is over before."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._name = ""
        self._begin_s = self._last_s = time.monotonic()

    def begin(self, name: str) -> None:
        self._number += 1
        self._name = name

    def advance(self, share: float) -> None:
        now_s = time.monotonic()
        if now_s - self._last_s < LINE_PERIOD_S:
            return
        self._last_s = now_s
        done = self._number - 1 + share
        left_s = (now_s - self._begin_s) * (self._total - done) / max(done, 1e-9)
        sys.stderr.write(
            f"simulation {self._number} of {self._total}, {format_left(left_s)} left: {self._name}\n"
        )


class _Bar:
    """A bar with the time left."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._number = 0

    def begin(self, name: str) -> None:
        self._bar.update(self._task, completed=self._number * WHOLE, description=name)
        self._number += 1

    def advance(self, share: float) -> None:
        self._bar.update(self._task, completed=self._number - 1 + share)


@contextmanager
def follow(total: int) -> Iterator[Tell]:
    """Give what is told how far `total` simulations are."""
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console  # noqa: PLC0415 - start-up time
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as RichProgress  # noqa: PLC0415

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar, bar.add_task("", total=total * WHOLE))
