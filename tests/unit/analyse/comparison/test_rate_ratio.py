"""Ratios of rates against exact binomial limits, and how often they hold where runs scatter widely."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison.rate_ratio import RunCounts, dispersed_rate_ratio

SERIES = 600


def test_without_dispersion_the_limits_are_those_of_clopper_and_pearson() -> None:
    found = dispersed_rate_ratio(RunCounts((40,), (2.0,)), RunCounts((10,), (1.0,)))
    limits = stats.binomtest(10, 50).proportion_ci(0.95, method="exact")
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(2 * limits.low / (1 - limits.low))
    assert found.high == pytest.approx(2 * limits.high / (1 - limits.high))


def test_no_events_after_many_give_a_bound_and_none_before_give_no_value() -> None:
    many, none = RunCounts((100,), (1.0,)), RunCounts((0,), (1.0,))
    gone = dispersed_rate_ratio(many, none)
    assert (gone.value, gone.low) == (0.0, 0.0)
    assert 0 < gone.high < 0.05
    new = dispersed_rate_ratio(none, many)
    assert math.isnan(new.value)
    assert math.isinf(new.high)


def test_the_limits_hold_where_runs_scatter_by_more_than_chance() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(SERIES):
        sides = [rng.poisson(rate * rng.gamma(5, 1 / 5, 8)) for rate in (60.0, 30.0)]
        before, after = (RunCounts(tuple(side.tolist()), (1.0,) * 8) for side in sides)
        found = dispersed_rate_ratio(before, after)
        hits += found.low <= 0.5 <= found.high
    assert stats.binomtest(hits, SERIES, 0.95).pvalue > 0.001 or hits > 0.95 * SERIES
