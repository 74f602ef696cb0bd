from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from steelyard.analyse.intervals.modality import (
    CRITICAL,
    MOST,
    _quantiles,
    _spread_ties,
    dip,
    has_several_modes,
)


def brute_force(x: np.ndarray) -> float:
    """Give the dip as a linear program: nearest distribution that is convex, then concave, for each mode."""
    count = x.size
    above = np.arange(1, count + 1) / count
    below = above - 1 / count
    best = 1.0
    for mode in range(count):
        # Unknowns: the distribution at each value (left limit at the mode), its jump's top, the distance.
        top, distance = count, count + 1
        rows, limits = [], []

        def require(terms: list[tuple[int, float]], limit: float) -> None:
            row = np.zeros(count + 2)
            for place, weight in terms:
                row[place] += weight
            rows.append(row)  # noqa: B023 - used inside the loop only
            limits.append(limit)  # noqa: B023

        for place in range(count):
            upper = top if place == mode else place
            floor = above[place] if place != mode else below[place]
            require([(place, 1), (distance, -1)], below[place])
            require([(place, -1), (distance, -1)], -floor)
            require([(upper, -1), (distance, -1)], -above[place])
            if place == mode:
                require([(upper, 1), (distance, -1)], above[place])
        require([(mode, 1), (top, -1)], 0)
        sides = [(list(range(mode + 1)), 1.0), ([top, *range(mode + 1, count)], -1.0)]
        for side, sign in sides:
            at = [mode if place == top else place for place in side]
            for (a, b), (i, j) in zip(pairwise(side), pairwise(at), strict=True):
                require([(a, 1), (b, -1)], 0)
                assert x[j] > x[i]
            for step in range(len(side) - 2):
                (a, b, c), (i, j, k) = side[step : step + 3], at[step : step + 3]
                first, second = 1 / (x[j] - x[i]), 1 / (x[k] - x[j])
                require([(b, sign * (first + second)), (a, -sign * first), (c, -sign * second)], 0)
        found = linprog(np.eye(count + 2)[distance], np.array(rows), limits, bounds=(0, 1))
        best = min(best, float(found.fun or 1.0)) if found.success else best
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_dip_is_that_of_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng([83, seed])
    values = np.sort(rng.standard_normal(int(rng.integers(4, 9))))
    if seed % 2:
        values[values.size // 2 :] += 4
    assert dip(values) == pytest.approx(brute_force(values), abs=1e-7)


def test_one_mode_is_called_several_at_most_as_often_as_stated() -> None:
    for sigma in (0.0, 1.0):
        wrong = 0
        for study in range(500):
            rng = np.random.default_rng([89, study])
            wrong += bool(has_several_modes(rng.lognormal(0, sigma, 100) if sigma else rng.random(100)))
        assert float(stats.binom.sf(wrong - 1, 500, 0.01)) > 0.001


def test_the_critical_value_is_the_quantile_it_says() -> None:
    rng = np.random.default_rng(97)
    dips = [np.sqrt(200) * dip(np.sort(rng.random(200))) for _ in range(1000)]
    above = sum(value > CRITICAL for value in dips)
    assert float(stats.binom.sf(above - 1, 1000, 0.01)) > 0.001
    assert float(stats.binom.cdf(above, 1000, 0.01)) > 0.001


def test_two_modes_are_seen_at_any_size() -> None:
    for size in (40, 400, 50_000):
        rng = np.random.default_rng(size)
        values = np.where(rng.random(size) < 0.4, 1.0, 1.3) * np.exp(0.03 * rng.standard_normal(size))
        assert has_several_modes(values)


def test_a_clock_with_coarse_steps_makes_no_modes() -> None:
    rng = np.random.default_rng(101)
    ticks = np.round(rng.normal(100, 1.5, 300))
    assert has_several_modes(ticks) is False
    assert has_several_modes(np.full(MOST, 3.0)) is False


def test_few_values_give_no_answer() -> None:
    assert has_several_modes(np.arange(19.0)) is None
    assert has_several_modes(np.empty(0)) is None


def test_quantiles_of_sorted_values_are_those_of_numpy() -> None:
    values = np.sort(np.random.default_rng(1).gamma(2, 1, 1234))
    places = (np.arange(MOST) + 0.5) / MOST
    assert np.array_equal(_quantiles(values, places), np.quantile(values, places))


def test_equal_values_are_spread_over_their_step() -> None:
    found = _spread_ties(np.array([1.0, 2.0, 2.0, 4.0, 4.0, 4.0]))
    assert found == pytest.approx([1, 1.75, 2.25, 11 / 3, 4, 13 / 3])
