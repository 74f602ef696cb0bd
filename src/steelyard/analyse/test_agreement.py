from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.agreement import Agreement, CellValues, agreements
from steelyard.analyse.equivalence import Margin

if TYPE_CHECKING:
    from collections.abc import Sequence

MARGIN = Margin(0.05)
SPREAD = np.array([-0.004, -0.001, 0.0, 0.002, 0.003])


def cell(name: str, mean: float, spread: Sequence[float] | None = None) -> CellValues:
    deviations = SPREAD if spread is None else np.asarray(spread)
    return CellValues({"program": name}, "wall", "ns", mean * (1 + deviations))


def answers(first: Sequence[CellValues], second: Sequence[CellValues]) -> dict[str, Agreement]:
    return {each.levels["program"]: each.agreement for each in agreements(first, second, MARGIN)}


def test_a_cell_within_the_margin_agrees_and_one_beyond_has_moved() -> None:
    first = [cell("a", 100.0), cell("b", 100.0)]
    assert answers(first, [cell("a", 101.0), cell("b", 120.0)]) == {
        "a": Agreement.AGREED,
        "b": Agreement.MOVED,
    }


@pytest.mark.parametrize("factor", [1.05, 1 / 1.05])
def test_a_difference_as_large_as_the_margin_is_undecided(factor: float) -> None:
    assert answers([cell("a", 100.0)], [cell("a", 100.0 * factor)]) == {"a": Agreement.UNDECIDED}


def test_a_wide_spread_and_few_repetitions_are_undecided() -> None:
    wide = [-0.3, -0.1, 0.0, 0.2, 0.3]
    first = [cell("wide", 100.0), cell("few", 100.0)]
    second = [cell("wide", 103.0, wide), cell("few", 100.0, [0.001, -0.001])]
    found = agreements(first, second, MARGIN)
    assert [each.agreement for each in found] == [Agreement.UNDECIDED] * 2
    assert found[1].ratio is not None
    assert found[1].ratio.units == (5, 2)
    assert "fewer than 3" in found[1].reason


def test_an_effect_that_turns_round_flips_the_cell_and_not_its_baseline() -> None:
    first = [cell("native", 100.0), cell("container", 120.0)]
    second = [cell("native", 100.0), cell("container", 80.0)]
    found = agreements(first, second, MARGIN)
    assert [each.agreement for each in found] == [Agreement.AGREED, Agreement.FLIPPED]
    (effect,) = found[1].turned
    assert (effect.factor, effect.baseline) == ("program", "native")
    assert effect.first.low > 1 > effect.second.high


def test_an_effect_within_the_margin_that_turns_round_is_no_flip() -> None:
    first = [cell("native", 100.0), cell("container", 103.0)]
    second = [cell("native", 100.0), cell("container", 97.0)]
    assert Agreement.FLIPPED not in answers(first, second).values()


def test_a_cell_of_one_result_alone_is_listed() -> None:
    assert answers([cell("a", 1.0), cell("b", 1.0)], [cell("c", 1.0), cell("a", 1.0)]) == {
        "a": Agreement.AGREED,
        "b": Agreement.ONLY_FIRST,
        "c": Agreement.ONLY_SECOND,
    }


def test_two_results_of_the_same_process_are_rarely_called_different() -> None:
    """Of cells without any difference, almost none may be said to have moved, however many there are."""
    generator = np.random.default_rng(7)
    sides = [
        [CellValues({"cell": str(at)}, "wall", "ns", generator.normal(100, 8, 5)) for at in range(400)]
        for _ in range(2)
    ]
    found = [each.agreement for each in agreements(sides[0], sides[1], MARGIN)]
    assert found.count(Agreement.MOVED) <= 2
    assert found.count(Agreement.FLIPPED) <= 2
