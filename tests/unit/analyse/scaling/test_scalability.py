from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import nnls

from steelyard.analyse.scaling.scalability import (
    Scalability,
    fit_amdahl,
    fit_usl,
    serial_fraction,
    spread_of,
)
from steelyard.errors import AnalysisError

WORKERS = np.array([1.0, 2, 3, 7, 13])


def usl(p: np.ndarray, gamma: float, sigma: float, kappa: float) -> np.ndarray:
    return np.asarray(gamma * p / (1 + sigma * (p - 1) + kappa * p * (p - 1)))


@given(st.floats(0.2, 2), st.floats(0, 0.9), st.floats(0, 0.1))
def test_exact_data_give_their_parameters(gamma: float, sigma: float, kappa: float) -> None:
    found = fit_usl(WORKERS, usl(WORKERS, gamma, sigma, kappa))
    assert found.efficiency == pytest.approx(gamma, rel=1e-6)
    assert found.contention == pytest.approx(sigma, abs=1e-6)
    assert found.coherence == pytest.approx(kappa, abs=1e-7)


@given(st.lists(st.floats(0.1, 20), min_size=5, max_size=5))
def test_any_data_give_parameters_in_their_ranges_as_good_as_an_independent_solver_finds(
    speedups: list[float],
) -> None:
    values = np.array(speedups)
    found = fit_usl(WORKERS, values)
    assert found.efficiency > 0
    assert 0 <= found.contention <= 1
    assert found.coherence >= 0
    inverse = WORKERS / values
    rays = np.stack([np.ones(5), WORKERS, WORKERS * (WORKERS - 1)], axis=1) / inverse[:, None]
    solution, norm = nnls(rays, np.ones(5))
    assume(solution[0] + solution[1] > 1e-6)  # otherwise the best efficiency has no bound
    errors = values / found.predict(WORKERS) - 1
    assert float(errors @ errors) == pytest.approx(norm**2, rel=1e-6, abs=1e-12)


def test_amdahl_is_the_universal_law_without_coherence() -> None:
    speedups = usl(WORKERS, 0.95, 0.02, 0)
    amdahl, universal = fit_amdahl(WORKERS, speedups), fit_usl(WORKERS, speedups)
    assert amdahl.contention == pytest.approx(universal.contention, abs=1e-9)
    assert amdahl.coherence == 0
    assert amdahl.ceiling == pytest.approx(0.95 / 0.02)


def test_resamples_are_fitted_as_if_each_were_alone() -> None:
    rng = np.random.default_rng(3)
    rows = usl(WORKERS, 0.9, 0.03, 0.001) * rng.lognormal(0, 0.02, (20, 5))
    together = fit_usl(WORKERS, rows)
    alone = [fit_usl(WORKERS, row) for row in rows]
    assert together.contention == pytest.approx([float(each.contention) for each in alone], abs=1e-12)
    assert together.coherence == pytest.approx([float(each.coherence) for each in alone], abs=1e-12)


def test_the_peak_lies_where_the_law_is_largest() -> None:
    found = fit_usl(WORKERS, usl(WORKERS, 1, 0.05, 0.004))
    grid = np.linspace(1, 40, 4000)
    assert found.peak_workers == pytest.approx(grid[np.argmax(found.predict(grid))], abs=0.02)
    assert math.isinf(fit_amdahl(WORKERS, WORKERS).ceiling)


def test_slowing_down_from_the_first_worker_on_stays_in_range() -> None:
    found = fit_amdahl([1, 2, 4], [1.0, 0.9, 0.7])
    assert found.contention == pytest.approx(1)
    assert found.r_squared(np.array([1.0, 2, 4]), np.array([1.0, 0.9, 0.7])) < 1


@pytest.mark.parametrize(("workers", "speedups"), [([1, 1], [1, 1]), ([1, 2], [1, 0]), ([1, 2], [1, np.nan])])
def test_what_no_law_can_be_fitted_to_is_refused(workers: list[int], speedups: list[float]) -> None:
    with pytest.raises(AnalysisError):
        fit_amdahl(workers, speedups)


@pytest.mark.parametrize("law", ["amdahl", "usl"])
@pytest.mark.parametrize("levels", [(1, 2, 3, 4), (1, 2, 3, 7, 13), (1, 2, 4, 8, 16, 32)])
def test_the_spread_of_a_law_holds_what_was_put_in(law: str, levels: tuple[int, ...]) -> None:
    p = np.array(levels, dtype=np.float64)
    truth = Scalability(np.array(0.97), np.array(0.05), np.array(0.002 if law == "usl" else 0.0))
    rng = np.random.default_rng(1)
    held = 0
    rounds = 500
    for seed in range(rounds):
        points = truth.predict(p) * rng.lognormal(0, 0.01, p.size)
        laws = spread_of(p, points, law, draws=1000, seed=seed)
        low, high = np.quantile(laws.contention, [0.025, 0.975])
        held += low <= float(truth.contention) <= high
    assert held >= 0.93 * rounds


def test_points_that_bend_away_from_a_law_widen_its_limits() -> None:
    p = np.array([1.0, 2, 3, 4, 6, 8])
    law = p / (1 + 0.4 * (p - 1))
    bent = np.minimum(p, 2.5)  # a lock for 40 % of the time, with even turns
    widths = [np.diff(np.quantile(spread_of(p, s, "amdahl").contention, [0.025, 0.975])) for s in (law, bent)]
    assert widths[0] < 1e-9
    assert widths[1] > 0.1


def test_as_many_points_as_parameters_have_no_spread() -> None:
    for law, levels in (("amdahl", [1, 2]), ("usl", [1, 2, 3])):
        with pytest.raises(AnalysisError, match="nothing to judge the law by"):
            spread_of(levels, levels, law)


def test_the_serial_fraction_of_a_point_is_that_of_amdahls_law() -> None:
    for p in (2, 7, 64):
        assert serial_fraction(p / (1 + 0.15 * (p - 1)), p) == pytest.approx(0.15)
