"""What `steelyard history` promises: false changes at most at the nominal rate, and the power it has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import signal, stats

from steelyard.analyse.history import HistoryOptions, find_changes

if TYPE_CHECKING:
    from collections.abc import Callable

STUDIES = 1000
NOMINAL = 0.05


def autoregressive(rng: np.random.Generator, size: int, rho: float) -> np.ndarray:
    """Give a series with lognormal margin (sigma 0.5) and correlation rho of neighbouring logarithms."""
    path = signal.lfilter([1.0], [1.0, -rho], rng.standard_normal(size + 300))[300:]
    return np.exp(0.5 * np.sqrt(1 - rho * rho) * path)


def spiky(rng: np.random.Generator, size: int) -> np.ndarray:
    """Give scenario D: 1 % spikes of 5 + Exp(5) on 1 + lognormal(-2, 0.5)."""
    spikes = (rng.random(size) < 0.01) * (5 + rng.exponential(5, size))
    return 1 + rng.lognormal(-2, 0.5, size) + spikes


SCENARIOS = {
    "normal": lambda rng, size: 1 + 0.05 * rng.standard_normal(size),
    "lognormal 0.5": lambda rng, size: rng.lognormal(0, 0.5, size),
    "1 % spikes": spiky,
    "heavy tail": lambda rng, size: 1 + 0.2 * rng.pareto(3, size),
    "AR(1) 0.3": lambda rng, size: autoregressive(rng, size, 0.3),
    "AR(1) 0.5": lambda rng, size: autoregressive(rng, size, 0.5),
    "AR(1) 0.9": lambda rng, size: autoregressive(rng, size, 0.9),
}


def share_changed(series: list[np.ndarray], options: HistoryOptions) -> int:
    return sum(bool(find_changes([values], options)[0].changes) for values in series)


@pytest.mark.parametrize("size", [20, 100, 500])
@pytest.mark.parametrize("name", SCENARIOS)
def test_false_changes_stay_at_the_nominal_rate(
    name: str, size: int, simulated: Callable[[int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    make, studies = SCENARIOS[name], simulated(STUDIES)
    series = [make(np.random.default_rng([67, size, study]), size) for study in range(studies)]
    wrong = share_changed(series, HistoryOptions(margin=0.0))
    with capsys.disabled():
        sys.stdout.write(f"\n{name}, {size} results: {wrong / studies:.1%} of unchanged series cut\n")
    # At most nominal, one-sided, 1 in 1000.
    assert float(stats.binom.sf(wrong - 1, studies, NOMINAL)) > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "lognormal 0.5", "1 % spikes", "heavy tail"])
def test_the_permutation_test_is_exact_for_independent_results(name: str) -> None:
    make, options = SCENARIOS[name], HistoryOptions(margin=0.0, is_independent=True)
    for size in (8, 50):
        series = [make(np.random.default_rng([71, size, study]), size) for study in range(400)]
        wrong = share_changed(series, options)
        assert float(stats.binom.sf(wrong - 1, 400, NOMINAL)) > 0.001, (size, wrong)


@pytest.mark.slow
def test_many_series_together_keep_the_rate() -> None:
    """Some false change among 20 unchanged series, in at most 5 % of histories."""
    wrong = 0
    for study in range(300):
        rng = np.random.default_rng([73, study])
        found = find_changes([SCENARIOS["normal"](rng, 40) for _ in range(20)], HistoryOptions(margin=0.0))
        wrong += any(each.changes for each in found)
    assert float(stats.binom.sf(wrong - 1, 300, NOMINAL)) > 0.001, wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "after", "slowdown_sd", "is_independent", "least"),
    [
        (30, 15, 4.0, False, 0.85),
        (50, 10, 2.0, False, 0.80),
        (50, 5, 4.0, False, 0.90),
        (100, 20, 2.0, False, 0.99),
        (20, 5, 4.0, True, 0.95),
        (10, 5, 4.0, True, 0.85),
    ],
)
def test_slowdowns_are_found_where_they_begin(
    size: int, after: int, slowdown_sd: float, *, is_independent: bool, least: float
) -> None:
    """Power at noise of 1 %, a slowdown of some standard deviations, `after` results behind it."""
    found, near = 0, 0
    for study in range(300):
        rng = np.random.default_rng([79, size, after, study])
        values = np.exp(0.01 * (rng.standard_normal(size) + slowdown_sd * (np.arange(size) >= size - after)))
        options = HistoryOptions(margin=0.005, is_independent=is_independent)
        changes = find_changes([values], options)[0].changes
        found += bool(changes)
        near += any(abs(change.position - (size - after)) <= 8 / slowdown_sd for change in changes)
    assert found / 300 >= least, found
    assert near >= 0.9 * found
