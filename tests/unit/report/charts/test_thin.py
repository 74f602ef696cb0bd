from __future__ import annotations

import numpy as np
import pytest

from steelyard.report.charts.thin import envelope


@pytest.mark.parametrize("limit", [2, 10, 101, 5000])
def test_extremes_survive_and_the_limit_holds(limit: int) -> None:
    values = np.random.default_rng(3).normal(size=20_000)
    values[[137, 19_876]] = [-50.0, 50.0]
    kept = envelope(values, limit)
    assert kept.size <= limit
    assert {137, 19_876} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()


def test_few_points_are_all_kept() -> None:
    assert envelope(np.arange(5.0), 5).tolist() == [0, 1, 2, 3, 4]
