"""Whether two results agree cell by cell: within a margin, beyond it, or not to be said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.analyse.intervals.run_length import ratio_test_of_runs
from steelyard.units import is_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.equivalence import Margin, RatioTest

    Units = NDArray[np.float64] | Sequence[NDArray[np.float64]]

FEWEST_BLOCKS: Final = 3
"""Fewer repetitions on a side leave a cell undecided: own choice; the spread of two says next to nothing."""


ACROSS: Final = "the interval reaches across the margin"
REPETITION: Final = "repetition"
LAUNCH: Final = "launch"
PLURALS: Final = {REPETITION: "repetitions", LAUNCH: "launches"}


class Agreement(StrEnum):
    """What the second result says of a cell, against the first."""

    AGREED = "agreed"
    """Equivalent within the margin."""
    FLIPPED = "flipped"
    """What a factor does to it has turned round: higher in one result, lower in the other."""
    MOVED = "moved"
    """Different by more than the margin."""
    UNDECIDED = "undecided"
    """Neither is sure enough."""
    ONLY_FIRST = "only in the first"
    ONLY_SECOND = "only in the second"


@dataclass(frozen=True, slots=True)
class CellValues:
    """One metric of one cell of a result.

    Parameters
    ----------
    levels : dict
        Level of each factor.
    metric, unit : str
        What was measured.
    values : sequence of ndarray
        What each repetition measured, in the order of measurement: repetitions are what is independent. A
        single array, shape (n_blocks,), holds one value of each.
    launches : sequence of ndarray or None
        The same of each launch, where launches inside a repetition are independent of each other; they are
        what is compared where a side has too few repetitions.
    """

    levels: Mapping[str, str]
    metric: str
    unit: str
    values: Units
    launches: Units | None = None

    @property
    def key(self) -> tuple[tuple[tuple[str, str], ...], str, str]:
        """What the same cell of another result has too, in whatever order it names its factors."""
        return _key(self.levels, self.metric, self.unit)


def _key(levels: Mapping[str, str], metric: str, unit: str) -> tuple[tuple[tuple[str, str], ...], str, str]:
    return tuple(sorted(levels.items())), metric, unit


@dataclass(frozen=True, slots=True)
class Turned:
    """An effect of a factor that two results answer in opposite ways.

    Parameters
    ----------
    factor, baseline : str
        The factor, and the level the cell's own is compared with.
    first, second : RatioTest
        Cell over baseline in the first and the second result.
    """

    factor: str
    baseline: str
    first: RatioTest
    second: RatioTest


@dataclass(frozen=True, slots=True)
class CellAgreement:
    """One metric of one cell in two results.

    Parameters
    ----------
    levels, metric, unit
        As in `CellValues`.
    agreement : Agreement
        The answer.
    ratio : RatioTest or None
        Second over first; ``None`` where only one result has the cell.
    turned : tuple of Turned
        Effects that turned round.
    reason : str
        Why it is undecided; empty otherwise.
    remark : str
        Which values of a unit count; empty where all do.
    level : str
        What the units of the ratio are: ``repetition`` or ``launch``.
    direction : int
        Where the ratio surely lies: above the margin 1, below it -1, else 0.
    """

    levels: Mapping[str, str]
    metric: str
    unit: str
    agreement: Agreement
    ratio: RatioTest | None = None
    turned: tuple[Turned, ...] = ()
    reason: str = ""
    remark: str = ""
    level: str = REPETITION
    direction: int = 0

    @property
    def is_guaranteed(self) -> bool:
        """Whether the interval keeps its level between sessions too, of which launches of one say nothing."""
        return self.ratio is not None and self.ratio.is_guaranteed and self.level == REPETITION

    @property
    def is_worse(self) -> bool:
        """Whether the second result is slower or larger by more than the margin, surely."""
        is_changed = self.agreement in {Agreement.MOVED, Agreement.FLIPPED}
        return is_changed and self.direction == (-1 if is_rate(self.unit) else 1)


def agreements(
    first: Sequence[CellValues], second: Sequence[CellValues], margin: Margin
) -> tuple[CellAgreement, ...]:
    """Lay two results over each other cell by cell.

    A cell agrees where two one-sided tests find the ratio of both results within the margin, and has moved
    where it is found beyond it; both with the p-values of all cells corrected together, so that the share of
    wrong answers among those of a kind stays below 1 - level. It has flipped where a factor's effect on it -
    against the same cell with the factor's first level - lies surely above 1 in one result and surely below
    in the other, each by its interval and by more than the margin.

    Parameters
    ----------
    first, second : sequence of CellValues
        Cells of each result; the order of the first one's levels says which level is a factor's first.
    margin : Margin
        Largest ratio that counts as agreement, and how surely.

    Returns
    -------
    tuple of CellAgreement
        In the order of the first result, then what only the second has.

    References
    ----------
    .. [1] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15 (two one-sided tests).
    .. [2] Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57.
    """
    others = {cell.key: cell for cell in second}
    both = [cell for cell in first if cell.key in others]
    pairs = [_Pair.of(cell, others[cell.key], margin) for cell in both]
    within = benjamini_hochberg([pair.test.p_equivalent for pair in pairs])
    beyond = benjamini_hochberg([pair.p_beyond(margin) for pair in pairs])
    answers = {
        cell.key: _answer(cell, pair, (p_within, p_beyond), margin)
        for cell, pair, p_within, p_beyond in zip(both, pairs, within, beyond, strict=True)
    }
    turned = {key: tuple(effects) for key, effects in _turned(first, second, margin)}
    found = []
    for cell in first:
        answer = answers.get(cell.key)
        if answer is None:
            answer = CellAgreement(cell.levels, cell.metric, cell.unit, Agreement.ONLY_FIRST)
        elif cell.key in turned:
            answer = replace(answer, agreement=Agreement.FLIPPED, turned=turned[cell.key], reason="")
        found.append(answer)
    known = {cell.key for cell in first}
    found += [
        CellAgreement(cell.levels, cell.metric, cell.unit, Agreement.ONLY_SECOND)
        for cell in second
        if cell.key not in known
    ]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The units of a cell in two results, and the test of their ratio."""

    first: Sequence[NDArray[np.float64]]
    second: Sequence[NDArray[np.float64]]
    level: str
    test: RatioTest
    remark: str

    @classmethod
    def of(cls, first: CellValues, second: CellValues, margin: Margin) -> _Pair:
        """Take repetitions as units where both sides have enough of them, else launches if they may be."""
        level, sides = REPETITION, (first.values, second.values)
        if min(map(len, sides)) < FEWEST_BLOCKS:
            launches = (first.launches, second.launches)
            if launches[0] is not None and launches[1] is not None:
                level, sides = LAUNCH, (launches[0], launches[1])
        units = [[np.atleast_1d(unit) for unit in side] for side in sides]
        test, remark = ratio_test_of_runs(units[0], units[1], margin)
        return cls(
            units[0], units[1], level, test, remark.replace("runs", PLURALS[level]).replace("run", level)
        )

    @property
    def fewest(self) -> int:
        """Units that each side needs for an answer."""
        return FEWEST_BLOCKS if self.level == REPETITION else FEWEST_UNITS

    @property
    def is_enough(self) -> bool:
        """Whether both sides have as many."""
        return min(self.test.units) >= self.fewest

    @property
    def lack(self) -> str:
        """Why they are not enough."""
        unusable = len(self.first) + len(self.second) - sum(self.test.units)
        if min(len(self.first), len(self.second)) >= self.fewest and unusable:
            return f"{unusable} values are not positive, and have no ratio"
        return f"fewer than {self.fewest} {PLURALS[self.level]} on a side"

    def p_beyond(self, margin: Margin) -> float:
        """Give the p-value that the ratio is within the margin: of the test at its nearer limit.

        It is two-sided, because the data choose the limit: without a difference, either may be the nearer.
        """
        bound = 1 + margin.relative
        if not self.test.ratio > 0 or 1 / bound <= self.test.ratio <= bound:
            return 1.0
        nearer = bound if self.test.ratio > bound else 1 / bound
        moved, _ = ratio_test_of_runs([unit * nearer for unit in self.first], self.second, margin)
        return moved.p_different

    def direction(self, margin: Margin) -> int:
        """Say which way the ratio surely goes by more than the margin: up 1, down -1, neither 0."""
        bound, test = 1 + margin.relative, self.test
        if not self.is_enough:
            return 0
        if test.low > 1 and test.ratio > bound:
            return 1
        return -1 if test.high < 1 and test.ratio < 1 / bound else 0


