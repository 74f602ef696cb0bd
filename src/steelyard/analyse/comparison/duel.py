"""One comparison of a field while it grows: the differences of its blocks, and its looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.comparison.interim_schedule import next_look

if TYPE_CHECKING:
    from steelyard.analyse.comparison.sequential import Look, SequentialComparison


def difference_of(baseline: float, contender: float) -> float:
    """Give the logarithm of contender over baseline, the value of a block.

    Examples
    --------
    >>> difference_of(2.0, 2.0)
    0.0
    """
    return float(np.log(contender / baseline))


@dataclass(slots=True)
class Duel:
    """One comparison while it grows.

    Parameters
    ----------
    baseline, contender : int
        Numbers of the commands.
    sequence : SequentialComparison
        Its looks.
    """

    baseline: int
    contender: int
    sequence: SequentialComparison
    differences: list[float] = field(default_factory=list)
    is_open: bool = True
    next_look: int = 0
    known: Look | None = None

    def look(self, fraction: float) -> None:
        """Look at it, unless there is nothing new.

        All intervals hold together, so the narrower of two looks may be trusted: a look that comes soon
        after another, because somebody interrupted, has little error to spend and is often the wider one.
        """
        looks = self.sequence.looks
        is_new = not looks or looks[-1].blocks < len(self.differences)
        found = self.sequence.look(np.array(self.differences), fraction) if is_new else looks[-1]
        self.next_look = next_look(max(found.blocks, 1))
        if self.known is None or found.log_width <= self.known.log_width:
            self.known = found
        self.is_open = not self.known.is_settled

    @property
    def look_times(self) -> tuple[tuple[int, float], ...]:
        """Blocks and fraction of each look."""
        return tuple((look.blocks, look.fraction) for look in self.sequence.looks)
