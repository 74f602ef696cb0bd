from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.comparison.equivalence import (
    BOTH,
    Margin,
    Verdict,
    brown_forsythe,
    ratio_test,
    verdict_of,
    welch_test,
)
from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.intervals.combine import combined_ratio

unit_values = st.lists(st.floats(0.5, 2), min_size=5, max_size=12).map(np.array)


@settings(max_examples=60, deadline=None)
@given(unit_values, unit_values)
def test_p_value_and_interval_are_those_of_welch_on_logarithms(first: np.ndarray, second: np.ndarray) -> None:
    if np.ptp(first) < 1e-6 or np.ptp(second) < 1e-6:
        return
    found = welch_test(np.log(first), np.log(second), Margin())
    expected = stats.ttest_ind(np.log(second), np.log(first), equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p_different == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(
        (math.exp(interval.low), math.exp(interval.high)), rel=1e-9
    )
    assert found.low <= found.ratio <= found.high


@settings(max_examples=60, deadline=None)
@given(unit_values, unit_values)
def test_equivalence_is_two_one_sided_tests(first: np.ndarray, second: np.ndarray) -> None:
    if np.ptp(first) < 1e-6 or np.ptp(second) < 1e-6:
        return
    margin = Margin(0.1)
    a, b, bound = np.log(first), np.log(second), math.log1p(0.1)
    below = stats.ttest_ind(b - bound, a, equal_var=False, alternative="less").pvalue
    above = stats.ttest_ind(b + bound, a, equal_var=False, alternative="greater").pvalue
    assert welch_test(a, b, margin).p_equivalent == pytest.approx(max(below, above), rel=1e-9)


def test_swapping_the_sides_inverts_the_ratio() -> None:
    first, second = np.array([1.0, 1.1, 1.2, 1.0, 0.9]), np.array([2.0, 2.1, 2.3, 1.9, 2.2, 2.0])
    there, back = ratio_test(first, second), ratio_test(second, first)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low == pytest.approx(1 / back.high)
    assert there.p_equivalent == pytest.approx(back.p_equivalent)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 1.01, 0.99, 1.02, 0.98], [2, 2.01, 1.99, 2.02, 1.98], Verdict.SLOWER),
        ([2, 2.01, 1.99, 2.02, 1.98], [1, 1.01, 0.99, 1.02, 0.98], Verdict.FASTER),
        ([1, 1.001, 0.999, 1.002, 0.998], [1.005, 1.006, 1.004, 1.005, 1.005], Verdict.EQUIVALENT),
        ([1, 1.2, 0.8, 1.1, 0.9], [1.1, 1.3, 0.9, 1.2, 1.0], Verdict.INCONCLUSIVE),
        ([1, 1.01, 0.99, 1.02], [2, 2.01, 1.99, 2.02, 1.98], Verdict.DESCRIPTIVE),
        ([], [2, 2.01], Verdict.NA),
        ([1, 1, 1, 1, 1], [1.5, 1.5, 1.5, 1.5, 1.5], Verdict.SLOWER),
        ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], Verdict.EQUIVALENT),
    ],
)
def test_verdicts(first: list[float], second: list[float], expected: Verdict) -> None:
    found = ratio_test(np.array(first, dtype=float), np.array(second, dtype=float))
    assert verdict_of(found, found.p_different, found.p_equivalent) is expected


def test_advice_on_further_units_would_settle_the_question() -> None:
    rng = np.random.default_rng(3)
    first, second = np.exp(0.05 * rng.standard_normal((2, 6)))
    found = ratio_test(first, second)
    assert verdict_of(found, found.p_different, found.p_equivalent) is Verdict.INCONCLUSIVE
    assert found.further_units is not None
    times = 1 + math.ceil(found.further_units / 6)
    more = ratio_test(np.tile(first, times), np.tile(second, times))
    assert verdict_of(more, more.p_different, more.p_equivalent) in {
        Verdict.EQUIVALENT,
        Verdict.SLOWER,
        Verdict.FASTER,
    }


