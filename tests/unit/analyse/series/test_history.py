from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.analyse.series.held_level import slowdown
from steelyard.analyse.series.history import (
    FEWEST,
    Change,
    HistoryOptions,
    Inside,
    SeriesHistory,
    find_changes,
    segments_of,
)
from steelyard.analyse.series.history_threshold import threshold
from steelyard.errors import AnalysisError

INDEPENDENT = HistoryOptions(is_independent=True)


def noisy(levels: list[float], counts: list[int], seed: int = 1, sigma: float = 0.01) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.repeat(levels, counts) * np.exp(sigma * rng.standard_normal(sum(counts)))


def test_two_changes_are_found_where_they_are_with_their_size() -> None:
    (found,) = find_changes([noisy([1.0, 1.2, 0.9], [30, 30, 30])])
    assert [change.position for change in found.changes] == [30, 60]
    for change, ratio in zip(found.changes, (1.2, 0.75), strict=True):
        assert change.low < ratio < change.high
        assert change.high / change.low < 1.03
    assert segments_of(found, 90) == [(0, 30), (30, 60), (60, 90)]


def test_a_change_within_the_margin_is_none() -> None:
    series = noisy([1.0, 1.03], [40, 40], sigma=0.005)
    assert [change.position for change in find_changes([series])[0].changes] == [40]
    assert find_changes([series], HistoryOptions(margin=0.05))[0].changes == ()


@pytest.mark.parametrize("options", [HistoryOptions(), INDEPENDENT])
def test_outliers_however_large_make_no_change(options: HistoryOptions) -> None:
    series = noisy([1.0], [60])
    series[[0, 30, 59]] *= 1000
    assert find_changes([series], options)[0].changes == ()


def test_few_results_and_constants_get_a_clear_answer() -> None:
    for size in (0, 1, 2, FEWEST - 1):
        found = find_changes([np.full(size, 2.0)])[0]
        assert found.suspect is None
        assert (found.changes, found.is_undecidable, found.p_value) == ((), True, 1.0)
    constant = find_changes([np.full(50, 2.0)])[0]
    assert (constant.changes, constant.is_undecidable) == ((), False)
    step = find_changes([np.repeat([1.0, 2.0], 20)])[0]
    assert [change.position for change in step.changes] == [20]
    assert find_changes([]) == []


def test_a_history_that_is_too_long_is_refused() -> None:
    with pytest.raises(AnalysisError, match="20001 results of a series: at most 20000"):
        find_changes([np.ones(20001)])


def test_independent_results_need_fewer() -> None:
    series = noisy([1.0, 1.03], [5, 5])
    assert find_changes([series])[0].changes == ()
    (found,) = find_changes([series], INDEPENDENT)
    assert [change.position for change in found.changes] == [5]


@pytest.mark.parametrize("options", [HistoryOptions(), INDEPENDENT])
@pytest.mark.parametrize("size", [1.3, 2.0, 3.0, 100.0])
def test_the_last_three_of_sixteen_are_a_change_however_large(size: float, options: HistoryOptions) -> None:
    """The fault: "no change; could have seen a lasting change of 20 %" of a threefold slow-down."""
    for seed in range(20):
        (found,) = find_changes([noisy([1.0, size], [13, 3], seed, 0.02)], options)
        change = found.changes[-1]
        assert (change.position, change.places) == (13, (13, 13))
        assert 0.9 * size < change.low < change.high < 1.15 * size


@pytest.mark.parametrize("after", [3, 8])
def test_power_grows_with_the_size_of_the_step(after: int) -> None:
    sizes = (1.03, 1.06, 1.1, 1.2, 1.5, 3.0)
    for options in (HistoryOptions(), INDEPENDENT):
        p_values = [
            find_changes([noisy([1.0, size], [16 - after, after], 3, 0.02)], options)[0].p_value
            for size in sizes
        ]
        assert p_values == sorted(p_values, reverse=True)
        assert p_values[-1] < 1e-4