def _answer(cell: CellValues, pair: _Pair, p_values: tuple[float, float], margin: Margin) -> CellAgreement:
    within, beyond = p_values
    error = 1 - margin.level
    agreement, reason, direction = Agreement.UNDECIDED, ACROSS, pair.direction(margin)
    if not pair.is_enough:
        reason = pair.lack
    elif within < error:
        agreement, reason = Agreement.AGREED, ""
    elif beyond < error:
        agreement, reason = Agreement.MOVED, ""
        direction = 1 if pair.test.ratio > 1 else -1
    return CellAgreement(
        cell.levels,
        cell.metric,
        cell.unit,
        agreement,
        pair.test,
        reason=reason,
        remark=pair.remark,
        level=pair.level,
        direction=direction,
    )


def _turned(
    first: Sequence[CellValues], second: Sequence[CellValues], margin: Margin
) -> Iterator[tuple[tuple[object, ...], list[Turned]]]:
    """Give the cells with effects that turned round."""
    sides = [{cell.key: cell for cell in cells} for cells in (first, second)]
    levels: dict[str, dict[str, None]] = {}
    for cell in first:
        for factor, level in cell.levels.items():
            levels.setdefault(factor, {})[level] = None
    for cell in first:
        effects = []
        for factor, own in cell.levels.items():
            # The first level under which the cell exists with all other levels the same.
            for level in levels[factor]:
                key = _key({**cell.levels, factor: level}, cell.metric, cell.unit)
                if level == own or all(key in side and cell.key in side for side in sides):
                    break
            if level == own:
                continue
            pairs = [_Pair.of(side[key], side[cell.key], margin) for side in sides]
            if {pair.direction(margin) for pair in pairs} == {-1, 1}:
                effects.append(Turned(factor, level, pairs[0].test, pairs[1].test))
        if effects:
            yield cell.key, effects
