from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.intervals.bootstrap import (
    MAD_SCALE,
    Intervals,
    Resampling,
    Statistic,
    bootstrap_intervals,
    interquartile_range,
)
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable

Method = Literal["percentile", "basic", "BCa"]
MANY = Resampling(seed=3, cell=1, resamples=20_000)


def skewed(count: int) -> np.ndarray:
    return np.random.default_rng(11).lognormal(0, 0.5, count)


def ratio_of_widths(found: tuple[float, float], expected: tuple[float, float]) -> tuple[float, float]:
    width = expected[1] - expected[0]
    return (found[0] - expected[0]) / width, (found[1] - expected[1]) / width


def sd(values: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.std(values, axis=axis, ddof=1))


@pytest.mark.parametrize(("statistic", "function"), [(Statistic.MEAN, np.mean), (Statistic.SD, sd)])
@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_limits_agree_with_an_independent_bootstrap(
    statistic: Statistic, function: Callable[..., np.ndarray], method: Method
) -> None:
    values = skewed(120)
    found = bootstrap_intervals(values, MANY)[statistic]
    other = stats.bootstrap(
        (values,), function, method=method, n_resamples=20_000, rng=np.random.default_rng(1), batch=500
    ).confidence_interval
    limits = getattr(found, method.lower())
    # Two bootstraps of 20 000 resamples differ by about 1 % of the width.
    assert ratio_of_widths(limits, (other.low, other.high)) == pytest.approx((0, 0), abs=0.03)


def test_studentised_limits_of_the_mean_are_those_of_a_bootstrap_t_by_hand() -> None:
    values = skewed(60)
    rng = np.random.default_rng(5)
    drawn = values[rng.integers(0, 60, (20_000, 60))]
    t = (drawn.mean(axis=1) - values.mean()) / (drawn.std(axis=1, ddof=1) / math.sqrt(60))
    error = values.std(ddof=1) / math.sqrt(60)
    low, high = np.quantile(t, [0.025, 0.975])
    expected = (values.mean() - high * error, values.mean() - low * error)
    found = bootstrap_intervals(values, MANY)[Statistic.MEAN].studentised
    assert ratio_of_widths(found, expected) == pytest.approx((0, 0), abs=0.03)


@pytest.mark.parametrize("statistic", [Statistic.MEDIAN, Statistic.MAD])
def test_order_statistics_agree_with_resampling_by_hand(statistic: Statistic) -> None:
    values = skewed(80)
    drawn = values[np.random.default_rng(5).integers(0, 80, (20_000, 80))]
    medians = np.median(drawn, axis=1)
    by_hand = {
        Statistic.MEDIAN: medians,
        Statistic.MAD: np.median(np.abs(drawn - medians[:, None]), axis=1) * MAD_SCALE,
    }[statistic]
    expected = tuple(np.quantile(by_hand, [0.025, 0.975]))
    found = bootstrap_intervals(values, MANY)[statistic].percentile
    assert ratio_of_widths(found, expected) == pytest.approx((0, 0), abs=0.05)


def test_interquartile_range_agrees_with_resampling_by_hand() -> None:
    values = skewed(80)
    drawn = values[np.random.default_rng(5).integers(0, 80, (20_000, 80))]
    low, high = np.quantile(drawn, [0.25, 0.75], axis=1)
    expected = tuple(np.quantile(high - low, [0.025, 0.975]))
    found = interquartile_range(values, MANY)
    assert found.estimate == pytest.approx(float(np.subtract(*np.quantile(values, [0.75, 0.25]))))
    assert ratio_of_widths(found.percentile, expected) == pytest.approx((0, 0), abs=0.05)


def test_same_seed_and_cell_give_the_same_bits_in_any_order_of_the_values() -> None:
    values = skewed(50)
    shuffled = np.random.default_rng(0).permutation(values)
    resampling = Resampling(seed=9, cell=4)
    # As text: limits that do not exist are not numbers, and those are never equal.
    assert repr(bootstrap_intervals(values, resampling)) == repr(bootstrap_intervals(shuffled, resampling))
    other = bootstrap_intervals(values, Resampling(seed=9, cell=5))
    assert (
        other[Statistic.MEAN].percentile != bootstrap_intervals(values, resampling)[Statistic.MEAN].percentile
    )


def test_read_only_arrays_are_accepted() -> None:
    values = skewed(20)
    values.setflags(write=False)
    assert isinstance(bootstrap_intervals(values, MANY)[Statistic.CV], Intervals)


@pytest.mark.parametrize("values", [np.array([1.0]), np.array([1.0, np.nan, 2.0]), np.array([1.0, np.inf])])
def test_values_that_cannot_be_bootstrapped_are_refused(values: np.ndarray) -> None:
    with pytest.raises(AnalysisError):
        bootstrap_intervals(values, MANY)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1, 100), min_size=8, max_size=50).filter(lambda xs: np.ptp(xs) > 1),
    st.floats(0.01, 100),
)
def test_scale_moves_all_limits_and_leaves_the_variation(values: list[float], factor: float) -> None:
    resampling = Resampling(seed=2, cell=2)
    plain = bootstrap_intervals(np.array(values), resampling)
    scaled = bootstrap_intervals(np.array(values) * factor, resampling)
    for statistic in Statistic:
        expected = 1.0 if statistic is Statistic.CV else factor
        assert scaled[statistic].percentile == pytest.approx(
            tuple(limit * expected for limit in plain[statistic].percentile), rel=1e-9
        )
        low, high = plain[statistic].percentile
        assert low <= high
