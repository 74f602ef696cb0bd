"""Kinds of data with known truth, drawn as labelled runs or as one series: what the guarantee is judged by.

More kinds than the scenarios A to J, and only with what the guarantee needs of them: their mean, and where
something comes rarely, the mean of samples in which it did not come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Shape = tuple[int, int]

PROCESSES: Final = 10
"""Processes behind a series of a kind that has processes."""

_RUN_SD: Final = 0.2 / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Values of some runs.

    Parameters
    ----------
    values : ndarray
        Shape (runs, iterations).
    truth : float
        Mean of the kind.
    seen : float
        Mean of what came: without the rare values where none came.
    """

    values: NDArray[np.float64]
    truth: float
    seen: float


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of data.

    Parameters
    ----------
    number : int
        Of its random streams.
    text : str
        What it is.
    draw : callable
        ``draw(rng, (runs, iterations))``; neighbours are in a row.
    mean : float
        The truth.
    rare : callable or None
        ``rare(rng, values)`` gives the values with rare ones among them, and where they are.
    rare_mean : float
        The truth with the rare values.
    is_benign : bool
        Whether the guarantee is promised in nine of ten samples from 30 values on.
    has_processes : bool
        Whether the values of a run have something in common.
    """

    number: int
    text: str
    draw: Callable[[np.random.Generator, Shape], Floats]
    mean: float
    rare: Callable[[np.random.Generator, Floats], tuple[Floats, NDArray[np.bool_]]] | None = None
    rare_mean: float = math.nan
    is_benign: bool = False
    has_processes: bool = False

    @property
    def is_dependent(self) -> bool:
        """Whether values of one run say something of each other."""
        return self.has_processes or "series" in self.text or "drift" in self.text

    def runs(self, rng: np.random.Generator, runs: int, iterations: int) -> Drawn:
        """Draw independent runs."""
        values = self.draw(rng, (runs, iterations))
        if self.rare is None:
            return Drawn(values, self.mean, self.mean)
        values, came = self.rare(rng, values)
        return Drawn(values, self.rare_mean, self.rare_mean if came.any() else self.mean)

    def series(self, rng: np.random.Generator, size: int) -> Drawn:
        """Draw one series without labels: of ten processes where there are processes, else one run."""
        if not self.has_processes:
            return self.runs(rng, 1, size)
        processes = min(PROCESSES, size)
        drawn = self.runs(rng, processes, math.ceil(size / processes))
        return Drawn(drawn.values.reshape(1, -1)[:, :size], drawn.truth, drawn.seen)


def kinds() -> tuple[Kind, ...]:
    """Give all kinds, the benign ones first."""
    rows: list[dict[str, object]] = [
        {"text": "normal, cv 5 %", "draw": _normal, "mean": 1.0, "is_benign": True},
        {"text": "normal, cv 20 %", "draw": partial(_normal, sd=0.2), "mean": 1.0, "is_benign": True},
        {"text": "gamma, shape 4", "draw": partial(_gamma, shape=4), "mean": 1.0, "is_benign": True},
        {"text": "gamma, shape 2", "draw": partial(_gamma, shape=2), "mean": 1.0, "is_benign": True},
        {"text": "counts (Poisson 20)", "draw": partial(_counts, mean=20), "mean": 20.0, "is_benign": True},
        {"text": "counts (1 + Poisson 3)", "draw": partial(_counts, mean=3), "mean": 4.0, "is_benign": True},
        {"text": "two modes, 60 to 40", "draw": partial(_modes, share=0.6), "mean": 1.08, "is_benign": True},
        {"text": "two modes, 90 to 10", "draw": partial(_modes, share=0.9), "mean": 1.02},
        {"text": "uniform", "draw": _uniform, "mean": 1.5},
        {"text": "three distinct values", "draw": _three, "mean": 1.09},
        {"text": "timer tick of 5 %", "draw": _ticks, "mean": 1.0},
        {"text": "Student t, 3 degrees", "draw": _student, "mean": 10.0},
        {"text": "exponential", "draw": partial(_gamma, shape=1), "mean": 1.0},
        {"text": "1 + lognormal 0.5", "draw": partial(_lognormal, sigma=0.5), "mean": 1 + math.exp(0.125)},
        {"text": "1 + lognormal 1", "draw": partial(_lognormal, sigma=1), "mean": 1 + math.exp(0.5)},
        {"text": "lognormal 1.5", "draw": partial(_lognormal, sigma=1.5, base=0), "mean": math.exp(1.125)},
        {"text": "Weibull, shape 0.6", "draw": _weibull, "mean": math.gamma(1 + 1 / 0.6)},
        {"text": "heavy tail (Pareto 3)", "draw": _pareto, "mean": 1.3},
        _rare(
            "1 % spikes of 40 times", 0.01, lambda values, rng: values + rng.exponential(40, values.shape), 41
        ),
        _rare("5 % of values times 10", 0.05, lambda values, _: 10 * values, 10),
        _rare("3 % of values times 3", 0.03, lambda values, _: 3 * values, 3),
        _rare("10 % of values times 1.5", 0.1, lambda values, _: 1.5 * values, 1.5),
        _rare(
            "heavy ties, 20 % above",
            0.2,
            lambda values, rng: values + rng.integers(1, 9, values.shape),
            5.5,
            _ones,
        ),
        _rare("heavy ties, 5 % above", 0.05, lambda values, _: 1.1 * values, 1.1, _ones),
        {"text": "series, lag-1 0.3", "draw": partial(_series, rho=0.3), "mean": math.exp(0.02)},
        {"text": "series, lag-1 0.5", "draw": partial(_series, rho=0.5), "mean": math.exp(0.02)},
        {"text": "series, lag-1 0.9", "draw": partial(_series, rho=0.9), "mean": math.exp(0.02)},
        {"text": "series, lag-1 -0.5", "draw": partial(_series, rho=-0.5), "mean": math.exp(0.02)},
        {"text": "drift, one daily cycle", "draw": partial(_cycles, count=1), "mean": 1.0},
        {"text": "drift, five daily cycles", "draw": partial(_cycles, count=5), "mean": 1.0},
        {"text": "processes, half of the variance between", "draw": _processes, "mean": math.exp(0.02)},
        {"text": "processes, gamma of random scale", "draw": _scales, "mean": math.exp(0.02)},
        {"text": "processes in two layouts", "draw": _layouts, "mean": 1.1},
        {
            "text": "processes, one in twenty 1.3 times as long",
            "draw": partial(_normal, sd=0.02),
            "mean": 1.0,
            "rare": _slow_runs,
            "rare_mean": 1.015,
        },
    ]
    return tuple(
        Kind(number=number, has_processes=str(row["text"]).startswith("processes"), **row)  # type: ignore[arg-type]
        for number, row in enumerate(rows)
    )


def _normal(rng: np.random.Generator, shape: Shape, sd: float = 0.05) -> Floats:
    return np.maximum(1 + sd * rng.standard_normal(shape), 0.01)


def _gamma(rng: np.random.Generator, size: Shape, shape: float) -> Floats:
    return rng.gamma(shape, 1 / shape, size)


def _counts(rng: np.random.Generator, shape: Shape, mean: float) -> Floats:
    found = rng.poisson(mean, shape).astype(np.float64)
    return found if mean > 10 else 1 + found


def _modes(rng: np.random.Generator, shape: Shape, share: float) -> Floats:
    return np.where(rng.random(shape) < share, 1.0, 1.2) + 0.02 * rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: Shape) -> Floats:
    return 1 + rng.random(shape)


def _three(rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.choice([1.0, 1.1, 1.2], p=[0.3, 0.5, 0.2], size=shape)


def _ticks(rng: np.random.Generator, shape: Shape) -> Floats:
    return 0.05 * np.round(_normal(rng, shape) / 0.05)


def _student(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.maximum(10 + rng.standard_t(3, shape), 0.01)


def _lognormal(rng: np.random.Generator, shape: Shape, sigma: float, base: float = 1) -> Floats:
    return base + rng.lognormal(0, sigma, shape)


def _weibull(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.maximum(rng.weibull(0.6, shape), 1e-9)


def _pareto(rng: np.random.Generator, shape: Shape) -> Floats:
    return 1 + 0.2 * (1 + rng.pareto(3, shape))


def _ones(_: np.random.Generator, shape: Shape) -> Floats:
    return np.ones(shape)


def _rare(
    text: str,
    share: float,
    change: Callable[[Floats, np.random.Generator], Floats],
    changed_mean: float,
    draw: Callable[[np.random.Generator, Shape], Floats] = _normal,
) -> dict[str, object]:
    """Give a kind in which a share of the values is changed."""

    def among(rng: np.random.Generator, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        came = rng.random(values.shape) < share
        return np.where(came, change(values, rng), values), came

    return {
        "text": text,
        "draw": draw,
        "mean": 1.0,
        "rare": among,
        "rare_mean": 1 - share + share * changed_mean,
    }


def _series(rng: np.random.Generator, shape: Shape, rho: float) -> Floats:
    steps = math.sqrt(1 - rho**2) * rng.standard_normal(shape)
    steps[:, 0] = rng.standard_normal(shape[0])
    levels: Floats = signal.lfilter([1.0], [1.0, -rho], steps, axis=1)
    return np.exp(0.2 * levels)


def _cycles(rng: np.random.Generator, shape: Shape, count: int) -> Floats:
    phase = 2 * np.pi * (count * np.arange(shape[1]) / shape[1] + rng.random((shape[0], 1)))
    return 1 + 0.05 * np.sin(phase) + 0.05 * rng.standard_normal(shape)


def _processes(rng: np.random.Generator, shape: Shape) -> Floats:
    return np.exp(_RUN_SD * (rng.standard_normal((shape[0], 1)) + rng.standard_normal(shape)))


def _scales(rng: np.random.Generator, shape: Shape) -> Floats:
    return rng.lognormal(0, 0.2, (shape[0], 1)) * rng.gamma(4, 0.25, shape)


def _layouts(rng: np.random.Generator, shape: Shape) -> Floats:
    layout = np.where(rng.random((shape[0], 1)) < 0.5, 1.0, 1.2)
    return layout * (1 + 0.02 * rng.standard_normal(shape))


def _slow_runs(rng: np.random.Generator, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    slow = rng.random((values.shape[0], 1)) < 0.05
    return np.where(slow, 1.3 * values, values), slow
