from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard import _native
from steelyard.analyse.comparison.overlap import Stamps, overlapping, parallel_ratio
from steelyard.analyse.comparison.worker_agreement import compare_workers
from steelyard.analyse.intervals.bootstrap import Resampling, Statistic
from steelyard.analyse.intervals.clustering import Units, choose_level, group_units, intraclass_share
from steelyard.analyse.intervals.describe import harrell_davis, mad, quantile, standard_deviation
from steelyard.analyse.intervals.dispersion import Pooled, growth_starts, pooled_statistics
from steelyard.analyse.linear.correlation import pearson, spearman
from steelyard.analyse.series.warm_up import (
    OUTLIER_DEVIATIONS,
    SeriesClass,
    class_of_series,
    classify_series,
    find_outliers,
)


def noise(count: int, seed: int = 1) -> np.ndarray:
    return np.asarray(1 + 0.005 * np.random.default_rng(seed).standard_normal(count))


def stepped(*levels: tuple[int, float]) -> np.ndarray:
    shape = np.concatenate([np.full(count, level) for count, level in levels])
    return np.asarray(noise(shape.size) * shape)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (stepped((100, 1)), SeriesClass.FLAT),
        (stepped((30, 1.1), (70, 1)), SeriesClass.WARM_UP),
        (stepped((60, 1), (40, 1.1)), SeriesClass.SLOW_DOWN),
        (stepped((85, 1), (15, 1.1)), SeriesClass.NO_STEADY_STATE),
        (stepped((30, 1.1), (30, 0.9), (40, 1)), SeriesClass.NO_STEADY_STATE),
        (stepped((50, 1.01), (50, 1)), SeriesClass.FLAT),
        (np.ones(50), SeriesClass.FLAT),
    ],
)
def test_series_are_classified_by_their_levels(values: np.ndarray, expected: SeriesClass) -> None:
    assert classify_series(values).shape is expected
    assert class_of_series(values) is expected


def test_a_slow_first_iteration_is_an_outlier_and_no_warm_up() -> None:
    values = noise(100)
    values[0] = 1.2
    found = classify_series(values)
    assert found.shape is SeriesClass.FLAT
    assert found.outliers == (0,)
    assert found.first == pytest.approx(1.2)


def test_the_window_ratio_is_near_one_without_drift_and_small_with_it() -> None:
    assert classify_series(noise(200)).window_sd_ratio == pytest.approx(1, abs=0.15)
    assert classify_series(noise(200) + np.linspace(0, 0.2, 200)).window_sd_ratio < 0.3


def test_outliers_of_a_coarse_clock_are_measured_in_its_steps() -> None:
    values = np.array([0.1] * 30 + [0.101] * 5 + [0.15])
    assert find_outliers(values) == (35,)


def test_quantiles_and_deviations_are_those_of_other_libraries() -> None:
    values = np.random.default_rng(2).lognormal(0, 1, 37)
    for p in (0.1, 0.25, 0.5, 0.9):
        assert quantile(values, p) == pytest.approx(float(np.quantile(values, p)), rel=1e-12)
        expected = float(stats.mstats.hdquantiles(values, [p])[0])
        assert harrell_davis(values, p) == pytest.approx(expected, rel=1e-9)
    assert mad(values) == pytest.approx(float(stats.median_abs_deviation(values, scale="normal")), rel=1e-9)
    assert standard_deviation(values) == pytest.approx(float(values.std(ddof=1)), rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=25, unique=True),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=25, unique=True),
)
def test_kolmogorov_smirnov_is_exact_without_ties(first: list[float], second: list[float]) -> None:
    if set(first) & set(second):
        return
    statistic, p_value, exact = _native.kolmogorov_smirnov(np.array(first), np.array(second))
    assert exact
    # By counting: scipy's exact p-value gives up on some pairs.
    both = np.array([*first, *second])
    shares = [np.searchsorted(np.sort(one), both, side="right") / len(one) for one in (first, second)]
    expected = float(np.abs(shares[0] - shares[1]).max())
    assert statistic == pytest.approx(expected, abs=1e-12)
    assert p_value == pytest.approx(share_of_orders_as_far(len(first), len(second), expected), abs=1e-9)


def share_of_orders_as_far(first: int, second: int, distance: float) -> float:
    """Count the merged orders of two samples whose distribution functions part as far somewhere."""
    steps = round(distance * first * second)
    nearer: dict[int, int] = {0: 1}
    for taken in range(first + 1):
        row: dict[int, int] = {}
        for other in range(second + 1):
            ways = nearer.get(other, 0) if taken or not other else 0
            ways += row.get(other - 1, 0)
            if abs(taken * second - other * first) < steps:
                row[other] = ways
        nearer = row
    return 1 - nearer.get(second, 0) / math.comb(first + second, first)


def test_kolmogorov_smirnov_with_ties_keeps_its_level() -> None:
    rng = np.random.default_rng(4)
    p_values = [
        _native.kolmogorov_smirnov(*rng.integers(0, 4, (2, 30)).astype(float))[1] for _ in range(2000)
    ]
    share = np.mean(np.array(p_values) <= 0.05)
    assert 0.02 <= share <= 0.065


def test_large_samples_use_the_limit() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.standard_normal(3000), rng.standard_normal(2500) + 0.05
    _, p_value, exact = _native.kolmogorov_smirnov(first, second)
    assert not exact
    assert p_value == pytest.approx(stats.ks_2samp(first, second, method="asymp").pvalue, rel=0.05)


