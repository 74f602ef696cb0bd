"""Whether two results agree cell by cell: within a margin, beyond it, or not to be said."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.analyse.equivalence import Margin, RatioTest, ratio_test
from steelyard.analyse.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

FEWEST_BLOCKS: Final = 3
"""Fewer repetitions on a side leave a cell undecided: own choice; the spread of two says next to nothing."""


ACROSS: Final = "the interval reaches across the margin"


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
    values : ndarray
        Shape (n_blocks,): one value for each repetition, which is what is independent.
    """

    levels: Mapping[str, str]
    metric: str
    unit: str
    values: NDArray[np.float64]

    @property
    def key(self) -> tuple[tuple[tuple[str, str], ...], str, str]:
        """What the same cell of another result has too."""
        return tuple(self.levels.items()), self.metric, self.unit


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
    """

    levels: Mapping[str, str]
    metric: str
    unit: str
    agreement: Agreement
    ratio: RatioTest | None = None
    turned: tuple[Turned, ...] = ()
    reason: str = ""


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
    tests = [ratio_test(cell.values, others[cell.key].values, margin) for cell in both]
    decided = [min(test.units) >= FEWEST_BLOCKS for test in tests]
    within = benjamini_hochberg([test.p_equivalent for test in tests])
    beyond = benjamini_hochberg(
        [_p_beyond(cell, others[cell.key], test, margin) for cell, test in zip(both, tests, strict=True)]
    )
    answers = {
        cell.key: _answer(cell, test, (p_within, p_beyond), margin, is_decided=enough)
        for cell, test, p_within, p_beyond, enough in zip(both, tests, within, beyond, decided, strict=True)
    }
    turned = {key: tuple(effects) for key, effects in _turned(first, second, margin)}
    found = []
    for cell in first:
        answer = answers.get(cell.key)
        if answer is None:
            answer = CellAgreement(cell.levels, cell.metric, cell.unit, Agreement.ONLY_FIRST)
        elif cell.key in turned:
            answer = CellAgreement(
                cell.levels, cell.metric, cell.unit, Agreement.FLIPPED, answer.ratio, turned[cell.key]
            )
        found.append(answer)
    known = {cell.key for cell in first}
    found += [
        CellAgreement(cell.levels, cell.metric, cell.unit, Agreement.ONLY_SECOND)
        for cell in second
        if cell.key not in known
    ]
    return tuple(found)


def _p_beyond(first: CellValues, second: CellValues, test: RatioTest, margin: Margin) -> float:
    """Give the p-value that the ratio is within the margin: a one-sided test at the margin's nearer limit."""
    bound = 1 + margin.relative
    if not test.ratio > 0 or 1 / bound <= test.ratio <= bound:
        return 1.0
    nearer = bound if test.ratio > bound else 1 / bound
    return ratio_test(first.values * nearer, second.values, margin).p_different / 2


def _answer(
    cell: CellValues,
    test: RatioTest,
    p_values: tuple[float, float],
    margin: Margin,
    *,
    is_decided: bool,
) -> CellAgreement:
    within, beyond = p_values
    error = 1 - margin.level
    agreement, reason = Agreement.UNDECIDED, ACROSS
    if not is_decided:
        reason = f"fewer than {FEWEST_BLOCKS} repetitions on a side"
    elif within < error:
        agreement, reason = Agreement.AGREED, ""
    elif beyond < error:
        agreement, reason = Agreement.MOVED, ""
    return CellAgreement(cell.levels, cell.metric, cell.unit, agreement, test, reason=reason)


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
                baseline = ({**cell.levels, factor: level}, cell.metric, cell.unit)
                key = (tuple(baseline[0].items()), *baseline[1:])
                if level == own or all(key in side and cell.key in side for side in sides):
                    break
            if level == own:
                continue
            tests = [ratio_test(side[key].values, side[cell.key].values, margin) for side in sides]
            if {_direction(test, margin) for test in tests} == {-1, 1}:
                effects.append(Turned(factor, level, tests[0], tests[1]))
        if effects:
            yield cell.key, effects


def _direction(test: RatioTest, margin: Margin) -> int:
    """Say which way an effect surely goes by more than the margin: up 1, down -1, neither 0."""
    bound = 1 + margin.relative
    if min(test.units) < FEWEST_BLOCKS:
        return 0
    if test.low > 1 and test.ratio > bound:
        return 1
    return -1 if test.high < 1 and test.ratio < 1 / bound else 0
