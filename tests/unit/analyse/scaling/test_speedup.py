from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.analyse.scaling.speedup import (
    FEWEST_TRIALS,
    draw_blocks,
    fit_slope,
    limits_of,
    ratio_of_medians,
    resampled_medians,
    shy_percent,
)

POSITIVE = st.floats(0.1, 1e6)


def test_one_program_against_itself_has_speed_up_one_exactly() -> None:
    values = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    found = ratio_of_medians(values, values, draw_blocks(5, resamples=200, seed=3))
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_a_disturbed_block_moves_both_sides_together() -> None:
    rng = np.random.default_rng(1)
    disturbance = rng.lognormal(0, 0.5, 15)
    draws = draw_blocks(15, resamples=500, seed=1)
    together = ratio_of_medians(2 * disturbance, disturbance, draws)
    assert together.low == pytest.approx(2) == together.high
    apart = ratio_of_medians(2 * rng.permutation(disturbance), disturbance, draws)
    assert apart.high - apart.low > 0.1


@given(st.lists(POSITIVE, min_size=2, max_size=12), st.floats(0.1, 10))
def test_the_ratio_follows_the_scale_and_lies_in_its_interval(values: list[float], scale: float) -> None:
    side = np.array(values)
    draws = draw_blocks(side.size, resamples=100, seed=1)
    found = ratio_of_medians(scale * side, side, draws)
    assert found.value == pytest.approx(scale)
    assert found.low <= found.value * (1 + 1e-9)
    assert found.high >= found.value * (1 - 1e-9)


def test_missing_trials_are_left_out_and_no_trial_is_no_number() -> None:
    draws = draw_blocks(4, resamples=50, seed=1)
    found = ratio_of_medians(np.array([4.0, np.nan, 4.0, 4.0]), np.full(4, 2.0), draws)
    assert (found.value, found.trials) == (2.0, 3)
    nothing = ratio_of_medians(np.full(4, np.nan), np.full(4, 2.0), draws)
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.low)
    one = ratio_of_medians(np.array([4.0]), np.array([2.0]), draw_blocks(1, resamples=9, seed=1))
    assert (one.value, one.is_guaranteed) == (2.0, False)
    assert math.isnan(one.low)


def test_medians_of_resamples_are_those_of_numpy() -> None:
    values = np.array([5.0, 1.0, 9.0])
    draws = np.array([[0, 0, 1], [2, 2, 2]])
    assert resampled_medians(values, draws).tolist() == [5.0, 9.0]


def test_limits_may_be_infinite_and_ignore_what_is_no_number() -> None:
    values = np.array([1.0, 2.0, np.inf, np.nan])
    assert limits_of(values) == (1.0, math.inf)
    assert all(math.isnan(end) for end in limits_of(np.array([np.nan])))


def test_the_interval_keeps_its_level_from_the_stated_number_of_trials() -> None:
    rng = np.random.default_rng(20)
    rounds, hits = 600, 0
    draws = draw_blocks(FEWEST_TRIALS, resamples=400, seed=5)
    for _ in range(rounds):
        numerator = 3 * rng.lognormal(0, 0.05, FEWEST_TRIALS)
        denominator = rng.lognormal(0, 0.05, FEWEST_TRIALS)
        found = ratio_of_medians(numerator, denominator, draws)
        hits += found.low <= 3 <= found.high
    # 93 % is the promise of every interval of this package; the bound allows for chance in 600 rounds.
    assert hits / rounds >= 0.93 - 2.33 * math.sqrt(0.93 * 0.07 / rounds)


def test_the_line_of_two_points_has_no_test_and_that_of_one_number_of_workers_no_slope() -> None:
    found = fit_slope(np.array([1.0, 2.0]), np.array([1.0, 1.9]))
    assert found.slope == pytest.approx(0.9)
    assert math.isnan(found.p_one)
    assert math.isnan(found.low)


def test_resampled_slopes_agree_with_least_squares_of_each_resample() -> None:
    workers = np.array([1.0, 2, 4, 8])
    resampled = np.random.default_rng(2).normal(workers, 0.1, (50, 4))
    slopes = [np.polyfit(workers, row, 1)[0] for row in resampled]
    found = fit_slope(workers, workers, resampled)
    assert (found.low, found.high) == pytest.approx(limits_of(np.array(slopes)))


def test_shy_is_negative_above_ideal() -> None:
    assert shy_percent([1.5, 2.2], 2).tolist() == pytest.approx([25, -10])
