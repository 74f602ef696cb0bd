from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.intervals.granularity import detect_grid


def ticks(step: float, count: int = 400, seed: int = 1) -> np.ndarray:
    values = np.random.default_rng(seed).lognormal(-1.2, 0.2, count)
    return np.round(values / step) * step


@pytest.mark.parametrize("step", [0.01, 0.004, 0.001, 0.0005, 1e-5, 1e-6])
def test_an_exact_grid_is_found(step: float) -> None:
    assert detect_grid([ticks(step)]).step_s == pytest.approx(step)


def test_a_coarse_clock_printed_with_more_digits_keeps_its_step() -> None:
    jitter = np.random.default_rng(2).choice([-1e-4, 0.0, 1e-4], 400)
    grid = detect_grid([np.round(ticks(1e-3) + jitter, 4)])
    assert grid.clock_step_s == pytest.approx(1e-3)
    assert grid.printing_step_s == pytest.approx(1e-4)


def test_digits_alone_are_no_clock_grid() -> None:
    values = np.round(np.random.default_rng(3).lognormal(-1.2, 0.2, 1000), 4)
    grid = detect_grid([values])
    assert grid.clock_step_s is None
    assert grid.step_s == pytest.approx(1e-4)


def test_nanoseconds_that_hardly_vary_do_not_look_like_a_coarse_clock() -> None:
    rng = np.random.default_rng(4)
    groups = [np.round(centre + 2e-6 * rng.standard_normal(100), 9) for centre in (0.1, 0.2003, 0.35)]
    assert detect_grid(groups).step_s <= 1e-9 * 1.001


def test_a_coarse_clock_that_hardly_varies_is_told_by_its_ties() -> None:
    rng = np.random.default_rng(5)
    groups = [0.01 * rng.integers(low, low + 2, 100).astype(np.float64) for low in (10, 21, 35)]
    assert detect_grid(groups).step_s == pytest.approx(0.01)


def test_a_grid_shifted_off_zero_is_none() -> None:
    values = ticks(1e-3) + 0.0005
    assert detect_grid([values]).clock_step_s != pytest.approx(1e-3)


def test_no_values_give_no_grid() -> None:
    assert detect_grid([]).clock_step_s is None
    assert detect_grid([np.array([0.1, 0.2])]).clock_step_s is None
