from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.analyse.comparison.interim_schedule import Extent, next_look


@given(st.integers(1, 10_000))
def test_looks_ascend_and_are_not_many(blocks: int) -> None:
    assert blocks < next_look(blocks) <= 1.25 * blocks + 1


@given(st.integers(0, 2000), st.floats(0, 200), st.integers(0, 100), st.floats(0, 100))
def test_the_fraction_grows_and_stays_a_fraction(
    blocks: int, elapsed_s: float, more: int, later_s: float
) -> None:
    extent = Extent(10, 1000, 60.0)
    before, after = extent.fraction(blocks, elapsed_s), extent.fraction(blocks + more, elapsed_s + later_s)
    assert 0 <= before <= after <= 1


@pytest.mark.parametrize(
    ("is_strict", "blocks", "elapsed_s", "next_block_s", "is_spent"),
    [
        (True, 3, 59.0, 2.0, True),
        (True, 3, 57.0, 2.0, False),
        (False, 3, 100.0, 2.0, False),
        (False, 10, 59.0, 2.0, True),
        (True, 1000, 0.0, 0.0, True),
        (False, 1000, 0.0, 0.0, True),
    ],
)
def test_a_stated_budget_is_kept_and_the_usual_one_allows_the_first_look(
    is_strict: bool,  # noqa: FBT001
    blocks: int,
    elapsed_s: float,
    next_block_s: float,
    is_spent: bool,  # noqa: FBT001
) -> None:
    extent = Extent(10, 1000, 60.0, is_strict=is_strict)
    assert extent.is_spent(blocks, elapsed_s, next_block_s) is is_spent
