"""What a comparison that stops when it is settled promises, simulated as the loop of `compare` does it."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.analyse.comparison.sequential import Design, Location, SequentialComparison

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.sequential import Look

    Simulator = Callable[[np.random.Generator, int], NDArray[np.float64]]

STUDIES = 1000
LEAST, MOST = 10, 120
DIFFERENT = {Verdict.SLOWER, Verdict.FASTER}


def skewed(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario C: 1 + lognormal(0, 1)."""
    return 1 + rng.lognormal(0, 1, (2, size))


def heavy_tailed(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario D: 1 % spikes of 5 + Exp(5) on 1 + lognormal(-2, 0.5)."""
    spikes = (rng.random((2, size)) < 0.01) * (5 + rng.exponential(5, (2, size)))
    return 1 + rng.lognormal(-2, 0.5, (2, size)) + spikes


def pareto(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario E: 1 + 0.2 Pareto(3)."""
    return 1 + 0.2 * rng.pareto(3, (2, size))


def bimodal(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario F: 60/40 between two modes."""
    modes = np.where(rng.random((2, size)) < 0.6, 1.0, 1.1)
    return modes * np.exp(0.01 * rng.standard_normal((2, size)))


def drifting(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give a machine that gets slower by a fifth, with a slow random walk on top."""
    level = np.linspace(0, 0.2, 2 * size) + np.cumsum(0.01 * rng.standard_normal(2 * size))
    order = np.argsort(rng.random((2, size)), axis=0)
    return np.exp(level.reshape(size, 2).T[order, np.arange(size)] + 0.01 * rng.standard_normal((2, size)))


def correlated(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario H: AR(1), rho = 0.9, run after run, in random order inside the block."""
    steps = rng.standard_normal(2 * size)
    level = np.empty(2 * size)
    level[0] = steps[0]
    for at in range(1, 2 * size):
        level[at] = 0.9 * level[at - 1] + math.sqrt(1 - 0.81) * steps[at]
    order = np.argsort(rng.random((2, size)), axis=0)
    return np.exp(0.05 * level).reshape(size, 2).T[order, np.arange(size)]


def ticking(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give scenario J: a clock that ticks in steps of 5 % of the value."""
    return np.round((1 + 0.1 * rng.standard_normal((2, size))).clip(0.5) / 0.05) * 0.05


SERIES: dict[str, Simulator] = {
    each.__name__: each for each in (skewed, heavy_tailed, pareto, bimodal, drifting, correlated, ticking)
}


def verdict_when_it_stops(times: NDArray[np.float64], design: Design) -> tuple[Verdict, int, bool]:
    """Give verdict and size at the stop, and whether any look's interval missed the ratio 1."""
    differences = np.log(times[1] / times[0])
    comparison, size, missed = SequentialComparison(design), LEAST, False
    while True:
        found = comparison.look(differences[:size], size / MOST)
        missed = missed or not found.low <= 1 <= found.high
        if found.is_settled or size >= MOST:
            return found.verdict, size, missed
        size = min(next_look(size), MOST)


def at_most(errors: int, studies: int, nominal: float) -> bool:
    """Whether so many errors are compatible with the nominal rate (one-sided, 1 in 1000)."""
    return float(stats.binom.sf(errors - 1, studies, nominal)) > 0.001


@pytest.mark.parametrize("location", list(Location))
@pytest.mark.parametrize("name", SERIES)
def test_identical_commands_are_called_different_at_no_more_than_the_nominal_rate(
    name: str, location: Location, simulated: Callable[[int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    alarms, missed, studies = 0, 0, simulated(STUDIES)
    for study in range(studies):
        times = SERIES[name](np.random.default_rng([61, study]), MOST)
        verdict, _, outside = verdict_when_it_stops(times, Design(Margin(0.02), statistic=location))
        alarms += verdict in DIFFERENT
        missed += outside
    with capsys.disabled():
        sys.stdout.write(f"\nA/A {name}, {location}: {alarms / studies:.1%} called different\n")
    assert at_most(alarms, studies, 0.05), alarms
    assert at_most(missed, studies, 0.05), missed


@pytest.mark.parametrize("location", list(Location))
@pytest.mark.parametrize("name", ["skewed", "bimodal", "drifting", "ticking"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_commands_that_differ_by_the_margin_are_rarely_called_equivalent(
    name: str, location: Location, sign: int, simulated: Callable[[int], int]
) -> None:
    margin, wrong, studies = 0.1, 0, simulated(STUDIES // 2)
    for study in range(studies):
        times = SERIES[name](np.random.default_rng([67, study]), MOST)
        times[1] *= (1 + margin) ** sign
        verdict, _, _ = verdict_when_it_stops(times, Design(Margin(margin), statistic=location))
        wrong += verdict is Verdict.EQUIVALENT
    assert at_most(wrong, studies, 0.05), wrong


@pytest.mark.slow
def test_a_family_errs_no_more_often_than_one_comparison() -> None:
    wrong = 0
    for study in range(STUDIES // 2):
        rng = np.random.default_rng([71, study])
        times = np.exp(0.03 * rng.standard_normal((5, MOST)))
        found = [
            verdict_when_it_stops(times[[0, other]], Design(Margin(0.02), family=4))[0]
            for other in range(1, 5)
        ]
        wrong += any(verdict in DIFFERENT for verdict in found)
    assert at_most(wrong, STUDIES // 2, 0.05), wrong


@pytest.mark.slow
@pytest.mark.parametrize(("slowdown", "least_power"), [(1.02, 0.8), (1.05, 0.99)])
def test_a_slowdown_is_found(slowdown: float, least_power: float) -> None:
    found = sizes = 0
    for study in range(200):
        rng = np.random.default_rng([73, study])
        times = np.exp(0.03 * rng.standard_normal((2, MOST)))
        times[1] *= slowdown
        verdict, size, _ = verdict_when_it_stops(times, Design(Margin(0.02)))
        found += verdict is Verdict.SLOWER
        sizes += size
    assert found / 200 >= least_power, found / 200
    assert sizes / 200 <= MOST


@pytest.mark.slow
@pytest.mark.parametrize(("true", "least"), [(0.0, 0.8), (0.01, 0.6), (0.03, 0.6)])
def test_as_many_runs_as_the_advice_says_settle_most_comparisons(true: float, least: float) -> None:
    """A new comparison of the size that an unsettled one of 40 blocks asks for, at a spread of 5 %."""

    def grown(differences: NDArray[np.float64], most: int) -> Look:
        comparison, size, best = SequentialComparison(Design()), LEAST, None
        while True:
            look = comparison.look(differences[:size], size / most)
            if best is None or look.log_width <= best.log_width:
                best = look
            if best.is_settled or size >= most:
                return best
            size = min(next_look(size), most)

    settled, asked = 0, 0
    for study in range(60):
        rng = np.random.default_rng([101, study])
        differences = true + 0.05 * np.sqrt(2) * rng.standard_normal(12_000)
        first = grown(differences[:40], 40)
        if first.further_blocks is None:
            continue
        asked += 1
        settled += grown(differences[40:], min(40 + first.further_blocks, 11_000)).is_settled
    assert asked >= 40
    assert settled / asked >= least, (settled, asked)


@pytest.mark.parametrize(("share", "error"), [(1.0, 0.10), (0.4, 0.05)])
def test_a_comparison_that_goes_on_errs_as_often_as_its_level_says(
    share: float,
    error: float,
    simulated: Callable[[int], int],
) -> None:
    """It goes on after its budget, whose error was spent, or after an interruption that left some."""
    missed, studies = 0, simulated(STUDIES)
    for study in range(studies):
        times = skewed(np.random.default_rng([121, study]), 2 * MOST)
        differences = np.log(times[1] / times[0])
        comparison, size, outside = SequentialComparison(Design(Margin(0.02))), LEAST, False
        stop = round(share * MOST)
        while size <= 2 * MOST:
            fraction = size / MOST
            if size > stop:  # the rest takes as many blocks as the first experiment might have
                end = math.floor(share) + 1
                fraction = share + (end - share) * (size - stop) / (2 * MOST - stop)
            found = comparison.look(differences[:size], fraction)
            outside = outside or not found.low <= 1 <= found.high
            if size == 2 * MOST:
                break
            size = stop if size < stop < next_look(size) else min(next_look(size), 2 * MOST)
        missed += outside
    assert at_most(missed, studies, error), missed
    assert missed / studies > error / 4, "the error is used"
