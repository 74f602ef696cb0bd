"""What a comparison of quantiles promises at all its looks, simulated as the loop of `compare` does it."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from statistical.test_sequential import SERIES, at_most
from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.analyse.comparison.quantile_ratio import Quantile
from steelyard.analyse.comparison.sequential import Design, SequentialComparison

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from steelyard.analyse.comparison.sequential import Look

STUDIES = 400
LARGEST = {50: 120, 95: 300, 99: 900}
ROUNDING = 1e-8


def lognormal(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give lognormal times with a spread of a third."""
    return np.exp(0.3 * rng.standard_normal((2, size)))


def regimes(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give a machine that is busy for 30 blocks in turn, in which three runs of ten are slow."""
    is_busy = (np.cumsum(rng.random(size) < 1 / 30) + rng.integers(2)) % 2
    is_slow = is_busy * (rng.random((2, size)) < 0.3)
    return np.exp(0.03 * rng.standard_normal((2, size))) * (1 + 0.3 * is_slow)


def rare_mode(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Give two modes; 7 % of the runs are in the slow one."""
    return np.where(rng.random((2, size)) < 0.93, 1.0, 1.3) * np.exp(0.01 * rng.standard_normal((2, size)))


TIMES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    **{name: SERIES[name] for name in ("pareto", "bimodal", "drifting", "correlated", "ticking")},
    **{each.__name__: each for each in (lognormal, regimes, rare_mode)},
}


def looks_at(times: NDArray[np.float64], design: Design, most: int) -> list[Look]:
    """Give all looks until it is settled, or as many blocks are used up."""
    comparison, size, looks = SequentialComparison(design), min(design.first_look(most), most), []
    while True:
        looks.append(comparison.look(times[:, :size].T, size / most))
        if looks[-1].is_settled or size >= most:
            return looks
        size = min(next_look(size), most)


def has_missed(looks: list[Look], truth: float) -> bool:
    return any(not look.low * (1 - ROUNDING) <= truth <= look.high * (1 + ROUNDING) for look in looks)


@pytest.mark.parametrize("percent", [50, 95, pytest.param(99, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TIMES)
def test_identical_commands_are_called_different_at_no_more_than_the_nominal_rate(
    name: str, percent: int, simulated: Callable[[int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    alarms = missed = 0
    studies, most = simulated(STUDIES), LARGEST[percent]
    for study in range(studies):
        times = TIMES[name](np.random.default_rng([91, study]), most)
        looks = looks_at(times, Design(Margin(0.02), statistic=Quantile(percent)), most)
        alarms += looks[-1].verdict in {Verdict.SLOWER, Verdict.FASTER}
        missed += has_missed(looks, 1.0)
    with capsys.disabled():
        sys.stdout.write(f"\nA/A {name}, p{percent}: {alarms / studies:.1%} called different\n")
    assert at_most(alarms, studies, 0.05), alarms
    assert at_most(missed, studies, 0.05), missed


@pytest.mark.parametrize("spread", [2.0, 5.0, 20.0])
def test_a_tail_of_another_shape_is_covered(spread: float, simulated: Callable[[int], int]) -> None:
    """Equal but for the slowest tenth of the runs, wider on one side: no factor relates the sides."""
    missed, studies, most = 0, simulated(STUDIES), LARGEST[95]
    truth = (1.2 + 0.1 * spread) / 1.3
    for study in range(studies):
        rng = np.random.default_rng([93, study])
        tail = 1.2 + 0.2 * rng.random((2, most)) * np.array([[1.0], [spread]])
        times = np.where(rng.random((2, most)) < 0.1, tail, np.exp(0.02 * rng.standard_normal((2, most))))
        missed += has_missed(looks_at(times, Design(statistic=Quantile(95)), most), truth)
    assert at_most(missed, studies, 0.05), missed


def test_sides_that_differ_by_the_margin_at_the_tail_are_rarely_called_equivalent(
    simulated: Callable[[int], int],
) -> None:
    wrong, studies, most = 0, simulated(STUDIES), LARGEST[95]
    for study in range(studies):
        times = np.exp(0.05 * np.random.default_rng([95, study]).standard_normal((2, most)))
        times[1] *= 1.1
        looks = looks_at(times, Design(Margin(0.1), statistic=Quantile(95)), most)
        wrong += looks[-1].verdict is Verdict.EQUIVALENT
    assert at_most(wrong, studies, 0.05), wrong


def test_several_quantiles_err_no_more_often_than_one(simulated: Callable[[int], int]) -> None:
    wrong, studies = 0, simulated(STUDIES // 2)
    for study in range(studies):
        times = lognormal(np.random.default_rng([97, study]), 300)
        wrong += any(
            has_missed(looks_at(times, Design(family=3, statistic=Quantile(percent)), 300), 1.0)
            for percent in (50, 90, 95)
        )
    assert at_most(wrong, studies, 0.05), wrong


@pytest.mark.slow
def test_a_slower_tail_is_found_and_the_advice_suffices() -> None:
    """At the size that an undecided comparison asks for, most are decided."""
    found, asked, settled = 0, 0, 0
    for study in range(60):
        rng = np.random.default_rng([99, study])
        times = np.exp(0.1 * rng.standard_normal((2, 12_000)))
        times[1] *= 1.1
        found += looks_at(times, Design(statistic=Quantile(95)), 1000)[-1].verdict is Verdict.SLOWER
        first = looks_at(times, Design(statistic=Quantile(95)), 150)[-1]
        if first.is_settled or first.further_blocks is None:
            continue
        asked += 1
        size = min(150 + first.further_blocks, 11_000)
        settled += looks_at(times[:, 150:], Design(statistic=Quantile(95)), size)[-1].is_settled
    assert found >= 54, found
    assert asked >= 20
    assert settled / asked >= 0.6, (settled, asked)


def test_a_slow_tail_that_a_typical_run_does_not_show_is_found() -> None:
    rng = np.random.default_rng(101)
    times = np.exp(0.02 * rng.standard_normal((2, 600)))
    times[1] = np.where(rng.random(600) < 0.08, 1.5, times[1])
    typical = SequentialComparison(Design()).look(np.log(times[1] / times[0]), 1.0)
    tail = SequentialComparison(Design(statistic=Quantile(95))).look(times.T, 1.0)
    assert typical.verdict is Verdict.EQUIVALENT
    assert tail.verdict is Verdict.SLOWER
    assert tail.low < 1.5 / math.exp(0.02 * 1.645) < tail.high
