from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.cost_curve.break_count import break_counts
from steelyard.analyse.cost_curve.segments import SegmentOptions, fit_segments


def planted(count: int, seed: int, breaks: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([61, seed])
    x = 10 ** rng.uniform(0, 7, count)
    level = np.array([5.0, 8.0, 30.0])[np.searchsorted([3e3, 6.5e4][:breaks], x)] * (1 + 1e-7 * x)
    return x, level * (1 + rng.lognormal(np.log(0.05), 1.0, count))


@pytest.mark.parametrize("breaks", [0, 1, 2])
def test_the_planted_number_is_best_out_of_sample(breaks: int) -> None:
    agreed = 0
    for seed in range(10):
        x, y = planted(800, seed, breaks)
        chosen = len(fit_segments(x, y, resamples=0).breakpoints)
        found = break_counts(x, y, chosen)
        assert found is not None
        assert chosen == breaks
        agreed += found.agree
        errors = [row.error for row in found.rows]
        if breaks:
            # Fewer pieces than there are must be visibly worse.
            assert errors[breaks - 1] > 1.1 * errors[breaks]
            assert found.rows[breaks - 1].excess > 3 * found.rows[breaks - 1].excess_error
    assert agreed >= 8


def test_errors_are_those_of_data_that_were_left_out() -> None:
    # With as many pieces as a low price buys, the error inside falls below that outside.
    x, y = planted(400, 3, 0)
    inside = fit_segments(x, y, options=SegmentOptions(break_penalty=0.5, floor=0.0), resamples=0)
    found = break_counts(x, y, 1, options=SegmentOptions(floor=0.0))
    assert found is not None
    shares = y / inside.predict(x) - 1
    assert found.rows[0].error > float(np.sqrt(np.mean(np.clip(shares, None, 3 * inside.sigma) ** 2)))


def test_long_data_are_thinned_and_short_ones_refused() -> None:
    found = break_counts(*planted(9000, 1, 2), 2)
    assert found is not None
    assert found.points == 4000
    assert found.out_of_sample == 2
    assert break_counts(np.arange(1.0, 11.0), np.ones(10), 0) is None


def test_flat_data_need_no_break() -> None:
    found = break_counts(np.arange(1.0, 101.0), np.full(100, 3.0), 0)
    assert found is not None
    assert found.out_of_sample == 0
