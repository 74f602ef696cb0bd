from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.comparison.signed_rank import (
    MOST_EXACT,
    MOST_LISTED,
    critical_rank,
    pseudomedian,
    pseudomedian_interval,
    walsh_averages,
)

values = st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(np.array)


@given(values)
def test_the_pseudomedian_is_the_median_of_the_means_of_pairs(sample: np.ndarray) -> None:
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(sample, 2)]
    assert pseudomedian(sample) == pytest.approx(float(np.median(means)))


@settings(max_examples=50)
@given(values, st.floats(-3, 3))
def test_it_moves_with_a_shift_and_ignores_the_order(sample: np.ndarray, shift: float) -> None:
    assert pseudomedian(sample + shift) == pytest.approx(pseudomedian(sample) + shift, abs=1e-9)
    assert pseudomedian(sample[::-1]) == pseudomedian(sample)


@pytest.mark.parametrize("size", [6, 7, 10, 15])
@pytest.mark.parametrize("p_tail", [0.025, 0.005, 0.1])
def test_the_interval_holds_exactly_what_the_signed_rank_test_does_not_reject(
    size: int, p_tail: float
) -> None:
    sample = np.random.default_rng(size).standard_normal(size)
    low, high = pseudomedian_interval(sample, p_tail)
    if math.isinf(low):
        assert 2.0**-size > p_tail
        return

    def above(shift: float) -> float:
        return float(stats.wilcoxon(sample - shift, alternative="greater", method="exact").pvalue)

    def below(shift: float) -> float:
        return float(stats.wilcoxon(sample - shift, alternative="less", method="exact").pvalue)

    step = 1e-9
    assert above(low - step) <= p_tail < above(low + step)
    assert below(high + step) <= p_tail < below(high - step)


@pytest.mark.parametrize("size", [MOST_EXACT + 1, 400])
@pytest.mark.parametrize("p_tail", [0.025, 0.001])
def test_many_values_have_the_rank_of_the_normal_approximation(size: int, p_tail: float) -> None:
    rank = critical_rank(size, p_tail)
    chances = np.zeros(size * (size + 1) // 2 + 1)
    chances[0] = 1.0
    for each in range(1, size + 1):
        shifted = np.zeros_like(chances)
        shifted[each:] = chances[: chances.size - each]
        chances = (chances + shifted) / 2
    exact = float(np.cumsum(chances)[rank - 1])
    assert exact == pytest.approx(p_tail, rel=0.08)
    assert exact <= p_tail * 1.001, "the approximation errs to the safe side"


def test_counting_gives_what_listing_gives() -> None:
    sample = np.random.default_rng(3).standard_normal(MOST_LISTED + 1)
    rows, columns = np.triu_indices(sample.size)
    listed = np.sort((sample[rows] + sample[columns]) / 2)
    ranks = [1, 17, listed.size // 2, listed.size]
    assert walsh_averages(sample, ranks) == pytest.approx([listed[rank - 1] for rank in ranks], abs=1e-12)


def test_equal_values_have_an_interval_of_no_width() -> None:
    for size in (12, MOST_LISTED + 5):
        assert pseudomedian_interval(np.zeros(size), 0.025) == (0.0, 0.0)


def test_few_values_allow_no_interval() -> None:
    assert pseudomedian_interval(np.array([1.0, 2.0]), 0.025) == (-math.inf, math.inf)
    assert pseudomedian_interval(np.array([]), 0.025) == (-math.inf, math.inf)