def test_each_pair_of_workers_is_compared_once() -> None:
    workers = [noise(40, seed) * level for seed, level in enumerate((1, 1, 1.5))]
    found = list(compare_workers(workers))
    assert len(found) == 3
    assert [pair.p_value < 0.001 for pair in found] == [False, True, True]


def test_correlations_agree_with_scipy() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 8, 40).astype(float)
    y = x + rng.standard_normal(40)
    linear, expected = pearson(x, y), stats.pearsonr(x, y)
    interval = expected.confidence_interval(0.95)
    assert (linear.value, linear.low, linear.high) == pytest.approx(
        (expected.statistic, interval.low, interval.high)
    )
    assert spearman(x, y).value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert np.isnan(pearson(np.ones(9), y[:9]).value)


@pytest.mark.parametrize(
    ("blocks", "workers", "expected"), [(6, 2, "block"), (3, 2, "worker"), (1, 1, "worker")]
)
def test_the_highest_level_with_enough_units_is_chosen(blocks: int, workers: int, expected: str) -> None:
    block = np.repeat(np.arange(blocks), workers * 3)
    worker = np.repeat(np.arange(blocks * workers), 3)
    side = {"host": np.zeros_like(block), "block": block, "worker": worker}
    assert choose_level([side, side]) == expected


def test_the_share_between_units_is_that_of_the_simulation() -> None:
    rng = np.random.default_rng(8)
    labels = np.repeat(np.arange(200), 20)
    values = rng.standard_normal(200)[labels] + rng.standard_normal(4000)
    assert intraclass_share(group_units("worker", labels, values)) == pytest.approx(0.5, abs=0.08)
    flat = group_units("worker", labels, rng.standard_normal(4000))
    assert intraclass_share(flat) == pytest.approx(0, abs=0.02)


def test_pooled_intervals_widen_when_units_differ() -> None:
    rng = np.random.default_rng(9)
    levels = 1 + 0.05 * rng.standard_normal(8)
    units = Units("worker", tuple(level * noise(50, seed) for seed, level in enumerate(levels)))
    resampling = Resampling(seed=1, cell=1, resamples=2000)
    clustered = pooled_statistics(units, resampling)[Statistic.MEAN]
    loose = pooled_statistics(Units("worker", (np.concatenate(units.values),)), resampling)[Statistic.MEAN]
    assert clustered.guaranteed
    assert not loose.guaranteed
    assert clustered.value == loose.value
    assert clustered.high - clustered.low > 3 * (loose.high - loose.low)


def test_growth_needs_all_higher_loads_to_scatter_more() -> None:
    def of(*values: float) -> list[tuple[int, Pooled]]:
        units = [Units("worker", tuple(noise(60, seed) ** value for seed in range(6))) for value in values]
        resampling = Resampling(seed=1, cell=1)
        return [
            (2**place, pooled_statistics(unit, resampling)[Statistic.CV]) for place, unit in enumerate(units)
        ]

    assert growth_starts(of(1, 1, 3, 4)) == 4
    assert growth_starts(of(1, 3, 1, 4)) == 8
    assert growth_starts(of(1, 1, 1)) is None
    assert growth_starts([]) is None


def stamps(starts: list[list[float]], length: float = 1.0) -> Stamps:
    worker = np.concatenate([np.full(len(each), place) for place, each in enumerate(starts)])
    iteration = np.concatenate([np.arange(1, len(each) + 1) for each in starts])
    start = np.concatenate([np.array(each) for each in starts])
    return Stamps(worker, iteration, start, start + length)


def test_workers_one_after_the_other_have_a_negative_ratio() -> None:
    sequential = stamps([[0, 1, 2], [3, 4, 5]])
    assert parallel_ratio(sequential) == pytest.approx((2 - 3) / 5)
    assert not overlapping(sequential).any()


def test_the_last_iteration_is_the_one_of_the_largest_number() -> None:
    start = np.arange(12.0)
    text_order = Stamps(np.zeros(12, int), np.arange(1, 13), start, start + 1)
    both = Stamps(
        np.concatenate([text_order.worker, text_order.worker + 1]),
        np.tile(text_order.iteration, 2),
        np.tile(start, 2),
        np.tile(start + 1, 2),
    )
    assert parallel_ratio(both) == pytest.approx(1)
    assert parallel_ratio(text_order) is None


def test_the_tail_after_the_first_worker_ended_is_marked() -> None:
    marked = overlapping(stamps([[0, 1, 2], [0, 1, 2, 3, 4]]))
    assert marked.tolist() == [True] * 6 + [False] * 2


@given(st.lists(st.floats(0, 100).map(lambda value: round(value, 1)), min_size=1, max_size=40))
def test_outliers_are_those_beyond_ten_median_distances(values: list[float]) -> None:
    array = np.array(values)
    distances = np.abs(array - np.median(array))
    deviation = np.median(distances) or min(distances[distances > 0], default=math.inf)
    expected = np.flatnonzero(distances > OUTLIER_DEVIATIONS * deviation)
    assert find_outliers(array) == tuple(expected.tolist())


def test_levels_are_cut_alike_wherever_an_equal_value_stands() -> None:
    values = np.round(stepped((70, 1.3), (90, 1)), 2)
    assert _native.change_points(values, penalty=5.0, shortest=10) == [70]
    lag, size = _native.dependence(values)
    assert lag == _native.autocorrelation(values, 1)[1]
    assert size == _native.effective_size(values)
