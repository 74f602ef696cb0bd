from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.combine import combined_ratio
from steelyard.analyse.equivalence import Margin, Verdict, brown_forsythe, ratio_test, verdict_of
from steelyard.analyse.multiplicity import benjamini_hochberg

unit_values = st.lists(st.floats(0.5, 2), min_size=5, max_size=12).map(np.array)


@settings(max_examples=60, deadline=None)
@given(unit_values, unit_values)
def test_p_value_and_interval_are_those_of_welch_on_logarithms(first: np.ndarray, second: np.ndarray) -> None:
    if np.ptp(first) < 1e-6 or np.ptp(second) < 1e-6:
        return
    found = ratio_test(first, second)
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
    assert ratio_test(first, second, margin).p_equivalent == pytest.approx(max(below, above), rel=1e-9)


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
