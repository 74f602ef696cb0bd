from __future__ import annotations

import numpy as np
import pytest

import steelyard
from steelyard.analyse.cost_curve.pieces import PieceKind
from steelyard.analyse.cost_curve.segments import SegmentOptions, fit_segments
from steelyard.errors import AnalysisError, UsageError


def messages(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    size = np.round(10 ** generator.uniform(0, 7, count))
    level = np.where(size < 65000, 4.2 + 1.1e-3 * size, 415.0 + 8.5e-3 * size)
    return size, level * (1 + generator.lognormal(np.log(0.05), 1.0, count))


def test_a_jump_is_found_with_an_interval_around_it() -> None:
    model = fit_segments(*messages(2000, 1))
    assert len(model.breakpoints) == 1
    point = model.breakpoints[0]
    assert point.below < point.at < point.above
    assert point.interval is not None
    assert point.interval[0] <= 65000 <= point.interval[1]
    assert model.gap == 0
    assert model.predict([1e6])[0] == pytest.approx((415 + 8500) * 1.07, rel=0.03)


def test_the_order_of_the_input_does_not_matter() -> None:
    x, y = messages(800, 2)
    order = np.random.default_rng(0).permutation(800)
    first, second = fit_segments(x, y), fit_segments(x[order], y[order])
    assert first.breakpoints == second.breakpoints


def test_both_regimes_near_a_switch_stay_visible() -> None:
    generator = np.random.default_rng(5)
    x = np.sort(generator.uniform(1000, 9000, 6000))
    chance = np.clip((x - 4970) / 60, 0, 1)
    is_high = generator.random(6000) < chance
    y = np.where(is_high, 100.0, 10.0) * (1 + 0.01 * generator.normal(size=6000))
    (point,) = fit_segments(x, y).breakpoints
    assert point.mixed is not None
    assert 4960 < point.mixed[0] < point.mixed[1] < 5040
    assert point.mixed_points >= 2


def test_repeated_sizes_are_searched_on_their_medians() -> None:
    x = np.repeat(np.arange(1.0, 101.0), 20)
    y = np.where(x < 50, 5.0, 8.0) + np.tile(np.linspace(0, 0.5, 20), 100)
    model = fit_segments(x, y)
    assert model.on_medians
    assert [(point.below, point.above) for point in model.breakpoints] == [(49.0, 50.0)]
    assert model.pieces[0].model.count == 49 * 20


def test_given_breaks_are_kept() -> None:
    x, y = messages(500, 3)
    model = fit_segments(x, y, breaks=[65000.0])
    assert [piece.kind for piece in model.pieces] == [PieceKind.LINE, PieceKind.LINE]
    assert model.pieces[0].high < 65000 <= model.pieces[1].low
    powers = fit_segments(x, y, breaks=[65000.0], log=True)
    assert powers.pieces[0].predict([100.0]) == pytest.approx(powers.pieces[0].model.predict([100.0]))


def test_values_that_are_not_positive_get_constant_noise() -> None:
    x = np.arange(200.0)
    y = np.where(x < 100, -1.0, 1.0) + 0.01 * np.sin(x * 7)
    assert [point.above for point in fit_segments(x, y).breakpoints] == [100.0]


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2.0], [1.0, 2.0], "at least 4"),
        ([1.0] * 5, [1.0] * 4, "shape"),
        ([1.0] * 5, [np.inf] * 5, "finite"),
    ],
)
def test_impossible_data_say_why(x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        fit_segments(x, y)


def test_a_break_outside_says_so() -> None:
    with pytest.raises(AnalysisError, match="no point lies between"):
        fit_segments([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], breaks=[10.0])


def test_a_straight_line_gets_no_break() -> None:
    found = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        x = 10 ** generator.uniform(0, 6, 1000)
        y = (5 + 1e-3 * x) * (1 + generator.lognormal(np.log(0.05), 1.0, 1000))
        found += len(fit_segments(x, y, options=SegmentOptions(floor=0.0), resamples=0).breakpoints)
    assert found <= 1


def test_functions_of_the_package() -> None:
    assert steelyard.fit_segments is fit_segments
    assert steelyard.linear_model([1, 2, 3], [2, 4, 6.5]).count == 3


def test_a_steep_power_law_predicts_where_its_factor_or_its_power_is_near_the_end_of_numbers() -> None:
    x = np.geomspace(4000, 4400, 40)
    for exponent in (-80.0, 84.0):
        y = 1e-5 * (x / 4000) ** exponent
        model = fit_segments(x, y, breaks=[], log=True)
        assert model.pieces[0].predict([4200.0])[0] == pytest.approx(1e-5 * 1.05**exponent, rel=1e-6)


@pytest.mark.parametrize("level", [1.0, 0.0, 1.5, float("nan"), 95, "95%"])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    """The fault: `level=95` gave breaks with limits of no level."""
    with pytest.raises(UsageError, match="allowed: between 0 and 1, both excluded"):
        fit_segments(range(10), range(10), level=level)
