from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.studies.colocation.bins import Requests, bin_trial

TIMES = st.lists(st.floats(0.0, 9.999), max_size=200)


def _requests(due_s: list[float], seed: int = 1) -> Requests:
    rng = np.random.default_rng(seed)
    intended_s = np.sort(np.array(due_s, dtype=np.float64))
    count = intended_s.size
    return Requests(
        intended_s,
        rng.exponential(0.01, count),
        rng.random(count) < 0.9,
        np.zeros(count, bool),
        np.zeros(count),
    )


@given(TIMES, TIMES)
def test_every_request_and_every_iteration_is_in_one_bin(due_s: list[float], ends_s: list[float]) -> None:
    requests = _requests(due_s)
    bins = bin_trial(requests, np.array(ends_s, dtype=np.float64), 10.0)
    assert bins.start_s.size == 100
    assert bins.count.sum() == len(due_s)
    assert bins.unanswered.sum() == (~requests.is_answered).sum()
    assert bins.iterations.sum() == len(ends_s)
    whole = np.nansum(bins.mean_s * bins.count)
    assert np.isclose(whole, requests.latency_s.sum())


@given(TIMES)
def test_quantiles_lie_inside_and_empty_bins_have_none(due_s: list[float]) -> None:
    requests = _requests(due_s)
    bins = bin_trial(requests, np.zeros(0), 10.0)
    is_empty = bins.count == 0
    for values in (bins.mean_s, bins.p50_s, bins.p99_s):
        assert np.array_equal(np.isnan(values), is_empty)
    assert np.all(bins.p50_s[~is_empty] <= bins.p99_s[~is_empty])
    if due_s:
        assert np.nanmax(bins.p99_s) <= requests.latency_s.max() * (1 + 1e-12)


def test_what_ends_after_the_trial_is_in_the_last_bin() -> None:
    bins = bin_trial(_requests([0.05, 1.95]), np.array([0.15, 2.3]), 1.99)
    assert bins.count.tolist() == [1.0, *[0.0] * 18, 1.0]
    assert np.flatnonzero(bins.iterations).tolist() == [1, 19]
