from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison.relabelling import Family, Relabelling


def counted(first: list[float], second: list[float]) -> float:
    """Count all dealings of two small samples by Welch's t, the plain way."""
    pooled = np.array(first + second)

    def t(places: tuple[int, ...]) -> float:
        is_second = np.zeros(pooled.size, dtype=bool)
        is_second[list(places)] = True
        return float(stats.ttest_ind(pooled[is_second], pooled[~is_second], equal_var=False).statistic)

    given = t(tuple(range(len(first), pooled.size)))
    all_ = [t(places) for places in itertools.combinations(range(pooled.size), len(second))]
    return float(np.mean(np.array(all_) >= given - 1e-9))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1.0, 2.0, 4.0], [2.5, 3.0, 7.0, 8.5]),
        ([1.0, 2.0, 4.0, 9.0], [2.5, 0.5]),
        ([1.0, 2.0, 2.0, 3.0], [2.0, 3.1, 3.0, 4.0, 1.0]),
    ],
)
def test_all_dealings_are_counted(first: list[float], second: list[float]) -> None:
    found = Relabelling(np.array(first), np.array(second))
    assert found.p_above(0.0) == pytest.approx(counted(first, second))
    moved = [value - 1.3 for value in second]
    assert found.p_above(1.3) == pytest.approx(counted(first, moved))


def test_limits_are_where_the_test_begins_to_reject() -> None:
    rng = np.random.default_rng(1)
    found = Relabelling(rng.standard_normal(5), rng.standard_normal(40) + 0.5)
    low, high = found.limits(0.025)
    error = (high - low) / 4
    assert found.p_above(low) <= 0.025 < found.p_above(low + 0.01 * error)
    assert found.p_below(high) <= 0.025 < found.p_below(high - 0.01 * error)


def test_normal_samples_get_the_limits_of_student() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.standard_normal(60), 3 + rng.standard_normal(150)
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert Relabelling(first, second).limits(0.025) == pytest.approx((expected.low, expected.high), abs=0.03)


def test_a_factor_is_taken_out_of_arithmetic_means() -> None:
    rng = np.random.default_rng(3)
    first, second = 1 + rng.random(7), 2 * (1 + rng.random(50))
    found = Relabelling(first, second, Family.SCALE)
    low, high = found.limits(0.025)
    assert found.estimate == pytest.approx(second.mean() / first.mean())
    assert low < 2 < high < 3
    other = Relabelling(first, second / 4, Family.SCALE)
    assert other.limits(0.025) == pytest.approx((low / 4, high / 4), rel=1e-9)


def test_units_and_sides_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.standard_normal(6), rng.standard_normal(30)
    low, high = Relabelling(first, second).limits(0.025)
    moved = Relabelling(1e6 + 3 * first, 1e6 + 3 * second).limits(0.025)
    assert moved == pytest.approx((3 * low, 3 * high), rel=1e-5)
    near = Relabelling(1e9 + first, 1e9 + second, Family.SCALE).limits(0.025)
    assert [1e9 * (ratio - 1) for ratio in near] == pytest.approx([low, high], abs=0.02)
    back = Relabelling(second, first).limits(0.025)
    assert back == pytest.approx((-high, -low), abs=0.15)


def test_too_few_dealings_have_no_limits() -> None:
    found = Relabelling(np.array([1.0, 2.0]), np.array([5.0, 6.0, 7.0]))
    assert found.limits(0.025) == (-math.inf, math.inf)


@pytest.mark.parametrize("size", [6, 40])
def test_ties_do_not_alarm(size: int) -> None:
    alarms, replicates = 0, 100
    for replicate in range(replicates):
        rng = np.random.default_rng([5, size, replicate])
        first, second = ((rng.random(count) < 0.1).astype(np.float64) for count in (size, 5 * size))
        alarms += Relabelling(first, second).p_value(0.0) <= 0.05
    assert stats.binom.sf(alarms - 1, replicates, 0.06) > 0.001, alarms
