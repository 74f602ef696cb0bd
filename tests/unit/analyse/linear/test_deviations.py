from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.linear.deviations import Scale, deviations, quantile_plot


def test_noise_that_grows_with_the_level_gives_factors() -> None:
    rng = np.random.default_rng(1)
    curve = 10 ** rng.uniform(0, 4, 1000)
    noise = rng.normal(0, 0.05, 1000)
    scale, values = deviations(curve, curve * (1 + noise))
    assert scale is Scale.FACTOR
    assert values == pytest.approx(1 + noise)
    scale, values = deviations(curve, curve + noise)
    assert scale is Scale.DIFFERENCE
    assert values == pytest.approx(noise, abs=1e-10)


def test_values_that_are_not_positive_give_differences() -> None:
    assert deviations([1.0, 2.0], [-1.0, 2.0])[0] is Scale.DIFFERENCE
    assert deviations([-1.0, 2.0], [1.0, 2.0])[0] is Scale.DIFFERENCE
    assert deviations([2.0, 2.0], [1.0, 3.0])[0] is Scale.FACTOR


def test_short_plots_are_complete_and_long_ones_exact_at_both_ends() -> None:
    rng = np.random.default_rng(2)
    few = rng.normal(size=300)
    plot = quantile_plot(few)
    assert plot.values.tolist() == sorted(few)
    assert plot.ranks.tolist() == list(range(1, 301))
    many = rng.lognormal(size=100_000)
    plot = quantile_plot(many)
    assert plot.values.size == 512
    assert plot.count == 100_000
    ascending = np.sort(many)
    assert plot.values[:64].tolist() == ascending[:64].tolist()
    assert plot.values[-64:].tolist() == ascending[-64:].tolist()
    assert np.all(np.diff(plot.ranks) > 0)
    assert plot.values.tolist() == ascending[plot.ranks - 1].tolist()


def test_expected_values_are_those_of_the_law() -> None:
    values = np.arange(1.0, 101.0)
    shares = (np.arange(1, 101) - 0.5) / 100
    assert quantile_plot(values).expected == pytest.approx(stats.norm.ppf(shares))
    assert quantile_plot(values, stats.expon.ppf).expected == pytest.approx(stats.expon.ppf(shares))


# R 4.2.2: sort(qqnorm(c(3, 1, 2, 7, 5), plot.it = FALSE)$x), printed digits.
QQNORM = [-1.1797611176, -0.4972005707, 0.0, 0.4972005707, 1.1797611176]


def test_a_short_normal_plot_is_that_of_r() -> None:
    assert quantile_plot([3.0, 1.0, 2.0, 7.0, 5.0]).expected == pytest.approx(QQNORM, abs=1e-9)