def test_values_that_are_no_times_count_as_no_unit() -> None:
    assert ratio_test(np.array([1.0, np.nan, 0.0, -1.0, 2.0]), np.array([1.0, 2.0])).units == (2, 2)


def test_a_single_cell_combined_is_the_cell() -> None:
    first, second = np.array([1.0, 1.1, 1.2, 1.0, 0.9]), np.array([2.0, 2.1, 2.3, 1.9, 2.2])
    alone, combined = ratio_test(first, second), combined_ratio([(first, second)])
    assert combined.ratio == pytest.approx(alone.ratio)
    assert (combined.low, combined.high) == pytest.approx((alone.low, alone.high))
    assert combined.p_different == pytest.approx(alone.p_different)


def test_brown_forsythe_is_levene_at_the_median() -> None:
    rng = np.random.default_rng(1)
    groups = [rng.standard_normal(20), 2 * rng.standard_normal(15), rng.standard_normal(30)]
    assert brown_forsythe(groups) == pytest.approx(stats.levene(*groups, center="median").pvalue, rel=1e-9)
    assert brown_forsythe([np.ones(4), np.ones(5)]) == 1


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_adjusted_p_values_are_those_of_the_step_up_rule(p_values: list[float]) -> None:
    found = benjamini_hochberg(p_values)
    if p_values:
        assert found == pytest.approx(list(stats.false_discovery_control(p_values)))


def test_few_new_runs_against_many_old_ones_raise_no_false_alarm() -> None:
    # 10 % of the runs take 1.5 times as long: Welch alone calls 17 to 32 % of identical pairs different.
    alarms, guaranteed, replicates = 0, 0, 100
    for replicate in range(replicates):
        rng = np.random.default_rng([17, replicate])
        first, second = (
            (1 + 0.05 * rng.standard_normal(size)) * np.where(rng.random(size) < 0.1, 1.5, 1)
            for size in (10, 100)
        )
        found = ratio_test(first, second)
        assert found.method == BOTH
        guaranteed += found.is_guaranteed
        assert (found.low <= 1 <= found.high) == (found.p_different >= 0.05)
        alarms += found.p_different < 0.05
    assert stats.binom.sf(alarms - 1, replicates, 0.06) > 0.001, alarms
    assert guaranteed >= 0.9 * replicates


def test_uneven_sides_of_unequal_spread_keep_the_level_of_welch() -> None:
    alarms, replicates = 0, 100
    for replicate in range(replicates):
        rng = np.random.default_rng([19, replicate])
        first, second = 1 + 0.06 * rng.standard_normal(8), 1 + 0.02 * rng.standard_normal(40)
        alarms += ratio_test(first, second).p_different < 0.05
    assert stats.binom.sf(alarms - 1, replicates, 0.06) > 0.001, alarms


def test_the_reasons_against_a_comparison_are_said() -> None:
    noise = np.exp(0.05 * np.random.default_rng(5).standard_normal(40))
    few, flat, drifting = noise[:4], np.ones(40), noise * np.linspace(1, 2, 40)
    for other, reason in ((few, "4 units"), (drifting, "change in the order")):
        assert reason in ratio_test(noise, other).objections[0]
    assert "no spread" in ratio_test(flat, flat).objections[0]
    assert "do not show" in ratio_test(noise[:20], noise[20:], is_series=True).objections[0]
    assert "effective size" in ratio_test(noise, drifting, is_series=True).objections[0]
    assert not ratio_test(noise, noise[::-1], is_series=True).objections


def test_a_series_without_labels_gets_the_wider_interval() -> None:
    noise = np.exp(0.05 * np.random.default_rng(6).standard_normal((2, 40)))
    alone, series = ratio_test(noise[0], noise[1]), ratio_test(noise[0], noise[1], is_series=True)
    assert series.ratio == alone.ratio
    assert series.low <= alone.low < alone.high <= series.high
    assert series.p_different >= alone.p_different
