"""What is said of a comparison: the relation of published intervals, and equivalence within a margin.

The unit is the block: both settings once, in random order, so that whatever drifts from block to block falls
out. What is judged is the mean of the logarithms of second over first inside the blocks, by the procedure of
`steelyard compare`: its interval holds at all looks together, and together with those of its family.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.published_rule import PublishedClass, published_class
from steelyard.analyse.comparison.sequential import Design, Location, SequentialComparison, fixed_look
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.analyse.comparison.sequential import Look
    from steelyard.model import Estimate


class Holding(StrEnum):
    """Whether the second side has the value of the first one."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison of two settings with its verdict.

    Parameters
    ----------
    look : Look
        Second over first, with the interval that the verdict follows from.
    verdict : Holding
        Of the second side.
    is_open : bool
        Whether more blocks could say more that matters.
    reason : str
        Why it is undecided; empty otherwise.
    """

    look: Look
    verdict: Holding
    is_open: bool
    reason: str


def differences(first: Mapping[int, float], second: Mapping[int, float]) -> dict[int, float]:
    """Give the logarithm of second over first of every block in which both have a positive value.

    Examples
    --------
    >>> differences({0: 2.0, 1: 2.0, 3: 5.0}, {0: 2.0, 2: 2.0, 3: 0.0})
    {0: 0.0}
    """
    both = sorted(first.keys() & second.keys())
    return {
        block: difference_of(first[block], second[block])
        for block in both
        if first[block] > 0 and second[block] > 0
    }


def design_of(margin: Margin, family: int) -> Design:
    """Give what is promised of each of so many comparisons that one answer rests on."""
    return Design(margin, max(family, 1), Location.MEAN)


def judge(
    found: Mapping[int, float], design: Design, looks: Sequence[tuple[int, float]] | None = None
) -> Judged:
    """Judge one comparison.

    **Equivalent**: the interval of the two one-sided tests lies inside the margin. **Different**: the
    interval of the ratio lies outside it, wholly. Else undecided.

    Parameters
    ----------
    found : mapping
        Logarithm of second over first by block, see `differences`.
    design : Design
        Margin, level and size of the family.
    looks : sequence of (blocks, fraction), or None
        When it was looked at: after so many blocks of the study, with so much of the largest experiment over.
        It is looked at until it is settled. ``None`` if the number of blocks was fixed before the first run.

    References
    ----------
    .. [1] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15: two one-sided tests.
    .. [2] Jennison & Turnbull (2000), Group Sequential Methods, ch. 9: repeated confidence intervals.

    Examples
    --------
    >>> from steelyard.analyse.comparison.equivalence import Margin
    >>> alike = dict(enumerate([0.001, -0.004, 0.006, 0.0, -0.002]))
    >>> apart = {block: 0.46 + each for block, each in alike.items()}
    >>> [judge(each, design_of(Margin(0.05), 2)).verdict.value for each in (alike, apart)]
    ['equivalent', 'different']
    """
    if looks is None:
        return _judged(fixed_look(design, np.array(list(found.values()))), design)
    duel = Duel(0, 1, SequentialComparison(design))
    for blocks, fraction in looks:
        if duel.is_open:
            duel.differences = [each for block, each in found.items() if block < blocks]
            if duel.differences:
                duel.look(fraction)
    return _judged(duel.known or fixed_look(design, np.zeros(0)), design)


def _judged(look: Look, design: Design) -> Judged:
    if look.blocks < FEWEST_UNITS:
        noun = "pair" if look.blocks == 1 else "pairs"
        reason = f"{look.blocks} {noun} of runs, a verdict needs {FEWEST_UNITS}"
        return Judged(look, Holding.UNDECIDED, is_open=True, reason=reason)
    low, high = _log(look.low), _log(look.high)
    if -design.bound < _log(look.narrow[0]) and _log(look.narrow[1]) < design.bound:
        return Judged(look, Holding.EQUIVALENT, is_open=False, reason="")
    if low > design.bound or high < -design.bound:
        return Judged(look, Holding.DIFFERENT, is_open=False, reason="")
    return Judged(look, Holding.UNDECIDED, is_open=not look.is_settled, reason=_why(look, (low, high)))


def _why(look: Look, limits: tuple[float, float]) -> str:
    """Say what the interval leaves open, and how many more runs would probably decide it."""
    if limits[0] > 0 or limits[1] < 0:
        why = "certainly a difference, but the interval reaches across the margin"
    else:
        why = "the interval extends beyond the margin and includes no difference"
    further = look.further_blocks
    if look.is_settled:
        return "certainly a difference, but the limit of the margin lies within its narrow interval"
    if further is None:
        return f"{why}; no reasonable number of runs would decide it at this spread"
    noun = "run" if further == 1 else "runs"
    return f"{why}; about {further} more {noun} a side would probably decide it"


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def relation(first: Estimate, second: Estimate) -> PublishedClass:
    """Give the relation of the second published interval to the first one.

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> one, other = Estimate(1.5, "ns", "", 1.0, 2.0), Estimate(3.5, "ns", "", 3.0, 4.0)
    >>> relation(one, other).value, relation(other, one).value
    ('higher', 'lesser')
    """
    return published_class(_limits(second), _limits(first))


def _limits(estimate: Estimate) -> tuple[float, float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high
