"""How often a series of iterations without change is called changed, and how often a change is found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from scipy import signal, stats

from steelyard import _native
from steelyard.analyse.series.warm_up import PENALTY, SHORTEST_SEGMENT, SeriesClass, classify_series

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SERIES: Final = 150
NOMINAL: Final = 0.05


def modes(share: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Give series of two modes that take turns at random."""
    return lambda rng, size: (
        np.where(rng.random(size) < share, 1.3, 1.0) * (1 + 0.01 * rng.standard_normal(size))
    )


def dependent(rng: np.random.Generator, size: int) -> np.ndarray:
    path = signal.lfilter([1.0], [1.0, -0.5], rng.standard_normal(size + 300))[300:]
    return np.asarray(1 + 0.05 * path * np.sqrt(0.75))


UNCHANGED: Final = {
    "normal": lambda rng, size: 1 + 0.05 * rng.standard_normal(size),
    "lognormal 0.5": lambda rng, size: rng.lognormal(0, 0.5, size),
    "modes 60/40": modes(0.4),
    "modes 90/10": modes(0.1),
    "AR(1) 0.5": dependent,
}


def levels(size: int, *steps: tuple[int, float]) -> np.ndarray:
    found = np.ones(size)
    for end, level in reversed(steps):
        found[:end] = level
    return found


CHANGED: Final = {
    "30 of 100 at +10 %": (levels(100, (30, 1.1)), 0.03, SeriesClass.WARM_UP),
    "12 of 100 at +10 %": (levels(100, (12, 1.1)), 0.03, SeriesClass.WARM_UP),
    "15 of 60 at +10 %": (levels(60, (15, 1.1)), 0.03, SeriesClass.WARM_UP),
    "fading": (1 + 0.3 * np.exp(-np.arange(100) / 10), 0.03, SeriesClass.WARM_UP),
    "comes and goes": (levels(100, (30, 1.0), (60, 1.1)), 0.03, SeriesClass.WARM_UP),
    "60 of 100, then +10 %": (levels(100, (60, 1 / 1.1)), 0.03, SeriesClass.SLOW_DOWN),
}


@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("size", [40, 100])
def test_series_without_a_change_are_called_changed_at_most_at_the_nominal_rate(
    name: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, proposed = 0, 0
    for number in range(SERIES):
        values = UNCHANGED[name](np.random.default_rng([89, size, number]), size)
        wrong += bool(classify_series(values).changes)
        proposed += bool(_native.change_points(values, penalty=PENALTY, shortest=SHORTEST_SEGMENT))
    with capsys.disabled():
        sys.stdout.write(
            f"\n{name}, {size} iterations: {wrong / SERIES:.1%} changed, {proposed / SERIES:.1%} proposed\n"
        )
    # At most nominal, one-sided, 1 in 1000.
    assert float(stats.binom.sf(wrong - 1, SERIES, NOMINAL)) > 0.001


def test_the_confirmation_is_needed() -> None:
    """Without it random modes are called changed in half of the series: this test can fail."""
    values = [UNCHANGED["modes 60/40"](np.random.default_rng([89, 100, number]), 100) for number in range(60)]
    cut = sum(
        bool(_native.change_points(each, penalty=PENALTY, shortest=SHORTEST_SEGMENT)) for each in values
    )
    assert cut > 20


@pytest.mark.parametrize("name", CHANGED)
def test_changes_and_warm_ups_are_found(name: str) -> None:
    level, noise, expected = CHANGED[name]
    found = 0
    for number in range(60):
        rng = np.random.default_rng([97, number])
        values = level * (1 + noise * rng.standard_normal(level.size))
        found += classify_series(values).shape is expected
    assert found >= 57, found
