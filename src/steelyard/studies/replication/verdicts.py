"""What is said of a comparison: the relation of published intervals, and equivalence within a margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.compare import PublishedClass, published_class
from steelyard.analyse.equivalence import FEWEST_UNITS, RatioTest, ratio_test
from steelyard.analyse.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.equivalence import Margin
    from steelyard.model import Estimate


class Holding(StrEnum):
    """Whether the second side has the value of the first one."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison of two sets of run values with its verdict.

    Parameters
    ----------
    test : RatioTest
        Second over first.
    p_different, p_equivalent : float
        Adjusted for the family.
    verdict : Holding
        Of the second side.
    reason : str
        Why it is undecided; empty otherwise.
    """

    test: RatioTest
    p_different: float
    p_equivalent: float
    verdict: Holding
    reason: str


def judge_family(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], margin: Margin) -> list[Judged]:
    """Judge comparisons that belong together; p-values are adjusted within them.

    Parameters
    ----------
    pairs : sequence of (first, second)
        Positive run values of both sides; the verdict is about second over first.
    margin : Margin
        Of equivalence, fixed before the data.

    Returns
    -------
    list of Judged
        In order.

    References
    ----------
    .. [1] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15: two one-sided tests.
    .. [2] Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57.

    Examples
    --------
    >>> from steelyard.analyse.equivalence import Margin
    >>> alike, apart = [100.0, 100.5, 99.5, 100.2, 99.8], [155.0, 154.0, 156.0, 155.5, 154.5]
    >>> [found.verdict.value for found in judge_family([(alike, alike), (alike, apart)], Margin(0.05))]
    ['equivalent', 'different']
    """
    tests = [ratio_test(np.array(first), np.array(second), margin) for first, second in pairs]
    different = benjamini_hochberg([test.p_different for test in tests])
    equivalent = benjamini_hochberg([test.p_equivalent for test in tests])
    return [_judged(*each, margin) for each in zip(tests, different, equivalent, strict=True)]


def _judged(test: RatioTest, p_different: float, p_equivalent: float, margin: Margin) -> Judged:
    """Equivalence goes first: a difference that is sure but inside the margin is not relevant."""
    found = Judged(test, p_different, p_equivalent, Holding.UNDECIDED, "")
    if min(test.units) < FEWEST_UNITS:
        return replace(found, reason=f"{min(test.units)} runs on a side, a verdict needs {FEWEST_UNITS}")
    if p_equivalent < 1 - margin.level:
        return replace(found, verdict=Holding.EQUIVALENT)
    if p_different < 1 - margin.level:
        return replace(found, verdict=Holding.DIFFERENT)
    further = test.further_units
    noun = "run" if further == 1 else "runs"
    more = f"; about {further} more {noun} a side may settle it" if further else ""
    return replace(found, reason=f"{_why_undecided(found, margin)}{more}")


def _why_undecided(found: Judged, margin: Margin) -> str:
    """Say what the interval leaves open, or that only the other comparisons leave it open."""
    low, high = found.test.low, found.test.high
    if low > 1 or high < 1:
        return (
            f"among so many comparisons such a difference may be chance (adjusted p {found.p_different:.2g})"
        )
    if 1 / (1 + margin.relative) < low and high < 1 + margin.relative:
        return f"among so many comparisons such agreement may be chance (adjusted p {found.p_equivalent:.2g})"
    return "the interval reaches over the margin and over no difference"


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
