from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from steelyard.design.blocks import draw_batches
from steelyard.design.seeds import Purpose, generator
from steelyard.errors import DesignError


def test_each_cell_occurs_exactly_once_in_each_block() -> None:
    batches = draw_batches([3, 5, 8, 9], blocks=7, seed=11)
    for block in range(7):
        assert sorted(batch.cell for batch in batches if batch.block == block) == [3, 5, 8, 9]
    assert [batch.number for batch in batches] == list(range(28))


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    cells = range(50)
    assert draw_batches(cells, blocks=2, seed=1) == draw_batches(cells, blocks=2, seed=1)
    assert draw_batches(cells, blocks=2, seed=1) != draw_batches(cells, blocks=2, seed=2)


def test_more_blocks_do_not_change_the_earlier_ones() -> None:
    assert draw_batches(range(9), blocks=5, seed=4)[:18] == draw_batches(range(9), blocks=2, seed=4)


def test_the_order_is_the_documented_one() -> None:
    # A frozen order: plans of older versions must stay what they are.
    assert [batch.cell for batch in draw_batches(range(6), blocks=1, seed=1)] == FROZEN_ORDER
    sequence = np.random.SeedSequence(1, spawn_key=(1, 0))
    expected = np.random.Generator(np.random.PCG64(sequence)).permutation(6)
    assert list(expected) == FROZEN_ORDER


FROZEN_ORDER = [0, 4, 1, 2, 3, 5]


def test_every_order_is_about_equally_likely() -> None:
    orders = Counter(
        tuple(batch.cell for batch in draw_batches(range(3), blocks=1, seed=seed)) for seed in range(600)
    )
    assert len(orders) == 6
    # 100 expected each; 5 standard deviations of a binomial count
    assert all(50 < count < 150 for count in orders.values())


def test_streams_of_different_purposes_differ() -> None:
    first, second = (generator(1, purpose).integers(1 << 60) for purpose in list(Purpose)[:2])
    assert first != second


@pytest.mark.parametrize(("cells", "blocks"), [([], 1), ([1, 1], 1), ([1], 0)])
def test_an_impossible_order_is_refused(cells: list[int], blocks: int) -> None:
    with pytest.raises(DesignError):
        draw_batches(cells, blocks=blocks, seed=1)