def test_one_extreme_newest_result_is_suspect_and_no_change() -> None:
    """The fault: 30 % slower at 60 standard errors was "no change", without a word."""
    rng = np.random.default_rng(8)
    runs = noisy([1.0, 1.3], [15, 1])[:, None] * np.exp(0.015 * rng.standard_normal((16, 10)))
    values = runs.mean(axis=1)
    squares = ((runs - values[:, None]) ** 2).sum(axis=1) / values**2
    (found,) = find_changes([values], None, [Inside(np.full(16, 10.0), squares)])
    assert found.changes == ()
    assert found.suspect is not None
    assert found.suspect.position == 15
    assert found.suspect.low < 1.3 < found.suspect.high
    (quiet,) = find_changes([values[:15]], None, [Inside(np.full(15, 10.0), squares[:15])])
    assert (quiet.changes, quiet.suspect) == ((), None)


def test_a_level_that_one_look_alone_would_show_is_suspect() -> None:
    (found,) = find_changes([noisy([1.0, 1.04], [8, 8], 4, 0.02)])
    assert found.changes == ()
    assert found.suspect is not None
    assert abs(found.suspect.position - 8) <= 2
    assert slowdown(found, is_rate=False, margin=0.02) is None, "what is suspect fails nothing"


def test_the_spread_inside_results_tells_the_two_kinds_of_noise_apart() -> None:
    values = noisy([1.0, 1.07], [6, 6], 2, 0.02)
    inside = Inside(np.full(12, 10.0), np.full(12, 9 * 10 * 0.02**2))
    (alone,), (informed,) = find_changes([values]), find_changes([values], None, [inside])
    assert (alone.between, informed.between) == (1.0, 0.0)
    # Precise means of results that differ from each other say nothing about how results depend on each other.
    precise = Inside(np.full(12, 10.0), np.full(12, 9 * 10 * 1e-4**2))
    assert find_changes([values], None, [precise])[0].p_value == pytest.approx(alone.p_value, rel=0.2)


def test_results_of_many_runs_weigh_more() -> None:
    """A result of two runs that is far away says less than one of fifty."""
    values = noisy([1.0], [16], 6, 0.01)
    values[12:] *= np.exp([0.0, 0.06, 0.06, 0.06])
    squares = 0.05**2 * np.ones(16)
    few, many = np.full(16, 50.0), np.full(16, 50.0)
    few[13:] = 2
    p_values = [
        find_changes([values], INDEPENDENT, [Inside(runs, squares * (runs - 1))])[0].p_value
        for runs in (few, many)
    ]
    assert p_values[1] < p_values[0]


def test_the_level_to_hold_is_the_accepted_one_or_a_faster_one_after_it() -> None:
    def change(position: int, ratio: float) -> Change:
        return Change(position, ratio, ratio, ratio, 0.01, (position - 1, position + 1))

    slower = SeriesHistory((change(10, 1.2),), 0.01, 0.0, is_undecidable=False)
    assert slowdown(slower, is_rate=False, margin=0.02) == pytest.approx(1.2)
    assert slowdown(slower, is_rate=True, margin=0.02) is None
    assert slowdown(slower, [15], is_rate=False, margin=0.02) is None
    assert slowdown(slower, [9], is_rate=False, margin=0.02) is None, "the change may begin there"
    assert slowdown(slower, [8], is_rate=False, margin=0.02) == pytest.approx(1.2)
    back = SeriesHistory((change(10, 1.2), change(20, 1 / 1.2)), 0.01, 0.0, is_undecidable=False)
    assert slowdown(back, is_rate=False, margin=0.02) is None
    half_back = SeriesHistory((change(10, 1.2), change(20, 0.9)), 0.01, 0.0, is_undecidable=False)
    assert slowdown(half_back, is_rate=False, margin=0.02) == pytest.approx(1.08)
    faster_then_slower = SeriesHistory((change(10, 0.8), change(20, 1.1)), 0.01, 0.0, is_undecidable=False)
    assert slowdown(faster_then_slower, is_rate=False, margin=0.02) == pytest.approx(1.1)
    rate = SeriesHistory((change(10, 0.5),), 0.01, 0.0, is_undecidable=False)
    assert slowdown(rate, is_rate=True, margin=0.02) == pytest.approx(0.5)


