"""One line on a terminal that says what is known by now."""

from __future__ import annotations

import math
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Final, Self

from steelyard.run.progress import format_left
from steelyard.studies.comparison.claim import signed_percent
from steelyard.studies.comparison.contender import short

if TYPE_CHECKING:
    from typing import TextIO

    from steelyard.analyse.comparison.duel import Duel
    from steelyard.studies.comparison.run.measuring import Measuring

PERIOD_S: Final = 0.2
NAME_WIDTH: Final = 24
_CLEAR: Final = "\r\x1b[2K"


class LiveLine:
    """A line that is written over itself; a context manager that removes it at the end.

    Parameters
    ----------
    stream : text stream
        A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last_s = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.write(_CLEAR)
        self._stream.flush()

    def block_done(self, measuring: Measuring) -> None:
        """Write the line anew, unless it was written just now."""
        now_s = time.monotonic()
        if now_s - self._last_s < PERIOD_S:
            return
        self._last_s = now_s
        width = shutil.get_terminal_size().columns
        self._stream.write(_CLEAR + progress_text(measuring)[: width - 1])
        self._stream.flush()


def progress_text(measuring: Measuring) -> str:
    """Say in one line how far it is, what is known of the open comparisons, and how long it may take."""
    budget_s = measuring.terms.extent.budget_s
    head = f"{measuring.blocks} runs each, {measuring.elapsed_s:.0f} of {budget_s:.0f} s"
    left_s = expected_left_s(measuring)
    if left_s is not None:
        head += f", about {format_left(left_s)} left"
    contenders = measuring.entrants.contenders
    known = [
        f"{short(contenders[duel.contender].name, NAME_WIDTH)} {_known(duel)}" for duel in measuring.duels
    ]
    return "; ".join([head, *known])


def expected_left_s(measuring: Measuring) -> float | None:
    """Give the time until everything is settled or spent [s]; ``None`` before the first look."""
    open_duels = [duel for duel in measuring.duels if duel.is_open]
    looks = [duel.known for duel in open_duels]
    extent = measuring.terms.extent
    most_blocks = extent.blocks_max - measuring.blocks
    rest_s = max(extent.budget_s - measuring.elapsed_s, 0.0)
    if not looks or any(look is None for look in looks):
        return None
    wanted = max(
        most_blocks if look is None or look.further_blocks is None else look.further_blocks for look in looks
    )
    return min(min(wanted, most_blocks) * measuring.block_s, rest_s)


def _known(duel: Duel) -> str:
    look = duel.known
    if look is None or look.low <= 0:
        return (
            f"{signed_percent(math.exp(statistics.median(duel.differences)))} so far"
            if duel.differences
            else "?"
        )
    verdict = f" {look.verdict}" if not duel.is_open else ""
    return (
        f"{signed_percent(look.ratio)} ({signed_percent(look.low)} to {signed_percent(look.high)}){verdict}"
    )
