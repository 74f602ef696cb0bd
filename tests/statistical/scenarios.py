"""Timing-like samples with known truth: the simulator that every procedure is judged by.

The ten scenarios A to J are those of the statistics design. Values are near 1 (any unit of time), drawn
from a generator of the caller, so that a table of the documentation can be computed again to the digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

PROCESSES: Final = 10
"""Processes in scenario I."""

TOTAL_LOG_SD: Final = 0.2
"""Standard deviation of the logarithm in the scenarios with structure (G, H, I)."""

TICK: Final = 0.05
"""Timer step of scenario J, as a part of the value."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of data.

    Parameters
    ----------
    letter : str
        Name in the tables, A to J.
    text : str
        What it imitates.
    draw : callable
        ``draw(rng, n)`` gives ``n`` values in the order of measurement; scenario I gives its processes one
        after the other.
    mean, quartile_range : float
        The truth.
    """

    letter: str
    text: str
    draw: Draw
    mean: float
    quartile_range: float

    @property
    def has_processes(self) -> bool:
        """Whether values of one process belong together."""
        return self.letter == "I"

    def processes(self, count: int) -> NDArray[np.int64] | None:
        """Give the process of each of ``count`` values, where there are processes."""
        if not self.has_processes:
            return None
        return np.repeat(np.arange(PROCESSES), count // PROCESSES)


def scenarios() -> tuple[Scenario, ...]:
    """Give all ten, in the order of their letters."""
    return (
        Scenario("A", "normal, cv 5 %", _normal, 1.0, 0.05 * _normal_range()),
        _shifted_lognormal("B", "skewed", 0.0, 0.5),
        _shifted_lognormal("C", "very skewed", 0.0, 1.0),
        _spikes(),
        _pareto(),
        _two_modes(),
        _autoregressive("G", 0.5),
        _autoregressive("H", 0.9),
        Scenario("I", "ten processes, half of the variance between", _clustered, *_lognormal_truth()),
        _ticks(),
    )


def _normal(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1 + 0.05 * rng.standard_normal(count)


def _normal_range() -> float:
    return float(2 * stats.norm.ppf(0.75))


def _shifted_lognormal(letter: str, text: str, location: float, sigma: float) -> Scenario:
    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return 1 + rng.lognormal(location, sigma, count)

    mean = 1 + math.exp(location + sigma**2 / 2)
    quartiles = np.exp(location + sigma * stats.norm.ppf([0.25, 0.75]))
    return Scenario(letter, text, draw, mean, float(quartiles[1] - quartiles[0]))


def _spikes() -> Scenario:
    base = stats.lognorm(s=0.5, scale=math.exp(-2))

    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        values = 1 + rng.lognormal(-2, 0.5, count)
        return values + (rng.random(count) < 0.01) * (5 + rng.exponential(5, count))

    # A spike is beyond every quartile: they are those of the base at (p / 0.99).
    quartiles = base.ppf(np.array([0.25, 0.75]) / 0.99)
    mean = 1 + float(base.mean()) + 0.01 * 10
    return Scenario("D", "1 % spikes", draw, mean, float(quartiles[1] - quartiles[0]))


def _pareto() -> Scenario:
    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return 1 + 0.2 * (1 + rng.pareto(3, count))

    quartiles = 0.2 * stats.pareto(3).ppf([0.25, 0.75])
    return Scenario("E", "heavy tail (Pareto 3)", draw, 1 + 0.2 * 1.5, float(quartiles[1] - quartiles[0]))


def _two_modes() -> Scenario:
    low, high, weight, sd = 1.0, 1.2, 0.6, 0.02

    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        centres = np.where(rng.random(count) < weight, low, high)
        return centres + sd * rng.standard_normal(count)

    lower = low + sd * float(stats.norm.ppf(0.25 / weight))
    upper = high + sd * float(stats.norm.ppf((0.75 - weight) / (1 - weight)))
    return Scenario("F", "two modes, 60 to 40", draw, weight * low + (1 - weight) * high, upper - lower)


def _lognormal_truth() -> tuple[float, float]:
    quartiles = np.exp(TOTAL_LOG_SD * stats.norm.ppf([0.25, 0.75]))
    return math.exp(TOTAL_LOG_SD**2 / 2), float(quartiles[1] - quartiles[0])


def _autoregressive(letter: str, rho: float) -> Scenario:
    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        steps = math.sqrt(1 - rho**2) * rng.standard_normal(count)
        steps[0] = rng.standard_normal()
        levels = np.empty(count)
        level = 0.0
        for index, step in enumerate(steps):
            level = rho * level + step if index else step
            levels[index] = level
        return np.exp(TOTAL_LOG_SD * levels)

    return Scenario(letter, f"autocorrelated, lag-1 {rho}", draw, *_lognormal_truth())


def _clustered(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    each = count // PROCESSES
    sigma = TOTAL_LOG_SD / math.sqrt(2)
    between = np.repeat(sigma * rng.standard_normal(PROCESSES), each)
    return np.exp(between + sigma * rng.standard_normal(each * PROCESSES))


def _ticks() -> Scenario:
    def draw(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return TICK * np.round((1 + 0.05 * rng.standard_normal(count)) / TICK)

    # Rounding is symmetric about 1, a multiple of the tick; its quartiles are ticks.
    steps = TICK * np.arange(-200, 201)
    weights = np.diff(stats.norm.cdf(np.append(steps - TICK / 2, steps[-1] + TICK / 2) / 0.05))
    cumulative = np.cumsum(weights)
    quartiles = [float(steps[np.searchsorted(cumulative, p)]) for p in (0.25, 0.75)]
    return Scenario("J", "timer tick of 5 %", draw, 1.0, quartiles[1] - quartiles[0])
