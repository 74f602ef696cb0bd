"""Components of variance and the prediction for a new device, on devices that are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.intervals.device_variance import device_scatter

SERIES = 500


def test_two_devices_say_nothing_of_a_third() -> None:
    assert device_scatter([np.array([1.0, 1.1]), np.array([1.0, 1.2])]) is None


def test_the_prediction_holds_the_next_device_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(SERIES):
        runs = [np.exp(0.05 * rng.standard_normal() + 0.02 * rng.standard_normal(6)) for _ in range(5)]
        found = device_scatter(runs[:4])
        assert found is not None
        middle = np.mean([np.log(each).mean() for each in runs[:4]])
        hits += np.log(found.low) <= np.log(runs[4]).mean() - middle <= np.log(found.high)
    assert stats.binomtest(hits, SERIES, 0.95).pvalue > 0.001


def test_the_components_are_those_that_were_drawn() -> None:
    rng = np.random.default_rng(3)
    found = [
        device_scatter(
            [np.exp(0.05 * rng.standard_normal() + 0.02 * rng.standard_normal(6)) for _ in range(6)]
        )
        for _ in range(300)
    ]
    between = np.sqrt(np.mean([each.between_sd**2 for each in found if each is not None]))
    within = np.sqrt(np.mean([each.within_sd**2 for each in found if each is not None]))
    assert between == pytest.approx(0.05, rel=0.1)
    assert within == pytest.approx(0.02, rel=0.05)
