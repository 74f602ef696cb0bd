"""How far a study is: a bar on a terminal, plain lines elsewhere; both on standard error."""

from __future__ import annotations

import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from steelyard.model import Batch, Cell, Plan

LINE_PERIOD_S: Final = 15.0
BAR_WIDTH: Final = 16
"""Characters; beside it numbers and the time left have room on 80 columns."""

FORESIGHT_PAUSE: Final = 50
"""Foreseeing takes at most one part in so many of the time."""
SECONDS_PER_MINUTE: Final = 60
SECONDS_PER_HOUR: Final = 3600


class Estimator:
    """Foresees the time left, from the batches run so far.

    A batch is expected to take as long as earlier ones of its cell; where there is none, as those of
    its isolation; else as all.

    Parameters
    ----------
    plan : Plan
        The plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._seconds: dict[tuple[str, object], list[float]] = defaultdict(list)
        self._foreseen: tuple[float, float, float] | None = None
        """When it was computed, how long that took, what came out [s]."""

    def add(self, cell: Cell, seconds: float) -> None:
        """Learn how long a batch took."""
        for key in _keys(cell):
            self._seconds[key].append(seconds)

    def left_s(
        self, batches: Sequence[Batch], begin: int = 0, left_out: Collection[int] = ()
    ) -> float | None:
        """Give the expected time of the batches from one on [s]; ``None`` before the first one is over.

        Of many batches that takes long, so it is computed again only when that is a small part of the time.

        Parameters
        ----------
        batches : sequence of Batch
            In order.
        begin : int
            Place of the first one that is not over.
        left_out : collection of int
            Cells that are not run.
        """
        if not self._seconds:
            return None
        now_s = time.monotonic()
        if self._foreseen is not None:
            computed_s, took_s, left_s = self._foreseen
            if now_s - computed_s < took_s * FORESIGHT_PAUSE:
                return max(left_s - (now_s - computed_s), 0.0)
        cells = Counter(batch.cell for batch in islice(batches, begin, None))
        counts: Counter[tuple[str, object]] = Counter()
        for cell, count in cells.items():
            if cell not in left_out:
                counts[self._known(self._plan.cells[cell])] += count
        # One median of each key: many cells that were not run yet share that of thousands of batches.
        left_s = sum(count * statistics.median(self._seconds[key]) for key, count in counts.items())
        self._foreseen = (now_s, time.monotonic() - now_s, left_s)
        return left_s

    def _known(self, cell: Cell) -> tuple[str, object]:
        """Give the closest key of a cell for which a batch is over."""
        return next(key for key in _keys(cell) if self._seconds.get(key))


def _keys(cell: Cell) -> tuple[tuple[str, object], ...]:
    isolation = cell.execution.isolation if cell.execution else None
    return ("cell", cell.number), ("isolation", isolation), ("all", None)


class Progress(ABC):
    """Told by the executor what happens; a context manager."""

    _is_calibrating = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to tidy
        """Leave the terminal tidy."""

    @abstractmethod
    def begin(self, total: int, done: int) -> None:
        """Say how many batches there are, and how many were complete before."""

    @abstractmethod
    def batch(self, levels: Mapping[str, str]) -> None:
        """Say which cell is run now."""

    @abstractmethod
    def batch_done(self, left_s: float | None, failed_runs: int) -> None:
        """Say that a batch is over, the expected time left, and the failed runs so far."""

    def left_out(self) -> None:  # noqa: B027 - most count what is run
        """Say that a batch is not run, since nothing more is to be learned from it."""

    def calibrated(self, done: int, total: int) -> None:
        """Say, once, that Steelyard measures its own error before the study."""
        if not self._is_calibrating and done < total:
            self._is_calibrating = True
            self.note(f"measuring Steelyard's own error on this host first: {total} runs")

    @abstractmethod
    def note(self, text: str) -> None:
        """Say something the user should know."""


class Silent(Progress):
    """Says nothing but notes."""

    def begin(self, total: int, done: int) -> None:
        """Nothing."""

    def batch(self, levels: Mapping[str, str]) -> None:
        """Nothing."""

    def batch_done(self, left_s: float | None, failed_runs: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Write the note."""
        sys.stderr.write(f"{text}\n")


