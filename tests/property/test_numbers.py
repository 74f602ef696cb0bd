"""Any numbers through the public functions: a clear answer or a clear refusal, never a traceback."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard
from steelyard.errors import AnalysisError, SteelyardError

ODD = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-300, 1e200, 2.0**53 + 2]
NUMBERS = st.one_of(
    st.integers(-5, 5).map(float), st.floats(1, 100), st.sampled_from(ODD), st.floats(allow_subnormal=True)
)
SAMPLES = st.one_of(
    st.lists(NUMBERS, max_size=3),
    st.lists(NUMBERS, max_size=40),
    st.builds(lambda value, count: [value] * count, NUMBERS, st.integers(0, 40)),
    st.lists(st.floats(1, 100), min_size=5, max_size=40),
)
STATISTICS = st.sampled_from(
    [
        "mean",
        "sd",
        "cv",
        "median",
        "iqr",
        "mad",
        "trimmed_mean",
        ("trimmed_mean", 0.4),
        ("quantile", 0.99),
        ("harrell_davis", 0.5),
        ("quantile_ratio", 0.99, 0.5),
        "shift",
    ]
)
METHODS = st.sampled_from(
    ["auto", "percentile", "basic", "bca", "studentised", "t", "effective_t", "batch_t", "exact"]
)


def check_refusal(error: SteelyardError) -> None:
    """A refusal says what is wrong in one line, and what to do."""
    assert str(error)
    assert "\n" not in str(error)
    assert error.hint


@settings(max_examples=400, deadline=None)
@given(SAMPLES, st.one_of(st.none(), SAMPLES), STATISTICS, METHODS)
def test_an_interval_of_anything(
    sample: list[float], other: list[float] | None, statistic: object, method: str
) -> None:
    try:
        found = steelyard.interval(sample, statistic=statistic, method=method, other=other, resamples=50)
    except SteelyardError as error:
        check_refusal(error)
        return
    assert all(math.isfinite(value) for value in [*sample, *(other or [])])
    assert math.isfinite(found.estimate)
    assert not found.low > found.high
    assert found.guaranteed or found.reason


@settings(max_examples=300, deadline=None)
@given(SAMPLES, SAMPLES, st.booleans(), st.booleans(), st.booleans())
def test_a_linear_model_of_anything(
    x: list[float],
    y: list[float],
    log: bool,  # noqa: FBT001 - drawn
    intercept: bool,  # noqa: FBT001 - drawn
    in_clusters: bool,  # noqa: FBT001 - drawn
) -> None:
    count = min(len(x), len(y))
    clusters = [number // 2 for number in range(count)] if in_clusters else None
    try:
        model = steelyard.linear_model(x[:count], y[:count], log=log, intercept=intercept, clusters=clusters)
    except SteelyardError as error:
        check_refusal(error)
        return
    assert all(math.isfinite(value) for value in [*x[:count], *y[:count]])
    assert model.count == count > 0
    assert math.isfinite(model.residual_sum)
    assert model.summary().startswith("\nCall:")
    low, *_, high = model.residual_quartiles
    assert low <= high
    assert model.residuals.min() == low
    assert model.residuals.max() == high


@settings(max_examples=150, deadline=None)
@given(SAMPLES, SAMPLES, st.booleans())
def test_a_piecewise_model_of_anything(x: list[float], y: list[float], is_given: bool) -> None:  # noqa: FBT001
    count = min(len(x), len(y))
    breaks = [sorted(x[:count])[count // 2]] if is_given and count else None
    try:
        model = steelyard.fit_segments(x[:count], y[:count], breaks=breaks, resamples=20)
    except SteelyardError as error:
        check_refusal(error)
        return
    assert all(math.isfinite(value) for value in [*x[:count], *y[:count]])
    assert sum(piece.model.count for piece in model.pieces) == count


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_values_are_answered_or_refused_by_number(count: int) -> None:
    sample = [3.0, 5.0][:count]
    if count == 0:
        with pytest.raises(AnalysisError, match="empty"):
            steelyard.interval(sample)
    elif count == 1:
        with pytest.raises(AnalysisError, match="1 values given, at least 2 needed"):
            steelyard.interval(sample)
    else:
        found = steelyard.interval(sample)
        assert (found.estimate, found.guaranteed) == (4.0, False)
    with pytest.raises(AnalysisError):
        steelyard.fit_segments(sample, sample)


def test_a_constant_sample_is_a_point_that_guarantees_nothing() -> None:
    found = steelyard.interval(np.full(100, 7.0))
    assert (found.low, found.estimate, found.high) == (7.0, 7.0, 7.0)
    assert "no spread" in found.reason


def test_more_points_than_a_search_holds_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.analyse.cost_curve.segments.MOST_POINTS", 100)
    x = np.arange(1.0, 102.0)
    with pytest.raises(AnalysisError, match="a search for breaks takes at most 100") as caught:
        steelyard.fit_segments(x, x)
    assert "median" in str(caught.value.hint)
    assert len(steelyard.fit_segments(x, x, breaks=[50.0]).pieces) == 2


@pytest.mark.parametrize(("scale", "words"), [(1e200, "not finite numbers"), (1e-200, "vanish")])
def test_values_whose_powers_are_lost_are_refused(scale: float, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        steelyard.interval(np.array([1.0, 2.0, 4.0]) * scale, statistic="sd")
