from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.peaks.call_times import summarise
from steelyard.analyse.peaks.peak_search import (
    Rule,
    Threshold,
    estimate_rate,
    find_episodes,
    parse_threshold,
    rate_ratio,
)
from steelyard.analyse.peaks.spike_timeline import spike_timeline
from steelyard.errors import AnalysisError, UsageError

whole = st.lists(st.integers(0, 10**9), min_size=1, max_size=300)


@given(whole, st.integers(1, 50))
def test_a_summary_is_that_of_numpy_however_the_calls_are_cut(values: list[int], size: int) -> None:
    array = np.array(values, np.int64)
    times = summarise(lambda: np.split(array, range(size, array.size, size)))
    assert (times.count, times.min_ns, times.max_ns) == (array.size, array.min(), array.max())
    assert times.mean_ns == pytest.approx(array.mean(), rel=1e-12)
    if array.size > 1:
        assert times.sd_ns == pytest.approx(array.std(ddof=1), rel=1e-9, abs=1e-9)
    for share, value in times.quantiles_ns.items():
        assert value == pytest.approx(np.quantile(array, share), rel=1e-12, abs=1e-6)
    deviations = np.abs(array - np.median(array))
    assert times.mad_ns == pytest.approx(np.median(deviations), rel=1e-12, abs=1e-9)


def test_many_calls_are_read_again_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.analyse.peaks.call_times.KEPT", 10)
    asked = 0

    def batches() -> list[np.ndarray]:
        nonlocal asked
        asked += 1
        return [np.arange(8), np.arange(8, 16)]

    assert summarise(batches).median_ns == 7.5
    assert asked > 1


def test_nothing_and_negative_durations_are_refused() -> None:
    with pytest.raises(AnalysisError, match="no calls"):
        summarise(list)
    with pytest.raises(AnalysisError, match="-5"):
        summarise(lambda: [np.array([3, -5])])


def test_thresholds_follow_their_rules() -> None:
    times = summarise(lambda: [np.array([10, 11, 12, 13, 200])])
    assert Threshold().above_ns(times) == 12 + 10 * 1
    assert Threshold(Rule.SIGMA, 2).above_ns(times) == pytest.approx(times.mean_ns + 2 * times.sd_ns)
    assert Threshold(Rule.ABSOLUTE, 150).above_ns(times) == 150


def test_a_coarse_clock_does_not_turn_half_of_the_calls_into_peaks() -> None:
    durations = np.repeat([1000, 2000, 3000, 90_000], [600, 300, 95, 5])
    times = summarise(lambda: [durations])
    assert times.mad_ns == 0
    assert Threshold().above_ns(times) == 1000 + 10 * 1000
    assert (durations > Threshold().above_ns(times)).sum() == 5


@pytest.mark.parametrize(
    "text", ["", "mean", "sigma", "sigma:", "sigma:-1", "sigma:x", "absolute:inf", "robust:0"]
)
def test_a_wrong_threshold_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UsageError, match="sigma:K") as refusal:
        parse_threshold(text)
    assert refusal.value.exit_code == 2


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(0, 100))
def test_episodes_hold_every_peak_once(numbers: set[int], usual: int) -> None:
    number = np.array(sorted(numbers))
    duration = 1000 + number % 7
    found = find_episodes(number, number * 2000, duration, float(usual))
    assert int(found.calls.sum()) == number.size
    assert found.excess_ns.sum() == pytest.approx((duration - usual).sum())
    assert (np.diff(found.first) > found.calls[:-1]).all()
    line = spike_timeline(found, 0, 2000 * 501, bins=13)
    assert int(line.episodes.sum()) == found.count
    assert line.worst_ns.max() == duration.max()


@pytest.mark.parametrize(("mean", "dispersion"), [(3.0, 0.0), (20.0, 0.0), (15.0, 0.6)])
def test_intervals_of_rates_cover(mean: float, dispersion: float) -> None:
    rng = np.random.default_rng(11)
    hits, runs = 0, 400
    for _ in range(runs):
        scale = rng.gamma(1 / dispersion, dispersion, 12) if dispersion else np.ones(12)
        rate = estimate_rate(rng.poisson(mean * scale).tolist(), [1000.0] * 12)
        hits += rate.low <= mean / 1000 <= rate.high
    # At least the nominal 95 %, less three binomial standard errors and 2 % for the estimated dispersion.
    assert hits / runs > 0.93 - 3 * math.sqrt(0.95 * 0.05 / runs)


def test_clusters_widen_the_interval_and_say_so() -> None:
    clustered = estimate_rate([0, 0, 60, 0, 1, 0, 55, 0], [100.0] * 8)
    even = estimate_rate([14, 15, 14, 15, 14, 15, 14, 15], [100.0] * 8)
    assert (clustered.method, even.method) == ("negative-binomial", "poisson")
    assert clustered.count == even.count
    assert clustered.high / clustered.low > 3 * even.high / even.low
    assert not rate_ratio(even, clustered).is_guaranteed


def test_a_ratio_agrees_with_the_exact_binomial_test() -> None:
    few, many = estimate_rate([5], [1000.0]), estimate_rate([19], [2000.0])
    found = rate_ratio(few, many)
    assert found.value == pytest.approx(1.9)
    assert found.p_value == pytest.approx(stats.binomtest(19, 24, 2 / 3).pvalue)
    assert found.low < 1.9 < found.high
    assert rate_ratio(estimate_rate([0], [10.0]), many).high == math.inf
    with pytest.raises(AnalysisError, match="neither side has a peak"):
        rate_ratio(estimate_rate([0], [10.0]), estimate_rate([0], [10.0]))
