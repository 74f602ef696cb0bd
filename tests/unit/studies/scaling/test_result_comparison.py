from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.scaling.speedup import draw_blocks
from steelyard.model import Plan
from steelyard.studies.scaling.curves import curves
from steelyard.studies.scaling.recorded import CellTrials, Recorded
from steelyard.studies.scaling.result_comparison import (
    EQUAL,
    HIGHER,
    LOWER,
    UNDECIDED,
    compare_points,
)

if TYPE_CHECKING:
    from steelyard.studies.scaling.result_comparison import Side

COUNTS = (1, 2, 4, 8)


def side(
    rates: dict[int, float], stream: np.random.Generator, trials: int = 11, scatter: float = 0.01
) -> Side:
    """Give the points of a program with one rate per number of workers."""
    cells = []
    for number, (workers, rate) in enumerate(rates.items()):
        levels = {"program": "program", "workers": str(workers)}
        values = rate * stream.lognormal(0, scatter, trials)
        cells.append(CellTrials(number, levels, workers, values, "1/s", {}, {}))
    draws = draw_blocks(trials, resamples=50, seed=1)
    plan = Plan("scaling", 1, {}, (), (), trials, {})
    recorded = Recorded(plan, tuple(cells), (), (), (), (), 4, draws, frozenset(), None)
    return {
        (tuple(curve.subject.items()), point.workers): point
        for curve in curves(recorded)
        for point in curve.points
    }


def test_a_curve_that_bends_earlier_is_found_where_it_does() -> None:
    stream = np.random.default_rng(1)
    before = side({p: 100.0 * p for p in COUNTS}, stream)
    after = side({1: 100.0, 2: 200.0, 4: 320.0, 8: 900.0}, stream)
    found = compare_points(before, after, 0.05, with_rates=True)
    answers = {(point.quantity, point.workers): point.answer for point in found.points}
    assert answers == {
        ("speed-up", 2): EQUAL,
        ("speed-up", 4): LOWER,
        ("speed-up", 8): HIGHER,
        ("rate", 1): EQUAL,
        ("rate", 2): EQUAL,
        ("rate", 4): LOWER,
        ("rate", 8): HIGHER,
    }
    assert found.differs
    assert found.is_slower
    assert not found.is_undecided


def test_a_slower_program_that_scales_alike_differs_in_its_rates_alone() -> None:
    stream = np.random.default_rng(2)
    before, after = (side({p: rate * p for p in COUNTS}, stream) for rate in (100.0, 80.0))
    elsewhere = compare_points(before, after, 0.05, with_rates=False)
    assert {point.answer for point in elsewhere.points} == {EQUAL}
    here = compare_points(before, after, 0.05, with_rates=True)
    assert {point.answer for point in here.points if point.quantity == "rate"} == {LOWER}


def test_few_trials_and_what_one_result_lacks_are_undecided() -> None:
    stream = np.random.default_rng(3)
    before = side({1: 100.0, 2: 200.0}, stream, trials=4)
    after = side({1: 100.0, 2: 100.0, 4: 400.0}, stream, trials=4)
    found = compare_points(before, after, 0.02, with_rates=False)
    assert {point.answer for point in found.points} == {UNDECIDED}
    assert found.alone == ("workers 4 are only in the second result",)
    assert found.is_undecided
    assert not found.differs


@pytest.mark.parametrize("trials", [5, 11])
@pytest.mark.parametrize("scatter", [0.01, 0.1])
def test_identical_programs_rarely_differ_in_any_point(trials: int, scatter: float) -> None:
    stream = np.random.default_rng(4)
    rates = {p: 100.0 * p for p in COUNTS}
    rounds = 100
    red = sum(
        compare_points(
            side(rates, stream, trials, scatter), side(rates, stream, trials, scatter), 1e-9, with_rates=True
        ).differs
        for _ in range(rounds)
    )
    assert red <= 0.05 * rounds + 3 * math.sqrt(0.05 * 0.95 * rounds)
