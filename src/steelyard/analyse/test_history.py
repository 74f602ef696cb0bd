from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.analyse.history import (
    FEWEST,
    FEWEST_INDEPENDENT,
    HistoryOptions,
    find_changes,
    segments_of,
)
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
        assert (found.changes, found.is_undecidable, found.p_value) == ((), True, 1.0)
    constant = find_changes([np.full(50, 2.0)])[0]
    assert (constant.changes, constant.is_undecidable) == ((), False)
    step = find_changes([np.repeat([1.0, 2.0], 20)])[0]
    assert [change.position for change in step.changes] == [20]
    assert find_changes([]) == []


def test_a_history_that_is_too_long_is_refused() -> None:
    with pytest.raises(AnalysisError, match="20001 results; at most 20000"):
        find_changes([np.ones(20001)])


def test_independent_results_need_fewer() -> None:
    series = noisy([1.0, 1.3], [5, 5])
    assert find_changes([series])[0].is_undecidable
    (found,) = find_changes([series], INDEPENDENT)
    assert [change.position for change in found.changes] == [5]
    assert find_changes([series[: FEWEST_INDEPENDENT - 1]], INDEPENDENT)[0].is_undecidable


def test_the_permutation_test_counts_orders() -> None:
    """With 4 results each side, 2 of the 70 ways to choose a side are as extreme as a clean split."""
    series = noisy([1.0, 2.0], [4, 4], sigma=1e-3)
    (found,) = find_changes([series], INDEPENDENT)
    # Splits elsewhere can be as large only if they separate the sides as well: none does.
    assert found.p_value == pytest.approx(2 / 70, abs=4 * (2 / 70 * 68 / 70 / 3000) ** 0.5)


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
    weak = noisy([1.0, 1.06], [15, 15], seed=4, sigma=0.02)
    quiet = [noisy([1.0], [30], seed=seed) for seed in range(100, 160)]
    alone, among = find_changes([weak])[0], find_changes([weak, *quiet])[0]
    assert alone.p_value < among.p_value


@pytest.mark.parametrize("options", [HistoryOptions(margin=0.001), replace(INDEPENDENT, margin=0.001)])
@pytest.mark.parametrize("size", [12, 16, 20, 60])
def test_what_could_have_been_seen_would_have_been_found(options: HistoryOptions, size: int) -> None:
    """A change of the size that an unchanged series states is found in about 8 of 10 other ones."""
    quiet = [find_changes([noisy([1.0], [size], seed, 0.02)], options)[0] for seed in range(60)]
    stated = float(np.median([found.visible for found in quiet if not found.changes]))
    if not np.isfinite(stated):
        assert size < 20, "with 20 results some change can be seen"
        return
    half = size // 2
    seen = sum(
        bool(find_changes([noisy([1.0, 1 + stated], [half, half], seed, 0.02)], options)[0].changes)
        for seed in range(1000, 1200)
    )
    assert 0.6 <= seen / 200 <= 0.98, (stated, seen)


def test_where_nothing_could_have_been_seen_it_is_said() -> None:
    (few,) = find_changes([noisy([1.0], [FEWEST - 1])])
    assert few.visible == float("inf")
    (found,) = find_changes([noisy([1.0], [40], sigma=0.01)])
    (wider,) = find_changes([noisy([1.0], [40], sigma=0.05)])
    assert 0.02 <= found.visible < wider.visible < 0.5
    many = find_changes([noisy([1.0], [40], seed, 0.01) for seed in range(1, 40)])
    assert many[0].visible > found.visible, "more series ask for more"
    assert find_changes([np.full(50, 2.0)])[0].visible == 0.02, "a constant shows all that matters"
