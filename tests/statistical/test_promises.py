"""What the procedures promise, simulated: error rates with binomial bounds, fixed seeds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from steelyard import _native
from steelyard.analyse.comparison.equivalence import Margin, Verdict, ratio_test, verdict_of
from steelyard.analyse.comparison.published_rule import PublishedClass, published_class
from steelyard.analyse.intervals.bootstrap import (
    Resampling,
    Statistic,
    bootstrap_intervals,
    interquartile_range,
)
from steelyard.analyse.intervals.clustering import Units
from steelyard.analyse.series.warm_up import PENALTY, SHORTEST_SEGMENT, SeriesClass, classify_series

if TYPE_CHECKING:
    from collections.abc import Callable

DIFFERENT = {PublishedClass.HIGHER, PublishedClass.LESSER}


def clustered(rng: np.random.Generator, units: int, iterations: int, shift: float = 0.0) -> Units:
    """Give scenario I: lognormal times, half of the log-variance (0.2 squared) between units."""
    sigma = 0.2 / np.sqrt(2)
    levels = shift + sigma * rng.standard_normal(units)
    return Units("worker", tuple(np.exp(level + sigma * rng.standard_normal(iterations)) for level in levels))


def at_most(errors: int, studies: int, nominal: float) -> bool:
    """Whether so many errors are compatible with the nominal rate (one-sided, 1 in 1000)."""
    return float(stats.binom.sf(errors - 1, studies, nominal)) > 0.001


def test_identical_cells_are_called_different_at_no_more_than_the_nominal_rate(
    simulated: Callable[[int], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    studies, own, published = simulated(200), 0, 0
    for study in range(studies):
        rng = np.random.default_rng([41, study])
        sides = [clustered(rng, 10, 100) for _ in range(2)]
        test = ratio_test(*(side.statistics(Statistic.MEAN) for side in sides))
        own += verdict_of(test, test.p_different, test.p_equivalent) in {Verdict.SLOWER, Verdict.FASTER}
        limits = [
            bootstrap_intervals(
                np.concatenate(side.values), Resampling(seed=study, cell=place), (Statistic.MEAN,)
            )[Statistic.MEAN].percentile
            for place, side in enumerate(sides)
        ]
        published += published_class(*limits) in DIFFERENT
    rates = f"Steelyard {own / studies:.1%}, published rule {published / studies:.1%}"
    with capsys.disabled():
        sys.stdout.write(f"\nA/A over {studies} studies, called different: {rates}\n")
    assert at_most(own, studies, 0.05)
    assert published / studies > 0.4  # measured elsewhere: 70.5 %


def test_cells_that_differ_by_the_margin_are_rarely_called_equivalent(
    simulated: Callable[[int], int],
) -> None:
    studies, wrong = simulated(1000), 0
    for study in range(studies):
        rng = np.random.default_rng([43, study])
        first, second = (
            np.exp(shift + 0.01 * rng.standard_normal(8)) for shift in (0.0, float(np.log(1.02)))
        )
        test = ratio_test(first, second, Margin())
        wrong += verdict_of(test, test.p_different, test.p_equivalent) is Verdict.EQUIVALENT
    assert at_most(wrong, studies, 0.05)


@pytest.mark.parametrize("count", [30, 100])
def test_studentised_interval_of_the_mean_covers_skewed_data(
    count: int, simulated: Callable[[int], int]
) -> None:
    studies, truth = simulated(1000), 1 + float(np.exp(0.125))
    covered = 0
    for study in range(studies):
        values = 1 + np.random.default_rng([47, study]).lognormal(0, 0.5, count)
        low, high = bootstrap_intervals(values, Resampling(seed=1, cell=study), (Statistic.MEAN,))[
            Statistic.MEAN
        ].studentised
        covered += low <= truth <= high
    # Promise: at least 93 %.
    assert at_most(studies - covered, studies, 0.07), covered


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_interval_of_the_interquartile_range_covers_skewed_data(
    sigma: float, simulated: Callable[[int], int]
) -> None:
    studies, covered = simulated(1000), 0
    truth = float(np.subtract(*np.exp(sigma * stats.norm.ppf([0.75, 0.25]))))
    for study in range(studies):
        values = np.random.default_rng([53, study]).lognormal(0, sigma, 100)
        low, high = interquartile_range(values, Resampling(seed=1, cell=study)).percentile
        covered += low <= truth <= high
    assert at_most(studies - covered, studies, 0.07), covered


def test_the_price_of_a_change_alone_cuts_noise_in_less_than_two_per_cent(
    simulated: Callable[[int], int],
) -> None:
    studies = simulated(2000)
    cut = 0
    for study in range(studies):
        values = 1 + 0.05 * np.random.default_rng([61, study]).standard_normal(100)
        cut += len(_native.change_points(values, penalty=PENALTY, shortest=SHORTEST_SEGMENT)) > 0
    assert at_most(cut, studies, 0.02), cut


def test_series_without_a_trend_are_called_flat(simulated: Callable[[int], int]) -> None:
    studies = simulated(500)
    wrong = sum(
        classify_series(1 + np.random.default_rng([59, study]).lognormal(-2, 0.5, 100)).shape
        is not SeriesClass.FLAT
        for study in range(studies)
    )
    assert at_most(wrong, studies, 0.02), wrong
