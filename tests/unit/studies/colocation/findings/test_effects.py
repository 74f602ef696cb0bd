from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.studies.colocation.findings.effects import (
    ENOUGH_TRIALS,
    MEAN,
    P99,
    P999,
    Ratio,
    combined,
    mean_over_trials,
    ratio_of,
)
from steelyard.studies.colocation.findings.trend import trend


def _series(rng: np.random.Generator, count: int, level: float, rho: float = 0.9) -> np.ndarray:
    noise = np.empty(count)
    noise[0] = rng.standard_normal()
    for at in range(1, count):
        noise[at] = rho * noise[at - 1] + math.sqrt(1 - rho**2) * rng.standard_normal()
    return level * np.exp(0.2 * noise)


def _ratio(value: float, half: float = 0.05) -> Ratio:
    return Ratio(
        1.0, value, value, value / (1 + half), value * (1 + half), "t", is_guaranteed=True, sizes=(100, 100)
    )


@pytest.mark.parametrize("statistic", [MEAN, P99])
def test_a_planted_factor_is_found_inside_its_limits(statistic: str) -> None:
    rng = np.random.default_rng(3)
    found = ratio_of(_series(rng, 4000, 1.0), _series(rng, 4000, 1.5), statistic, 1)
    assert found is not None
    assert found.low < 1.5 < found.high
    assert found.low > 1.25


def test_limits_allow_for_neighbours_that_resemble_each_other() -> None:
    """Limits for independent values would call two stretches of one series different in half of the cases."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        found = ratio_of(_series(rng, 1500, 1.0), _series(rng, 1500, 1.0), MEAN, 1)
        assert found is not None
        alarms += not found.low <= 1 <= found.high
    assert alarms <= 19  # 99 % of binomial(200, 0.05)


def test_the_trial_is_the_unit_of_several_trials() -> None:
    """Trials with an effect of their own: limits from inside one of them would alarm nearly always."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        ratios = [_ratio(math.exp(0.1 * rng.standard_normal()), 0.01) for _ in range(ENOUGH_TRIALS)]
        found = combined(ratios)
        assert found.low is not None
        assert found.high is not None
        assert found.guaranteed
        alarms += not found.low <= 1 <= found.high
    assert 6 <= alarms <= 32  # 99.9 % of binomial(400, 0.05)


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=8))
def test_limits_contain_the_estimate_and_order_does_not_matter(values: list[float]) -> None:
    found, turned = (
        combined([_ratio(each) for each in values]),
        combined([_ratio(each) for each in values[::-1]]),
    )
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low <= found.value * (1 + 1e-12)
    assert found.value <= found.high * (1 + 1e-12)
    assert turned.value == pytest.approx(found.value)
    assert found.units == len(values)
    assert found.guaranteed == (len(values) >= ENOUGH_TRIALS or len(values) == 1)


def test_few_trials_allow_for_both_levels() -> None:
    alike, apart = combined([_ratio(1.0), _ratio(1.0)]), combined([_ratio(0.9), _ratio(1.1)])
    assert alike.low is not None
    assert apart.low is not None
    assert 1 / 1.05 < alike.low < 1
    assert apart.low < alike.low


def test_too_few_values_give_no_ratio_or_no_limits() -> None:
    few, many = np.linspace(1, 2, 20), np.linspace(1, 2, 1000)
    assert ratio_of(np.zeros(0), many, MEAN, 1) is None
    assert ratio_of(many, many, P999, 1) is None
    short = ratio_of(few, many, MEAN, 1)
    assert short is not None
    assert math.isinf(short.high)
    assert combined([short]).low is None


def test_one_trial_has_a_mean_without_limits() -> None:
    assert mean_over_trials([2.0], "s", "x").low is None
    several = mean_over_trials([1.0, 2.0, 3.0], "s", "x")
    assert several.value == 2.0
    assert several.low == pytest.approx(2 - 2.4841377, abs=1e-6)  # R: t.test(1:3)


def test_a_growing_queue_is_told_from_one_that_only_scatters() -> None:
    rng = np.random.default_rng(11)
    times_s = np.arange(0, 15, 0.1)
    alarms = sum(trend(times_s, _series(rng, times_s.size, 1.0)).is_growing for _ in range(300))
    assert alarms <= 6
    grown = trend(times_s, _series(rng, times_s.size, 1.0) * 0.1 + times_s)
    assert grown.is_growing
    assert grown.slope == pytest.approx(1.0, abs=0.05)
