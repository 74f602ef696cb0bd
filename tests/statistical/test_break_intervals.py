"""Intervals of breaks hold the planted break, whatever the data look like: in `fit` and in models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from statistical.break_shapes import EVERY, NOISES, Shape
from steelyard.analyse.cost_curve.boundaries import boundary_intervals
from steelyard.analyse.cost_curve.curve import fit_curve
from steelyard.analyse.cost_curve.piece_search import sorted_costs
from steelyard.analyse.cost_curve.segments import fit_segments

if TYPE_CHECKING:
    from collections.abc import Sequence

SETS = 200
PROMISED = 0.93
NEAR = 2.0


def interval_of_fit(shape: Shape, seed: int) -> tuple[float, float] | None:
    """Give the interval of the break that `fit_segments` places nearest, if it is within a factor of 2."""
    model = fit_segments(*shape.draw(seed), seed=seed)
    near = [point for point in model.breakpoints if 1 / NEAR < point.at / shape.at < NEAR]
    return min(near, key=lambda point: abs(point.at - shape.at)).interval if near else None


def interval_of_messages(shape: Shape, seed: int) -> tuple[float, float] | None:
    """Give the same of the curve of messages."""
    x, y = sorted_costs(*shape.draw(seed))
    ends = [piece.high for piece in fit_curve(x, y) if piece.high is not None]
    near = [number for number, end in enumerate(ends) if 1 / NEAR < end / shape.at < NEAR]
    if not near:
        return None
    return boundary_intervals(x, y, ends, seed)[min(near, key=lambda number: abs(ends[number] - shape.at))]


def missed(shapes: Sequence[Shape], interval_of, sets: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    found = [
        (shape, interval)
        for seed in range(sets)
        for shape in [shapes[seed % len(shapes)]]
        if (interval := interval_of(shape, seed)) is not None
    ]
    outside = [shape for shape, (low, high) in found if not low < shape.at <= high]
    return len(outside), len(found)


@pytest.mark.parametrize("noise", list(NOISES))
def test_intervals_of_fit_hold_the_planted_break(noise: str) -> None:
    shapes = [each for each in EVERY if each.noise == noise and "2000" not in each.sizes]
    outside, found = missed(shapes, interval_of_fit, 20)
    assert found >= 10
    # One of 14 is allowed; the counts are small.
    assert outside <= 3, f"{outside} of {found}"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("interval_of", [interval_of_fit, interval_of_messages], ids=["fit", "messages"])
@pytest.mark.parametrize("noise", list(NOISES))
def test_intervals_hold_the_planted_break_in_93_of_100_sets(noise: str, interval_of) -> None:  # type: ignore[no-untyped-def]
    shapes = [each for each in EVERY if each.noise == noise]
    outside, found = missed(shapes, interval_of, SETS)
    assert found >= SETS / 2
    assert outside <= (1 - PROMISED) * found, f"{outside} of {found}"


def test_an_interval_ends_at_sizes_that_were_measured() -> None:
    for seed in range(5):
        x, y = Shape("300 log-uniform", "up by 30 %", "normal, 2 %").draw(seed)
        (point,) = fit_segments(x, y, seed=seed).breakpoints
        assert point.interval is not None
        assert set(point.interval) <= set(x)
        assert point.interval[0] <= point.below < point.above <= point.interval[1]


def test_a_quiet_side_narrows_the_interval() -> None:
    # A break between 15 % and 2 % of noise is placed by the quiet side: the step is 15 of its scales.
    widths = []
    for seed in range(5):
        x, y = Shape("1000 uniform", "down by 30 %", "noisier before").draw(seed)
        (point,) = fit_segments(x, y, seed=seed).breakpoints
        assert point.interval is not None
        widths.append(point.interval[1] / point.interval[0])
    assert float(np.median(widths)) < 1.1