class Lines(Progress):
    """A plain line every few seconds.

    Parameters
    ----------
    stream : text stream
        Where to write; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._total = self._done = 0
        self._cell = ""
        self._last_s = float("-inf")

    def begin(self, total: int, done: int) -> None:
        """Write the sizes."""
        self._total, self._done = total, done
        before = f", {done} complete before" if done else ""
        self.note(f"{total} batches{before}")

    def batch(self, levels: Mapping[str, str]) -> None:
        """Remember the cell."""
        self._cell = cell_text(levels)

    def batch_done(self, left_s: float | None, failed_runs: int) -> None:
        """Write a line, unless there was one just now."""
        self._done += 1
        now = time.monotonic()
        if now - self._last_s < LINE_PERIOD_S and self._done < self._total:
            return
        self._last_s = now
        failed = f", {failed_runs} failed runs" if failed_runs else ""
        left = f", {format_left(left_s)} left" if left_s is not None and self._done < self._total else ""
        self.note(f"batch {self._done} of {self._total}{left}{failed}: {self._cell}")

    def left_out(self) -> None:
        """Expect a batch less."""
        self._total -= 1

    def note(self, text: str) -> None:
        """Write a line."""
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Bar(Progress):
    """A progress bar with the time left, on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - start-up time
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415
        from rich.table import Column  # noqa: PLC0415

        # The cell takes what is left of the line, and is shortened first.
        cell = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns = (
            BarColumn(bar_width=BAR_WIDTH),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("[cyan]{task.fields[left]}", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", table_column=cell),
        )
        self._rich = RichProgress(*columns, console=Console(stderr=True), transient=False, expand=True)
        self._task = self._rich.add_task("", total=None, left="", visible=False)

    def __enter__(self) -> Progress:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def begin(self, total: int, done: int) -> None:
        """Show the bar."""
        self._rich.update(self._task, total=total, completed=done, visible=True)

    def batch(self, levels: Mapping[str, str]) -> None:
        """Show the cell."""
        self._rich.update(self._task, description=cell_text(levels))

    def batch_done(self, left_s: float | None, failed_runs: int) -> None:
        """Move the bar."""
        failed = f"  [red]{failed_runs} failed runs" if failed_runs else ""
        left = f"{format_left(left_s)} left" if left_s is not None else ""
        self._rich.update(self._task, advance=1, left=left + failed)

    def left_out(self) -> None:
        """Make the bar shorter."""
        total = self._rich.tasks[self._task].total
        self._rich.update(self._task, total=None if total is None else total - 1)

    def note(self, text: str) -> None:
        """Write a line above the bar."""
        self._rich.console.print(text, markup=False, highlight=False)


def choose_progress() -> Progress:
    """Give a bar if standard error is a terminal, else lines."""
    return Bar() if sys.stderr.isatty() else Lines()


def cell_text(levels: Mapping[str, str]) -> str:
    """Give a cell in a few words: the level of its first factor, and the others that say something.

    Examples
    --------
    >>> cell_text({"policy": "none", "load": "85"}), cell_text({"isolation": "bare", "affinity": "none"})
    ('none 85', 'bare')
    """
    first, *others = levels.values()
    return " ".join([first, *(level for level in others if level not in {"none", "off"})])


def format_left(seconds: float) -> str:
    """Write a time to come, coarsely.

    Examples
    --------
    >>> format_left(42.3), format_left(125), format_left(7400)
    ('42 s', '2 min 5 s', '2 h 3 min')
    """
    whole = round(seconds)
    if whole < SECONDS_PER_MINUTE:
        return f"{whole} s"
    if whole < SECONDS_PER_HOUR:
        return f"{whole // SECONDS_PER_MINUTE} min {whole % SECONDS_PER_MINUTE} s"
    return f"{whole // SECONDS_PER_HOUR} h {whole % SECONDS_PER_HOUR // SECONDS_PER_MINUTE} min"
