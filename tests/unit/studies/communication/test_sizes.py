from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import DesignError
from steelyard.studies.communication.sizes import (
    SizeLaw,
    SizePlan,
    decade_shares,
    doubling_levels,
    draw_operations,
    sampling_bias,
)

KINDS = ("pingpong", "stream", "send", "recv", "isend", "test")
MIXES = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 9), min_size=1).filter(
    lambda mix: any(mix.values())
)
RANGES = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000_000)).map(
    lambda pair: (min(pair), max(pair))
)


@st.composite
def size_plans(draw: st.DrawFn) -> SizePlan:
    low, high = draw(RANGES)
    law = draw(st.sampled_from(SizeLaw))
    if law is SizeLaw.DOUBLING:
        high = max(high, 2 * low, 1)
    return SizePlan(law, low, high, draw(st.integers(1, 400)), draw(MIXES))


@given(size_plans(), st.integers(0, 2**40), st.integers(0, 20))
def test_the_same_seed_gives_the_same_list_within_its_limits(
    plan: SizePlan, seed: int, replication: int
) -> None:
    drawn = draw_operations(plan, seed, replication)
    assert drawn.csv() == draw_operations(plan, seed, replication).csv()
    assert len(drawn.names) == len(drawn.sizes) == plan.operations
    assert plan.smallest <= drawn.sizes.min() <= drawn.sizes.max() <= plan.largest


@given(size_plans(), st.integers(0, 99))
def test_kinds_share_the_list_as_their_weights_say(plan: SizePlan, seed: int) -> None:
    counts = Counter(draw_operations(plan, seed, 0).names)
    total = sum(plan.mix.values())
    for name, weight in plan.mix.items():
        assert abs(counts[name] - plan.operations * weight / total) < 1


@given(st.integers(0, 5000), st.integers(0, 10_000_000), st.integers(1, 300))
def test_doubling_uses_every_level_as_often_as_the_others(low: int, span: int, count: int) -> None:
    plan = SizePlan(SizeLaw.DOUBLING, low, max(2 * low, 1) + span, count, {"send": 1})
    counts = Counter(draw_operations(plan, 5, 1).sizes.tolist())
    levels = doubling_levels(plan.smallest, plan.largest)
    assert set(counts) <= set(levels.tolist())
    used = [counts[level] for level in levels.tolist()]
    assert max(used) - min(used) <= 1


def test_replications_are_lists_of_their_own() -> None:
    plan = SizePlan(SizeLaw.LOG_UNIFORM, 1, 10**6, 200, {"pingpong": 3, "send": 1})
    first, second = (draw_operations(plan, 1, replication) for replication in (0, 1))
    assert not np.array_equal(first.sizes, second.sizes)
    assert first.names != second.names


def test_log_uniform_sizes_fill_every_decade_alike_and_uniform_ones_do_not() -> None:
    # 6000 draws: a share of 1/6 has a standard deviation of 0.005; five of them are allowed.
    log, uniform = (
        decade_shares(draw_operations(SizePlan(law, 1, 999_999, 6000, {"send": 1}), 3, 0).sizes)
        for law in (SizeLaw.LOG_UNIFORM, SizeLaw.UNIFORM)
    )
    assert all(abs(each.share - 1 / 6) < 0.025 for each in log)
    assert uniform[-1].share > 0.88


def test_sizes_from_zero_on_hold_empty_messages() -> None:
    drawn = draw_operations(SizePlan(SizeLaw.LOG_UNIFORM, 0, 1000, 500, {"send": 1}), 1, 0)
    assert drawn.sizes.min() == 0


def test_order_says_nothing_about_size() -> None:
    drawn = draw_operations(SizePlan(SizeLaw.LOG_UNIFORM, 1, 10**7, 5000, {"pingpong": 1}), 11, 0)
    logs = np.log(drawn.sizes)
    # Correlation of neighbours of an independent sequence: sd 1/sqrt(5000) = 0.014.
    assert abs(np.corrcoef(logs[1:], logs[:-1])[0, 1]) < 0.07


@pytest.mark.parametrize(
    "wrong",
    [
        {"smallest": -1},
        {"smallest": 9, "largest": 8},
        {"largest": 1 << 40},
        {"operations": 0},
        {"mix": {"send": 0}},
        {"mix": {"send": -1, "recv": 2}},
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, object]) -> None:
    fine: dict[str, object] = {
        "law": SizeLaw.UNIFORM,
        "smallest": 0,
        "largest": 8,
        "operations": 1,
        "mix": {"send": 1},
    }
    with pytest.raises(DesignError):
        SizePlan(**{**fine, **wrong})  # type: ignore[arg-type]


def test_a_range_without_a_power_of_two_is_refused() -> None:
    with pytest.raises(DesignError, match="no power of two from 5 to 7"):
        doubling_levels(5, 7)


def test_every_law_says_what_it_hides() -> None:
    assert len({sampling_bias(law) for law in SizeLaw}) == len(SizeLaw)


def test_a_warm_up_stands_before_the_list_and_leaves_it_as_it_is() -> None:
    few = SizePlan(SizeLaw.LOG_UNIFORM, 1, 1000, 40, {"pingpong": 3, "send": 1})
    plain, warmed = draw_operations(few, 1, 0), draw_operations(few, 1, 0, warm_up=12)
    assert warmed.names[12:] == plain.names
    assert warmed.sizes[12:].tolist() == plain.sizes.tolist()
    assert Counter(warmed.names[:12]) == {"pingpong": 9, "send": 3}