def test_longer_histories_and_smaller_errors_ask_for_more() -> None:
    thresholds = [threshold(size, 0.7) for size in (20, 50, 100, 1000)]
    assert thresholds == sorted(thresholds)
    assert threshold(8, 0.7) > threshold(12, 0.7)
    assert threshold(20, 0.0, 0.005) - threshold(20, 0.0) == pytest.approx(np.log(10))


def test_a_wandering_series_is_undecided() -> None:
    rng = np.random.default_rng(5)
    walk = np.exp(0.01 * np.cumsum(rng.standard_normal(300)))
    found = find_changes([walk])[0]
    assert (found.changes, found.is_undecidable) == ((), True)
    assert found.autocorrelation > 0.7


def test_scale_and_direction_of_the_values_do_not_matter() -> None:
    series = noisy([1.0, 1.1], [25, 25])
    (plain,), (scaled,), (inverse,) = (
        find_changes([values]) for values in (series, 1e9 * series, 1 / series)
    )
    assert plain.changes[0].position == scaled.changes[0].position == inverse.changes[0].position
    assert scaled.changes[0].ratio == pytest.approx(plain.changes[0].ratio)
    assert inverse.changes[0].ratio == pytest.approx(1 / plain.changes[0].ratio)


def test_more_series_ask_for_more() -> None:
    weak = noisy([1.0, 1.06], [15, 15], seed=4, sigma=0.015)
    quiet = [noisy([1.0], [30], seed=seed) for seed in range(100, 160)]
    alone, among = find_changes([weak])[0], find_changes([weak, *quiet])[0]
    assert alone.p_value < among.p_value


@pytest.mark.parametrize("options", [HistoryOptions(margin=0.001), replace(INDEPENDENT, margin=0.001)])
@pytest.mark.parametrize("size", [12, 20, 60])
def test_what_could_have_been_seen_would_have_been_found(options: HistoryOptions, size: int) -> None:
    """A change of the size that an unchanged series states is found in about 8 of 10 other ones."""
    count = 100  # a standard deviation of 0.04: what is found in less than 6 of 10 fails
    quiet = [find_changes([noisy([1.0], [size], seed, 0.02)], options)[0] for seed in range(25)]
    stated = float(np.median([found.visible for found in quiet if not found.changes]))
    if not np.isfinite(stated):
        assert size < 12, "with 12 results some change can be seen"
        return
    half = size // 2
    seen = sum(
        bool(find_changes([noisy([1.0, 1 + stated], [half, half], seed, 0.02)], options)[0].changes)
        for seed in range(1000, 1000 + count)
    )
    assert 0.68 <= seen / count <= 0.98, (stated, seen)


def test_where_nothing_could_have_been_seen_it_is_said() -> None:
    (few,) = find_changes([noisy([1.0], [FEWEST - 1])])
    assert few.visible == float("inf")
    (found,) = find_changes([noisy([1.0], [40], sigma=0.01)])
    (wider,) = find_changes([noisy([1.0], [40], sigma=0.05)])
    assert 0.02 <= found.visible < wider.visible < 0.5
    many = find_changes([noisy([1.0], [40], seed, 0.01) for seed in range(1, 40)])
    assert many[0].visible > found.visible, "more series ask for more"
    assert find_changes([np.full(50, 2.0)])[0].visible == 0.02, "a constant shows all that matters"


def test_few_exact_values_have_noise_and_an_exact_step_of_many_digits_is_a_change() -> None:
    """The fault: three results in a row of a value that is rare, but was rounded to, were a new level."""
    ticks = np.repeat([10.0, 11.0, 10.0, 11.0], [20, 1, 12, 3])
    assert find_changes([ticks])[0].changes == ()
    (found,) = find_changes([np.repeat([104857600.0, 209715200.0], [13, 3])])
    assert [change.position for change in found.changes] == [13]
