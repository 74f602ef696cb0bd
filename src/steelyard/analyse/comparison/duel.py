"""One comparison of a field while it grows: the differences of its blocks, and its looks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.analyse.comparison.quantile_ratio import Quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    differences : list of float
        Logarithm of contender over baseline in each block.
    begun : float
        Fraction that was spent before it began, or went on.
    values : list of tuple
        Values of baseline and contender in each block: what quantiles are computed from.
    """

    baseline: int
    contender: int
    sequence: SequentialComparison
    differences: list[float] = field(default_factory=list)
    values: list[tuple[float, float]] = field(default_factory=list)
    is_open: bool = True
    next_look: int = 0
    known: Look | None = None
    begun: float = 0.0

    def add(self, baseline: float, contender: float) -> None:
        """Take the values of a block."""
        self.differences.append(difference_of(baseline, contender))
        self.values.append((baseline, contender))

    @property
    def end(self) -> float:
        """Fraction that is spent when the experiment is over."""
        return math.floor(self.begun) + 1.0

    def fraction(self, share: float) -> float:
        """Give the fraction that is spent after a share of the experiment, in [0, 1]."""
        return self.begun + (self.end - self.begun) * share

    @property
    def blocks(self) -> list[float] | list[tuple[float, float]]:
        """What a look reads of each block."""
        return self.values if isinstance(self.sequence.design.statistic, Quantile) else self.differences

    @property
    def stages(self) -> int:
        """How often the whole error was spent, or is being spent: more than once if it went on afterwards."""
        looks = self.sequence.looks
        return max(math.ceil(looks[-1].fraction), 1) if looks else 1

    def look(self, fraction: float) -> None:
        """Look at it, unless there is nothing new.

        All intervals hold together, so the narrower of two looks may be trusted: a look that comes soon
        after another, because somebody interrupted, has little error to spend and is often the wider one.
        """
        looks = self.sequence.looks
        is_new = not looks or looks[-1].blocks < len(self.differences)
        found = self.sequence.look(np.array(self.blocks), fraction) if is_new else looks[-1]
        self.next_look = next_look(max(found.blocks, 1))
        if self.known is None or found.log_width <= self.known.log_width:
            self.known = found
        self.is_open = not self.known.is_settled

    @property
    def look_times(self) -> tuple[tuple[int, float], ...]:
        """Blocks and fraction of each look."""
        return tuple((look.blocks, look.fraction) for look in self.sequence.looks)


def losers_of(duels: Sequence[Duel]) -> dict[int, Duel]:
    """Give everybody who is slower than another one for sure, each with a comparison that says so."""
    found: dict[int, Duel] = {}
    for duel in duels:
        if duel.known is not None and duel.known.verdict in {Verdict.SLOWER, Verdict.FASTER}:
            is_second = duel.known.verdict is Verdict.SLOWER
            found.setdefault(duel.contender if is_second else duel.baseline, duel)
    return found


def eliminate(duels: Sequence[Duel]) -> None:
    """Close every comparison of somebody who is not the fastest for sure."""
    losers = losers_of(duels)
    for duel in duels:
        if duel.baseline in losers or duel.contender in losers:
            duel.is_open = False


def best_of(duels: Sequence[Duel]) -> tuple[int, list[tuple[Duel, bool]]]:
    """Give the likeliest fastest one, and of each other a comparison that says how it stands to a faster one.

    Somebody whose comparison with the fastest ended early, as another one was faster already, is compared
    with that one.

    Parameters
    ----------
    duels : sequence of Duel
        Of everybody with everybody.

    Returns
    -------
    best : int
        Number of the one that is behind none for sure, and ahead of most of its like in the estimates.
    others : list of (Duel, bool)
        In the order of the others' numbers; and whether the second side is the faster one there.
    """
    losers = losers_of(duels)
    everybody = sorted({number for duel in duels for number in (duel.baseline, duel.contender)})
    left = [number for number in everybody if number not in losers] or everybody
    wins = dict.fromkeys(left, 0)
    for duel in duels:
        if duel.baseline in wins and duel.contender in wins and duel.known is not None:
            wins[duel.baseline if duel.known.ratio > 1 else duel.contender] += duel.known.ratio != 1
    best = max(left, key=lambda number: wins[number])
    others = []
    for number in everybody:
        if number == best:
            continue
        pair = {number, best}
        direct = next(duel for duel in duels if {duel.baseline, duel.contender} == pair)
        says = losers_of([direct])
        chosen = direct if number in says or number not in losers else losers[number]
        others.append((chosen, chosen.baseline == number))
    return best, others
