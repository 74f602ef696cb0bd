"""Piecewise data with planted breakpoints: how often their number and places are found, and covered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from statistical.counting import binomial
from steelyard.analyse.cost_curve.segments import fit_segments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.pieces import SegmentedModel

    Vector = NDArray[np.float64]

PLANTED: Final = (3000.0, 65_000.0)
"""Bytes from which on the second and the third regime hold."""

SAMPLES: Final = {300: 400, 1000: 400, 10_000: 200, 100_000: 20}
"""Seeds of each size."""


def messages(count: int, seed: int) -> tuple[Vector, Vector]:
    """Draw sizes 10^U(0, 7) and times of three regimes with noise."""
    rng = np.random.default_rng([51, count, seed])
    size = np.round(10 ** rng.uniform(0, 7, count))
    level = np.where(
        size < PLANTED[0],
        5e-6,
        np.where(size < PLANTED[1], 4.2e-6 + 1.112e-9 * size, 415.5e-6 + 8.497e-9 * size),
    )
    return size, noisy(level, rng)


def straight(count: int, seed: int) -> tuple[Vector, Vector]:
    """Draw the same sizes and noise on one line."""
    rng = np.random.default_rng([52, count, seed])
    size = np.round(10 ** rng.uniform(0, 7, count))
    return size, noisy(5e-6 + 1.112e-9 * size, rng)


def noisy(level: Vector, rng: np.random.Generator) -> Vector:
    """Give a level noise 1 + lognormal(ln 0.05, 1), and spikes of 0.1 ms times Pareto(1.5) on 1 %."""
    spikes = np.where(rng.random(level.size) < 0.01, 1e-4 * rng.random(level.size) ** (-1 / 1.5), 0.0)
    return np.asarray(level * (1 + rng.lognormal(np.log(0.05), 1.0, level.size)) + spikes)


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the search did over the seeds of one size.

    Parameters
    ----------
    exact : int
        Seeds with as many breaks as were planted.
    errors : ndarray
        Shape (exact, 2): |found / planted - 1|.
    covered : tuple of int
        Seeds, of the exact ones, whose 95 % interval holds the planted break.
    false_alarms : int
        Seeds of one straight line with any break.
    """

    size: int
    seeds: int
    exact: int
    errors: Vector
    covered: tuple[int, int]
    false_alarms: int


def holds(model: SegmentedModel, number: int) -> bool:
    """Whether an interval (last x surely below, first x surely above] holds the planted break."""
    interval = model.breakpoints[number].interval
    return interval is not None and interval[0] < PLANTED[number] <= interval[1]


def recovery(size: int, seeds: int) -> Recovery:
    """Fit the default search to planted data and to a straight line."""
    errors, covered, false_alarms = [], np.zeros(2, dtype=np.int64), 0
    for seed in range(seeds):
        model = fit_segments(*messages(size, seed), seed=seed)
        false_alarms += len(fit_segments(*straight(size, seed), resamples=0).breakpoints) > 0
        if len(model.breakpoints) == len(PLANTED):
            errors.append(
                [abs(point.at / at - 1) for point, at in zip(model.breakpoints, PLANTED, strict=True)]
            )
            covered += [holds(model, number) for number in range(len(PLANTED))]
    return Recovery(
        size=size,
        seeds=seeds,
        exact=len(errors),
        errors=np.array(errors).reshape(-1, len(PLANTED)),
        covered=(int(covered[0]), int(covered[1])),
        false_alarms=false_alarms,
    )


def row(found: Recovery) -> str:
    """Give one line of the table."""
    middle, worst = (np.quantile(found.errors, share, axis=0) * 100 for share in (0.5, 0.95))
    cells = [
        f"{found.size}",
        f"{found.seeds}",
        binomial(found.exact, found.seeds),
        *(f"{middle[number]:.2g} / {worst[number]:.2g}" for number in range(len(PLANTED))),
        *(binomial(covered, found.exact) for covered in found.covered),
        binomial(found.false_alarms, found.seeds),
    ]
    return f"| {' | '.join(cells)} |"


def table() -> Iterator[str]:
    """Give the table of all sizes."""
    first, second = (f"{at:g}" for at in PLANTED)
    yield (
        f"| n | seeds | exactly two, % | error at {first}, % | error at {second}, % "
        f"| covers {first}, % | covers {second}, % | a break on a line, % |"
    )
    yield "|" + "---:|" * 8
    for size, seeds in SAMPLES.items():
        yield row(recovery(size, seeds))
