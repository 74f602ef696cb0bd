"""One line on a terminal that says what is known by now."""

from __future__ import annotations

import math
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Final, Self

from steelyard.analyse.comparison.quantile_ratio import Quantile
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

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._stream.write(f"{_CLEAR}{text}\n")
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
    if len(measuring.contests) == 1:
        head = f"{measuring.contests[0].blocks} runs each"
    else:
        settled = sum(not contest.is_open for contest in measuring.contests)
        head = f"{settled} of {len(measuring.contests)} benchmarks settled"
    head += f", {measuring.elapsed_s:.0f} of {budget_s:.0f} s"
    left_s = expected_left_s(measuring)
    if left_s is not None:
        head += f", about {format_left(left_s)} left"
    contenders = measuring.entrants.contenders
    # Of a suite, what is open: a line has no room for more.
    shown = [duel for duel in measuring.duels if duel.is_open or len(measuring.contests) == 1]
    known = [
        f"{short(contenders[duel.contender].name, NAME_WIDTH)}{_at(duel, ' ')} {_known(duel)}"
        for duel in shown
    ]
    return "; ".join([head, *known])


def expected_left_s(measuring: Measuring) -> float | None:
    """Give the time until everything is settled or spent [s]; ``None`` before the first looks."""
    extent = measuring.terms.extent
    rest_s = max(extent.budget_s - measuring.elapsed_s, 0.0)
    needed_s = 0.0
    for contest in (each for each in measuring.contests if each.is_open):
        looks = [duel.known for duel in contest.duels if duel.is_open]
        if any(look is None for look in looks):
            return None
        most = extent.blocks_max - contest.blocks
        wanted = [most if look.further_blocks is None else look.further_blocks for look in looks if look]
        needed_s += min(max(wanted, default=0), most) * contest.block_s
    return min(needed_s, rest_s)


def _at(duel: Duel, gap: str) -> str:
    statistic = duel.sequence.design.statistic
    return f"{gap}{statistic}" if isinstance(statistic, Quantile) else ""


def _known(duel: Duel) -> str:
    look = duel.known
    if _at(duel, "") and (look is None or look.low <= 0):
        return f"from {duel.next_look} runs on"
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
