from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.analyse.comparison.alpha_spending import (
    crossing_bounds,
    pocock_spending,
    staged_spending,
)
from steelyard.errors import AnalysisError


@pytest.mark.parametrize(
    ("looks", "constant"),
    # SOURCE: Jennison & Turnbull (2000), table 2.1: Pocock's constants, two-sided error 0.05.
    [(2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555)],
)
def test_bounds_are_pococks_where_his_errors_are_spent(looks: int, constant: float) -> None:
    information = tuple(float(k) for k in range(1, looks + 1))
    rng = np.random.default_rng(1)
    scores = np.cumsum(rng.standard_normal((400_000, looks)), axis=1) / np.sqrt(information)
    ever = np.maximum.accumulate(np.abs(scores) >= constant, axis=1)
    spent = tuple(float(part) for part in ever.mean(axis=0))
    assert spent[-1] == pytest.approx(0.05, abs=0.0015)
    assert crossing_bounds(information, spent, 2) == pytest.approx([constant] * looks, abs=0.04)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.sampled_from([1, 2]),
    st.sampled_from([0.01, 0.05]),
)
def test_walks_cross_the_bounds_as_often_as_was_spent(steps: list[int], sides: int, error: float) -> None:
    information = tuple(float(total) for total in np.cumsum(steps))
    spent = tuple(pocock_spending(error, total / information[-1]) for total in information)
    bounds = np.array(crossing_bounds(information, spent, sides))
    rng = np.random.default_rng(2)
    count = 60_000
    walks = np.cumsum(rng.standard_normal((count, len(steps))) * np.sqrt(steps), axis=1)
    scores = walks / np.sqrt(information)
    crossed = np.abs(scores) >= bounds if sides == 2 else scores >= bounds
    found = int(crossed.any(axis=1).sum())
    assert stats.binom.sf(found - 1, count, error) > 1e-6
    assert stats.binom.cdf(found, count, error) > 1e-6


def test_a_single_look_has_the_usual_bound() -> None:
    assert crossing_bounds((7.0,), (0.05,), 2) == pytest.approx([stats.norm.isf(0.025)])
    assert crossing_bounds((7.0,), (0.05,), 1) == pytest.approx([stats.norm.isf(0.05)])


def test_a_look_that_spends_nothing_never_ends_the_test() -> None:
    bounds = crossing_bounds((1.0, 2.0, 3.0), (0.0, 0.02, 0.02), 2)
    assert math.isinf(bounds[0])
    assert math.isinf(bounds[2])
    assert bounds[1] == pytest.approx(stats.norm.isf(0.01), abs=1e-4)


def test_spending_is_monotone_and_stays_within_the_error() -> None:
    parts = [pocock_spending(0.05, fraction) for fraction in np.linspace(-0.5, 1.5, 41)]
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0.0, 0.05)


def test_looks_must_ascend() -> None:
    with pytest.raises(AnalysisError):
        crossing_bounds((2.0, 2.0), (0.01, 0.02), 2)
    with pytest.raises(AnalysisError):
        crossing_bounds((1.0, 2.0), (0.02, 0.01), 2)


def test_each_stage_spends_the_whole_error_again_and_the_first_is_as_before() -> None:
    for fraction in (0.0, 0.3, 1.0):
        assert staged_spending(0.05, fraction) == pocock_spending(0.05, fraction)
        assert staged_spending(0.05, 1 + fraction) == pytest.approx(0.05 + pocock_spending(0.05, fraction))
    spent = [staged_spending(0.05, fraction) for fraction in np.linspace(0, 3, 61)]
    assert spent == sorted(spent)
