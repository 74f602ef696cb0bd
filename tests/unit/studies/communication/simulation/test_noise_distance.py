from __future__ import annotations

import numpy as np
import pytest

from steelyard.studies.communication.simulation.noise_distance import (
    NoiseDistance,
    QuantileRatio,
    quantile_ratios,
)


def draw(generator: np.random.Generator, count: int) -> np.ndarray:
    """Draw a body with a second mode and one heavy delay in a hundred."""
    body = np.where(generator.random(count) < 0.2, 2.5, 1.0) * generator.lognormal(0, 0.1, count)
    rare = 5 * generator.random(count) ** (-1 / 1.5)
    return np.asarray(body + np.where(generator.random(count) < 0.01, rare, 0.0))


def test_intervals_hold_the_truth_in_95_of_100_samples_of_one_law() -> None:
    generator = np.random.default_rng(1)
    held = np.zeros(3)
    trials = 400
    for _ in range(trials):
        found = quantile_ratios(draw(generator, 5000), draw(generator, 800))
        held += [each.low <= 1 <= (np.inf if each.high is None else each.high) for each in found]
    assert (held >= 0.95 * trials).all(), held


def test_no_quantile_of_another_scale_is_called_alike_and_none_of_the_same_different() -> None:
    generator = np.random.default_rng(2)
    same = other = 0
    for _ in range(100):
        measured = draw(generator, 3000)
        same += sum(
            each.verdict == "beyond 10 %" for each in quantile_ratios(draw(generator, 30_000), measured)
        )
        other += sum(
            each.verdict == "within 10 %"
            for each in quantile_ratios(1.1001 * draw(generator, 30_000), measured)
        )
    # Of 300 quantiles at the margin itself one in 40 may be called alike.
    assert same == 0
    assert other <= 12


def test_what_too_few_values_cannot_tell_is_undecided() -> None:
    generator = np.random.default_rng(3)
    median, _, p99 = quantile_ratios(draw(generator, 10_000), draw(generator, 436))
    assert (p99.low, p99.verdict) == (0.0, "undecided")
    assert median.low > 0
    assert quantile_ratios(draw(generator, 10_000), draw(generator, 2))[0].high is None
    # Surely too small is surely wrong, however uncertain what was measured is.
    assert quantile_ratios(0.1 * draw(generator, 10_000), draw(generator, 436))[2].verdict == "beyond 10 %"


@pytest.mark.parametrize(
    ("quantiles", "verdict"),
    [
        ([(0.95, 1.05), (0.92, 1.08)], "within 10 %"),
        ([(0.95, 1.05), (0.92, 1.12)], "undecided"),
        ([(0.95, 1.05), (0.0, None)], "undecided"),
        ([(0.92, 1.12), (0.2, 0.89)], "beyond 10 %"),
        ([(1.11, None)], "beyond 10 %"),
    ],
)
def test_a_class_is_within_10_percent_if_all_its_quantiles_are(
    quantiles: list[tuple[float, float | None]], verdict: str
) -> None:
    ratios = tuple(QuantileRatio(95, 1.0, low, high) for low, high in quantiles)
    assert NoiseDistance(None, None, 9, 0.1, 0.5, ratios).verdict == verdict
