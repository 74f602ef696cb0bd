from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.comparison.agreement import Agreement, CellValues, agreements
from steelyard.analyse.comparison.equivalence import Margin

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


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.5])
@pytest.mark.parametrize("units", ["values", "launches"])
def test_a_pair_of_the_same_process_is_rarely_called_moved(spread: float, units: str) -> None:
    """One pair alone, as a gate has it: the margin is small beside the spread, and either may lie out."""
    generator = np.random.default_rng(11)
    moved = 0
    for _ in range(400):
        drawn = [np.exp(spread * generator.standard_normal(20)) for _ in range(2)]
        sides = [
            CellValues({}, "wall", "ns", one)
            if units == "values"
            else CellValues({}, "wall", "ns", one[:1], launches=one)
            for one in drawn
        ]
        (found,) = agreements(sides[:1], sides[1:], Margin(0.02))
        moved += found.agreement is Agreement.MOVED
    assert moved <= 0.065 * 400, "5 %, and two standard errors of 400 pairs"


def test_launches_are_units_only_where_repetitions_are_too_few() -> None:
    few, many = np.array([1.0, 1.01]), np.array([1.0, 1.01, 0.99])
    launches = np.linspace(0.99, 1.01, 20)
    for first, second, level in ((few, many, "launch"), (many, many, "repetition"), (few, few, "launch")):
        sides = [CellValues({}, "wall", "ns", values, launches=launches) for values in (first, second)]
        assert agreements(sides[:1], sides[1:], MARGIN)[0].level == level
    unknown = CellValues({}, "wall", "ns", few)
    assert agreements([unknown], [unknown], MARGIN)[0].reason == "fewer than 3 repetitions on a side"


def test_cells_are_found_whatever_the_order_of_their_factors() -> None:
    first = CellValues({"a": "1", "b": "2"}, "wall", "ns", 1 + SPREAD)
    second = CellValues({"b": "2", "a": "1"}, "wall", "ns", 1 + SPREAD)
    assert [each.agreement for each in agreements([first], [second], MARGIN)] == [Agreement.AGREED]


def test_values_that_have_no_ratio_are_said() -> None:
    zeros = CellValues({}, "collections", "count", np.zeros(10))
    (found,) = agreements([zeros], [zeros], MARGIN)
    assert found.agreement is Agreement.UNDECIDED
    assert found.reason == "20 values are not positive, and have no ratio"


@pytest.mark.parametrize("units", ["repetition", "launch"])
@pytest.mark.parametrize("sizes", [(2, 200), (1, 50), (200, 2)])
def test_the_same_program_has_rarely_moved_because_its_runs_are_longer(
    sizes: tuple[int, int], units: str
) -> None:
    wrong = 0
    for seed in range(60):  # 5 % are 3; more than 8 come in 0.4 % of cases
        generator = np.random.default_rng([3, seed])
        sides = []
        for size in sizes:
            runs = [generator.exponential(1.0, size) for _ in range(30)]
            few = CellValues({}, "wall", "ns", runs[:1], launches=runs)
            sides.append(few if units == "launch" else CellValues({}, "wall", "ns", runs))
        (found,) = agreements(sides[:1], sides[1:], Margin(0.02))
        assert found.ratio is not None
        assert found.level == units
        wrong += not found.ratio.low <= 1 <= found.ratio.high
        assert found.agreement is not Agreement.MOVED or not found.ratio.low <= 1 <= found.ratio.high
    assert wrong <= 8


def test_which_values_count_is_said_of_the_units_that_are_compared() -> None:
    generator = np.random.default_rng(1)
    sides = [[generator.exponential(1.0, size) for _ in range(12)] for size in (2, 40)]
    for level, cells in (
        ("repetition", [CellValues({}, "wall", "ns", side) for side in sides]),
        ("launch", [CellValues({}, "wall", "ns", side[:1], launches=side) for side in sides]),
    ):
        (found,) = agreements(cells[:1], cells[1:], MARGIN)
        plural = "launches" if level == "launch" else "repetitions"
        said = f"of every {level} only the first 2 values count: the {plural} hold 2 against 40 values"
        assert found.remark == said
    (equal,) = agreements(cells[:1], cells[:1], MARGIN)
    assert not equal.remark
