"""A comparison that is looked at while it grows, and whose promises hold whenever it stops.

The unit is the block: every command once, in random order. What is analysed is the difference of the
logarithms inside a block, so whatever drifts from block to block falls out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.analyse.comparison.alpha_spending import crossing_bounds, pocock_spending, staged_spending
from steelyard.analyse.comparison.equivalence import MOST_FURTHER_UNITS, Margin, Verdict
from steelyard.analyse.comparison.quantile_ratio import (
    Quantile,
    fewest_blocks,
    has_unlike_spells,
    quantile_of,
    quantile_ratio_interval,
)
from steelyard.analyse.comparison.signed_rank import pseudomedian, pseudomedian_interval
from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

Limits = tuple[float, float]
NARROW: Final = 0.5
"""Half-width of an interval over the margin at which a difference is known well enough."""


SETTLED_SHARE: Final = 0.9
"""Share of the places that a difference may have for which the further blocks suffice."""

_PLACES: Final = 40


class Location(StrEnum):
    """Which value stands for the differences of all blocks."""

    TYPICAL = "typical"
    """Pseudomedian with signed ranks: outliers hardly move it."""
    MEAN = "mean"
    """Mean with Student's t: the ratio of geometric means, outliers included."""


Statistic = Location | Quantile
"""What a comparison is about: a location of the differences inside blocks, or a quantile of each side."""


def parse_statistic(text: str) -> Statistic:
    """Read the name of a statistic.

    Raises
    ------
    UsageError
        If it is none.

    Examples
    --------
    >>> parse_statistic("mean"), parse_statistic("p95")
    (<Location.MEAN: 'mean'>, Quantile(percent=95.0))
    """
    return Location(text) if text in set(Location) else Quantile.parse(text)


