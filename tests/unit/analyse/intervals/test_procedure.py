"""Limits against independent oracles: scipy, closed forms, resampling by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import steelyard
from steelyard.analyse.intervals.bootstrap import MAD_SCALE, Resampling
from steelyard.analyse.intervals.procedure import permutation_p_value

if TYPE_CHECKING:
    from collections.abc import Callable

RESAMPLES = 20_000
# Two bootstraps of 20 000 resamples differ by about 1 % of the width.
NEAR = 0.04


def skewed(count: int, seed: int = 11) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0, 0.5, count)


def sd(x: np.ndarray, axis: int = -1) -> Any:
    return np.std(x, axis=axis, ddof=1)


def cv(x: np.ndarray, axis: int = -1) -> Any:
    return np.std(x, axis=axis, ddof=1) / np.mean(x, axis=axis)


def iqr(x: np.ndarray, axis: int = -1) -> Any:
    return np.quantile(x, 0.75, axis=axis) - np.quantile(x, 0.25, axis=axis)


def mad(x: np.ndarray, axis: int = -1) -> Any:
    return MAD_SCALE * np.median(np.abs(x - np.median(x, axis=axis, keepdims=True)), axis=axis)


def trimmed(x: np.ndarray, axis: int = -1) -> Any:
    return stats.trim_mean(x, 0.2, axis=axis)


def p90(x: np.ndarray, axis: int = -1) -> Any:
    return np.quantile(x, 0.9, axis=axis)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    "mean": np.mean,
    "sd": sd,
    "cv": cv,
    "median": np.median,
    "iqr": iqr,
    "mad": mad,
    "trimmed_mean": trimmed,
    ("quantile", 0.9): p90,
}


def assert_near(found: steelyard.IntervalEstimate, low: float, high: float, share: float = NEAR) -> None:
    width = high - low
    assert ((found.low - low) / width, (found.high - high) / width) == pytest.approx((0, 0), abs=share)


@pytest.mark.parametrize("statistic", FUNCTIONS)
@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_bootstrap_limits_agree_with_scipy(statistic: Any, method: Any) -> None:
    # Limits of a single quantile jump from value to value: more of them make the jumps small.
    values = skewed(401 if statistic in {"median", ("quantile", 0.9)} else 121)
    function = FUNCTIONS[statistic]
    other = stats.bootstrap(
        (values,), function, method=method, n_resamples=RESAMPLES, rng=np.random.default_rng(1), batch=2000
    ).confidence_interval
    found = steelyard.interval(values, statistic=statistic, method=method.lower(), resamples=RESAMPLES)
    assert found.estimate == pytest.approx(float(function(values)), rel=1e-12)
    assert_near(found, other.low, other.high)


@pytest.mark.parametrize("statistic", ["mean", "sd", "iqr", "trimmed_mean"])
@pytest.mark.parametrize("contrast", ["ratio", "difference"])
@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_limits_of_a_contrast_agree_with_scipy(statistic: str, contrast: Any, method: Any) -> None:
    first, second = skewed(90), 1.3 * skewed(70, 12)
    function = FUNCTIONS[statistic]

    def contrasted(x: np.ndarray, y: np.ndarray, axis: int = -1) -> Any:
        a, b = function(x, axis=axis), function(y, axis=axis)
        return b / a if contrast == "ratio" else b - a

    other = stats.bootstrap(
        (first, second),
        contrasted,
        method=method,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(1),
        batch=2000,
        vectorized=True,
    ).confidence_interval
    found = steelyard.interval(
        first,
        other=second,
        statistic=statistic,
        contrast=contrast,
        method=method.lower(),
        resamples=RESAMPLES,
    )
    assert_near(found, other.low, other.high)


def test_t_and_welch_are_those_of_the_closed_forms() -> None:
    x, y = skewed(30), 1.2 * skewed(40, 12)
    one = steelyard.interval(x, method="t")
    expected = stats.t.interval(0.95, 29, x.mean(), stats.sem(x))
    assert (one.low, one.high) == pytest.approx(expected, rel=1e-12)
    two = steelyard.interval(x, other=y, method="t", contrast="difference")
    welch = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    assert (two.low, two.high) == pytest.approx((welch.low, welch.high), rel=1e-10)
    # Yuen's test; 30 and 40 values lose 6 and 8 at each end.
    yuen = stats.ttest_ind(y, x, equal_var=False, trim=0.2).confidence_interval(0.95)
    robust = steelyard.interval(x, other=y, statistic="trimmed_mean", method="t", contrast="difference")
    assert (robust.low, robust.high) == pytest.approx((yuen.low, yuen.high), rel=1e-10)


def test_clusters_are_compared_by_welch_on_their_logarithms() -> None:
    runs = np.repeat(np.arange(8), 5)
    x, y = skewed(40), 1.2 * skewed(40, 12)
    means = [values.reshape(8, 5).mean(axis=1) for values in (x, y)]
    welch = stats.ttest_ind(np.log(means[1]), np.log(means[0]), equal_var=False).confidence_interval(0.95)
    found = steelyard.interval(x, other=y, clusters=(runs, runs))
    assert (found.low, found.high) == pytest.approx((math.exp(welch.low), math.exp(welch.high)), rel=1e-10)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("count", [40, 121])
def test_exact_limits_are_those_of_the_quantile_test(p: float, count: int) -> None:
    values = skewed(count)
    found = steelyard.interval(values, statistic=("quantile", p), method="exact")
    limits: Any = stats.quantile_test(values, q=0, p=p).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((limits.low, limits.high))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.99])
def test_harrell_davis_is_that_of_scipy(p: float) -> None:
    values = skewed(300)
    expected = float(stats.mstats.hdquantiles(values, [p])[0])
    found = steelyard.interval(values, statistic=("harrell_davis", p), resamples=10)
    assert found.estimate == pytest.approx(expected, rel=1e-9)


def test_the_shift_inverts_the_rank_sum_test() -> None:
    x, y = skewed(20), skewed(17, 12) + 0.4
    found = steelyard.interval(x, other=y, statistic="shift", contrast="difference")
    differences = np.subtract.outer(y, x).ravel()
    assert found.estimate == pytest.approx(float(np.median(differences)))

    def p_value(shift: float) -> float:
        return float(stats.mannwhitneyu(y - shift, x, method="exact").pvalue)

    step = 1e-9
    assert p_value(found.low - step) <= 0.05 < p_value(found.low + step)
    assert p_value(found.high + step) <= 0.05 < p_value(found.high - step)
    ratio = steelyard.interval(x, other=y, statistic="shift")
    assert ratio.estimate == pytest.approx(float(np.median(np.divide.outer(y, x))), rel=0.02)


def test_the_permutation_test_agrees_with_scipy() -> None:
    x, y = skewed(30), 1.15 * skewed(25, 12)

    def welch(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:
        return stats.ttest_ind(a, b, axis=axis, equal_var=False).statistic

    other = stats.permutation_test(
        (x, y), welch, n_resamples=20_000, vectorized=True, rng=np.random.default_rng(1)
    )
    found = permutation_p_value(x, y, Resampling(seed=1, cell=0, resamples=20_000))
    # Two binomial shares of 20 000: standard deviation below 0.005.
    assert found == pytest.approx(float(other.pvalue), abs=0.015)


def by_hand(draw: Callable[[np.random.Generator], np.ndarray], function: Callable[..., np.ndarray]) -> Any:
    rng = np.random.default_rng(3)
    return np.quantile([function(draw(rng)) for _ in range(6000)], [0.025, 0.975])


@pytest.mark.parametrize("statistic", ["mean", "sd", "cv", "iqr", "mad", "trimmed_mean"])
def test_clusters_strata_and_blocks_agree_with_resampling_by_hand(statistic: str) -> None:
    function = FUNCTIONS[statistic]
    sizes = np.random.default_rng(5).integers(2, 9, 40)
    runs = np.repeat(np.arange(40), sizes)
    values = skewed(runs.size) * np.exp(0.3 * np.random.default_rng(6).standard_normal(40))[runs]
    groups = [values[runs == run] for run in range(40)]
    layers = runs // 10
    parts = [values[layers == layer] for layer in range(4)]
    doubled = np.concatenate([values, values])
    blocks = math.ceil(values.size / 12)

    def of_clusters(rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([groups[place] for place in rng.integers(0, 40, 40)])

    def of_strata(rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.choice(part, part.size) for part in parts])

    def of_blocks(rng: np.random.Generator) -> np.ndarray:
        starts = rng.integers(0, values.size, blocks)
        return np.concatenate([doubled[start : start + 12] for start in starts])[: values.size]

    for draw, options in (
        (of_clusters, {"clusters": runs}),
        (of_strata, {"strata": layers}),
        (of_blocks, {"block": 12}),
    ):
        found = steelyard.interval(
            values, statistic=statistic, method="percentile", resamples=RESAMPLES, **options
        )
        low, high = by_hand(draw, function)
        assert_near(found, low, high, share=0.06)


def test_studentised_limits_of_clusters_are_those_of_a_bootstrap_t_by_hand() -> None:
    runs = np.repeat(np.arange(25), 4)
    values = skewed(100) + np.random.default_rng(6).standard_exponential(25)[runs]
    means = values.reshape(25, 4).mean(axis=1)
    rng = np.random.default_rng(5)
    many = 5 * RESAMPLES
    drawn = means[rng.integers(0, 25, (many, 25))]
    t = (drawn.mean(axis=1) - means.mean()) / stats.sem(drawn, axis=1)
    low, high = np.quantile(t, [0.025, 0.975])
    found = steelyard.interval(values, clusters=runs, method="studentised", resamples=many)
    assert_near(found, means.mean() - high * stats.sem(means), means.mean() - low * stats.sem(means))
