"""The simulator says the truth about itself."""

from __future__ import annotations

import numpy as np
import pytest

from statistical.scenarios import PROCESSES, Scenario, scenarios

DRAWS = 400_000


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.letter)
def test_the_truth_is_that_of_many_draws(scenario: Scenario) -> None:
    # Many short series: one long series of ten processes would have ten levels only.
    rng = np.random.default_rng(7)
    length = 100 if scenario.has_processes else 2000
    values = np.concatenate([scenario.draw(rng, length) for _ in range(DRAWS // length)])
    spread = values.std()
    # Correlated and clustered values carry less information than their number says.
    effective = DRAWS / 25
    assert abs(values.mean() - scenario.mean) < 5 * spread / np.sqrt(effective)
    low, high = np.quantile(values, [0.25, 0.75])
    assert high - low == pytest.approx(scenario.quartile_range, rel=0.03)


def test_processes_are_labelled_in_the_order_of_the_values() -> None:
    clustered = next(scenario for scenario in scenarios() if scenario.has_processes)
    labels = clustered.processes(100)
    assert labels is not None
    assert np.bincount(labels).tolist() == [10] * PROCESSES
    values = clustered.draw(np.random.default_rng(1), 10_000)
    groups = values.reshape(PROCESSES, -1).mean(axis=1)
    assert groups.std() > 0.08