@dataclass(frozen=True, slots=True)
class Design:
    """What is promised before the first run.

    Parameters
    ----------
    margin : Margin
        What counts as no relevant difference, and the level of every claim.
    family : int
        Number of comparisons among which the error is divided (Bonferroni), so that all of them hold
        together; at least 1.
    statistic : Location or Quantile
        What the claims are about.
    """

    margin: Margin = field(default_factory=Margin)
    family: int = 1
    statistic: Statistic = Location.TYPICAL

    @property
    def error(self) -> float:
        """Error rate of each claim of one comparison."""
        return (1 - self.margin.level) / self.family

    @property
    def bound(self) -> float:
        """Give the logarithm of the margin."""
        return math.log1p(self.margin.relative)

    def first_look(self, blocks_max: int) -> int:
        """Give the smallest number of blocks at which a first look has limits on both sides.

        Parameters
        ----------
        blocks_max : int
            Blocks of the largest experiment. Where it is too small for any look, the number that a single
            look at its end needs. 1 for a location: it is judged from any number on.

        Examples
        --------
        >>> [Design(statistic=Quantile(99)).first_look(most) for most in (368, 1000, 10_000)]
        [368, 427, 599]
        """
        if not isinstance(self.statistic, Quantile):
            return 1
        share = self.statistic.share

        def has_limits(blocks: int) -> bool:
            p_tail = pocock_spending(self.error / 2, blocks / blocks_max)
            return blocks >= fewest_blocks(share, p_tail)

        low, high = 0, max(fewest_blocks(share, self.error / 2), FEWEST_UNITS)
        if not has_limits(blocks_max):
            return high
        high = blocks_max
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if has_limits(middle) else (middle, high)
        return max(high, FEWEST_UNITS)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known at one look.

    Parameters
    ----------
    blocks : int
        Blocks in which both sides ran.
    fraction : float
        Part of the largest experiment that is over.
    ratio, low, high : float
        Second over first with the interval that holds at all looks together; infinite (0 on the lower side)
        where so few blocks allow none.
    narrow : tuple of float
        The interval of the two one-sided tests, as ratios.
    mean_ratio : float
        Ratio of geometric means, for comparison with `ratio`.
    verdict : Verdict
        About the second side.
    is_settled : bool
        Whether more runs cannot be expected to say more that matters.
    further_blocks : int or None
        Further blocks that would settle it if the spread stays; ``None`` if settled or out of reach.
    has_unlike_spells : bool
        Of a quantile: whether the data contradict everything that its interval may assume.
    """

    blocks: int
    fraction: float
    ratio: float
    low: float
    high: float
    narrow: Limits
    mean_ratio: float
    verdict: Verdict
    is_settled: bool
    further_blocks: int | None
    has_unlike_spells: bool = False

    def turned(self) -> Look:
        """Give what is known of the first side over the second."""
        return replace(
            self,
            ratio=_inverse(self.ratio),
            low=_inverse(self.high),
            high=_inverse(self.low),
            narrow=(_inverse(self.narrow[1]), _inverse(self.narrow[0])),
            mean_ratio=_inverse(self.mean_ratio),
            verdict=_TURNED.get(self.verdict, self.verdict),
        )

    @property
    def log_width(self) -> float:
        """Width of the interval of the ratio on the log scale."""
        return math.log(self.high / self.low) if 0 < self.low <= self.high < math.inf else math.inf


_TURNED: Final = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}


def _inverse(ratio: float) -> float:
    """Give the reciprocal, also of the ends of the range of ratios."""
    return 1 / ratio if ratio else math.inf


_UNSEEN: Final = Look(
    blocks=0,
    fraction=0.0,
    ratio=math.nan,
    low=0.0,
    high=math.inf,
    narrow=(0.0, math.inf),
    mean_ratio=math.nan,
    verdict=Verdict.NA,
    is_settled=False,
    further_blocks=None,
)


class SequentialComparison:
    """One comparison over its looks.

    Every look spends a part of the error of the difference (two-sided) and of the equivalence (one-sided)
    as `pocock_spending` says. The intervals are repeated confidence intervals: they hold at all looks
    together, so they hold at the one at which somebody stops, for whatever reason.

    Parameters
    ----------
    design : Design
        Promises.

    References
    ----------
    .. [1] Jennison & Turnbull (2000), Group Sequential Methods, ch. 9 (repeated confidence intervals) and
       ch. 4.4 (bounds of tests whose statistic is not normal: by their significance level).
    .. [2] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15 (two one-sided tests).

    Examples
    --------
    >>> import numpy as np
    >>> comparison = SequentialComparison(Design())
    >>> found = comparison.look(np.full(12, np.log(1.5)), fraction=1.0)
    >>> found.verdict.value, round(found.ratio, 2)
    ('slower', 1.5)
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.looks: list[Look] = []

    def look(self, blocks: NDArray[np.float64], fraction: float) -> Look:
        """Look at all blocks so far.

        Parameters
        ----------
        blocks : ndarray
            Shape (n_blocks,): logarithm of second over first in each block; finite. For a quantile
            (n_blocks, 2): the values of both sides, positive and finite. More blocks than at the look before.
        fraction : float
            Part of the largest experiment that is over, in [0, 1]; 1 at the last look, beyond that of one
            that goes on (`staged_spending`). It may depend on the clock and on the number of runs, never on
            which side was slower.

        Raises
        ------
        AnalysisError
            If there are no more blocks than at the look before.
        """
        spend = max(fraction, self.looks[-1].fraction if self.looks else 0.0)
        if len(blocks) == 0:
            return _judge(self.design, blocks, (0.0, 0.0), spend)
        # Nothing is kept until the look is whole: who interrupts at any moment has it made again.
        information = (*(float(look.blocks) for look in self.looks), float(len(blocks)))
        fractions = (*(look.fraction for look in self.looks), spend)
        spent = tuple(staged_spending(self.design.error, fraction) for fraction in fractions)
        # Each of the two one-sided tests has the whole error: only one of them can err.
        tails = (
            _tail(crossing_bounds(information, spent, 2)[-1]),
            _tail(crossing_bounds(information, spent, 1)[-1]),
        )
        found = _judge(self.design, blocks, tails, spend)
        self.looks.append(found)
        return found


def fixed_look(design: Design, blocks: NDArray[np.float64]) -> Look:
    """Judge a sample that was not looked at before and will not grow.

    Parameters
    ----------
    design : Design
        Promises.
    blocks : ndarray
        As for `SequentialComparison.look`.
    """
    tails = (design.error / 2, design.error)
    return _judge(design, blocks, tails, 1.0)


def _tail(bound: float) -> float:
    """Give the error on one side of a bound."""
    return float(scipy.special.ndtr(-bound))


def _judge(design: Design, blocks: NDArray[np.float64], tails: tuple[float, float], fraction: float) -> Look:
    size = len(blocks)
    if size == 0:
        return _UNSEEN
    place = _place(design.statistic, blocks)
    low, high = _interval(design.statistic, blocks, tails[0])
    narrow = _interval(design.statistic, blocks, tails[1])
    verdict = verdict_of_limits(design, size, (low, high), narrow)
    is_settled = is_settled_by(design, verdict, (low, high))
    further = None if is_settled else _further_blocks(design, size, place, ((low, high), narrow, tails[0]))
    if not is_settled and math.isinf(high):
        further = _first_interval(design.statistic, size, tails[0])
    return Look(
        blocks=size,
        fraction=fraction,
        ratio=math.exp(place),
        low=_exp(low),
        high=_exp(high),
        narrow=(_exp(narrow[0]), _exp(narrow[1])),
        mean_ratio=math.exp(mean(blocks if blocks.ndim == 1 else np.log(blocks[:, 1] / blocks[:, 0]))),
        verdict=verdict,
        is_settled=is_settled,
        further_blocks=further,
        has_unlike_spells=isinstance(design.statistic, Quantile)
        and has_unlike_spells(blocks, design.statistic.share, tails[0]),
    )


