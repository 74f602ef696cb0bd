from __future__ import annotations

from collections import Counter

import pytest

from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.model.plan import RANDOM_LAYOUT
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.modes.layout import layout_of, repeated_layout
from steelyard.studies.comparison.terms import (
    MEASURE,
    REPEAT,
    WARMUP,
    Mode,
    Terms,
    command_count,
    draw_plan,
    planned_terms,
)

DRAWN = Terms(layout=RANDOM_LAYOUT, extent=Extent(blocks_max=40))


def test_every_fifth_measured_block_comes_back_to_a_layout() -> None:
    plan = draw_plan(Commands(("a", "b")).field(), DRAWN)
    phases = Counter(plan.cells[batch.cell].levels["phase"] for batch in plan.batches)
    assert phases == {WARMUP: 2, MEASURE: 80, REPEAT: 20}
    assert command_count(plan) == 2
    assert [DRAWN.phase_of(block) for block in range(12)] == [
        WARMUP,
        *[MEASURE] * 4,
        REPEAT,
        *[MEASURE] * 4,
        REPEAT,
        MEASURE,
    ]
    terms, pairs = planned_terms(plan)
    assert (terms.layout, terms.planned_blocks, pairs) == (RANDOM_LAYOUT, plan.blocks, ((0, 1),))


def test_sides_lie_elsewhere_in_each_run_and_come_back_in_some() -> None:
    drawn = [layout_of(DRAWN, (side, 1, batch)) for batch in range(2, 400) for side in (0, 1)]
    sizes = {each.padding_bytes for each in drawn if each}
    assert all(each is not None and each.is_randomised for each in drawn)
    assert all(size % 16 == 0 and 0 <= size < 8192 for size in sizes)
    assert len(sizes) > 200
    assert len({size // 16 % 4 for size in sizes}) == 4
    repeats = [block for block in range(1, 60) if DRAWN.phase_of(block) == REPEAT]
    places = [[layout_of(DRAWN, (side, block, 7 * block)) for side in (0, 1)] for block in repeats]
    assert [repeated_layout(DRAWN, block) for block in repeats[:4]] == [0, 1, 0, 1]
    assert places[0] == places[2] == places[4]
    assert places[1] == places[3] != places[0]
    assert all(each is not None and not each.is_randomised for place in places for each in place)
    other = Terms(layout=RANDOM_LAYOUT, seed=2)
    assert layout_of(other, (0, repeats[0], 0)) != places[0][0]


def test_a_plan_that_asks_for_neither_is_the_one_of_before() -> None:
    plan = draw_plan(Commands(("a", "b")).field(), Terms())
    assert {"mode", "layout", "trial"}.isdisjoint(plan.options)
    assert layout_of(Terms(), (0, 5, 9)) is None
    terms, _ = planned_terms(plan)
    assert (terms.mode, terms.layout) == (Mode.TURNS, "host")


@pytest.mark.parametrize("mode", [Mode.DUET, Mode.TURNS])
def test_only_the_blocks_of_a_duet_are_swapped(mode: Mode) -> None:
    plan = draw_plan(Commands(("a", "b")).field(), Terms(mode=mode))
    firsts = [batch.cell % 2 for batch in plan.batches[::2]]
    is_swapped = [first != second for first, second in zip(firsts[::2], firsts[1::2], strict=False)]
    assert all(is_swapped) is (mode is Mode.DUET)
    assert 0.4 < sum(firsts[::2]) / len(firsts[::2]) < 0.6