def _exp(value: float) -> float:
    return math.exp(value) if value < math.inf else math.inf


def _place(statistic: Statistic, blocks: NDArray[np.float64]) -> float:
    if isinstance(statistic, Quantile):
        first, second = (quantile_of(np.sort(blocks[:, side]), statistic.share) for side in (0, 1))
        return math.log(second / first)
    return pseudomedian(blocks) if statistic is Location.TYPICAL else mean(blocks)


def _interval(statistic: Statistic, blocks: NDArray[np.float64], p_tail: float) -> Limits:
    if p_tail <= 0:
        return -math.inf, math.inf
    if isinstance(statistic, Quantile):
        return quantile_ratio_interval(blocks, statistic.share, p_tail)
    if statistic is Location.TYPICAL:
        return pseudomedian_interval(blocks, p_tail)
    size = blocks.size
    if size < 2:  # noqa: PLR2004 - one value has no spread
        return -math.inf, math.inf
    half = -float(scipy.special.stdtrit(size - 1, p_tail)) * standard_deviation(blocks) / math.sqrt(size)
    middle = mean(blocks)
    return middle - half, middle + half


def verdict_of_limits(design: Design, size: int, limits: Limits, narrow: Limits) -> Verdict:
    """Give the verdict; equivalence goes first, as a sure difference inside the margin is not relevant."""
    if size < FEWEST_UNITS:
        return Verdict.DESCRIPTIVE
    if -design.bound < narrow[0] and narrow[1] < design.bound:
        return Verdict.EQUIVALENT
    if isinstance(design.statistic, Quantile) and math.isinf(limits[1]):
        return Verdict.DESCRIPTIVE
    if limits[0] > 0:
        return Verdict.SLOWER
    return Verdict.FASTER if limits[1] < 0 else Verdict.INCONCLUSIVE


def is_settled_by(design: Design, verdict: Verdict, limits: Limits) -> bool:
    """Whether the verdict stands and, for a difference, its size is known well enough beside the margin."""
    if verdict is Verdict.EQUIVALENT:
        return True
    if verdict not in {Verdict.SLOWER, Verdict.FASTER}:
        return False
    is_beyond = limits[0] > design.bound or limits[1] < -design.bound
    return is_beyond or (limits[1] - limits[0]) / 2 <= NARROW * design.bound


def _first_interval(statistic: Statistic, size: int, p_tail: float) -> int | None:
    """Give the further blocks from which on there is an interval at all."""
    if p_tail <= 0:
        return None
    if isinstance(statistic, Quantile):
        fewest = fewest_blocks(statistic.share, p_tail)
    else:
        fewest = math.ceil(-math.log2(p_tail)) if statistic is Location.TYPICAL else 2
    return max(fewest, FEWEST_UNITS, size + 1) - size


def _further_blocks(
    design: Design, size: int, place: float, intervals: tuple[Limits, Limits, float]
) -> int | None:
    """Give the further blocks after which it would probably be settled, if the spread stays.

    The true place is not known better than its interval says: of the places it may have, so many blocks
    settle nine of ten. The intervals are taken to be as wide for their size as now.
    """
    wide, narrow, p_tail = intervals
    half, slim = (wide[1] - wide[0]) / 2, (narrow[1] - narrow[0]) / 2
    if not (math.isfinite(half) and half > 0 and slim > 0):
        return None
    deviation = half / -float(scipy.special.ndtri(p_tail))
    places = [place + deviation * float(scipy.special.ndtri((at + 0.5) / _PLACES)) for at in range(_PLACES)]
    rooms = sorted(_room(design.bound, abs(each), half / slim) for each in places)
    room = rooms[round((1 - SETTLED_SHARE) * (_PLACES - 1))]
    needed = math.ceil(size * (half / room) ** 2) - size
    return None if needed > MOST_FURTHER_UNITS else max(needed, 1)


def _room(bound: float, distance: float, ratio: float) -> float:
    """Give the largest half-width of the interval that settles a true place at a distance from 0.

    By the rules of `verdict_of_limits` and `is_settled_by`: the narrow interval, smaller by `ratio`, lies
    inside the margin; the wide one is beside 0 and at most `NARROW` of the margin; or it lies beyond it.
    """
    return max(ratio * (bound - distance), min(distance, NARROW * bound), distance - bound)
