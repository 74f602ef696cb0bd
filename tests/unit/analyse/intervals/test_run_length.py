from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import steelyard
from steelyard.analyse.comparison.equivalence import ratio_test
from steelyard.analyse.intervals.quantity import quantity_of
from steelyard.analyse.intervals.run_length import Scale, means_of_one_kind, values_that_count

Draw = Callable[[np.random.Generator, int], np.ndarray]
DRAWS: dict[str, Draw] = {
    "normal": lambda rng, size: 100 + 5 * rng.standard_normal(size),
    "gamma": lambda rng, size: rng.gamma(3, 1, size),
    "lognormal": lambda rng, size: rng.lognormal(0, 0.8, size),
    "spikes": lambda rng, size: np.where(rng.random(size) < 0.03, 20.0, 1 + 0.05 * rng.random(size)),
}


def runs(rng: np.random.Generator, draw: Draw, sizes: list[int]) -> list[np.ndarray]:
    return [draw(rng, size) for size in sizes]


def labels(sides: tuple[list[np.ndarray], ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.repeat(np.arange(len(side)), [run.size for run in side]) for side in sides)


@pytest.mark.parametrize(("kind", "most"), [("normal", 12), ("gamma", 12), ("lognormal", 12), ("spikes", 12)])
def test_the_same_program_is_rarely_slower_because_its_runs_are_longer(kind: str, most: int) -> None:
    alarms = 0
    for seed in range(120):  # 5 % are 6; more than 12 come in 0.7 % of cases
        rng = np.random.default_rng([5, seed])
        sides = runs(rng, DRAWS[kind], [1] * 30), runs(rng, DRAWS[kind], [30] * 30)
        values = [np.concatenate(side) for side in sides]
        clusters = labels(sides)
        found = steelyard.compare(values[0], values[1], clusters=(clusters[0], clusters[1]))
        alarms += found.guaranteed and not found.low <= 1 <= found.high
    assert alarms <= most


def test_what_counts_of_runs_of_unequal_length_is_said() -> None:
    rng = np.random.default_rng(1)
    sides = runs(rng, DRAWS["gamma"], [2, 3] * 6), runs(rng, DRAWS["gamma"], [40] * 12)
    values = [np.concatenate(side) for side in sides]
    clusters = labels(sides)
    said = "of every run only the first 2 values count: the runs hold 2 to 3 against 40 values"
    found = steelyard.compare(values[0], values[1], clusters=(clusters[0], clusters[1]))
    assert f"runs: {said}" in found.remarks
    cut = [np.array([run[:2].mean() for run in side]) for side in sides]
    assert found.ratio == steelyard.compare(cut[0], cut[1], clusters=(range(12), range(12))).ratio
    pair = steelyard.interval(values[0], other=values[1], clusters=clusters)
    assert pair.estimate == pytest.approx(found.ratio)
    assert said in pair.why
    assert pair.n == (30, 480)


def test_all_values_count_where_it_makes_no_difference() -> None:
    rng = np.random.default_rng(2)
    equal = runs(rng, DRAWS["lognormal"], [4] * 9), runs(rng, DRAWS["lognormal"], [4] * 30)
    assert values_that_count(*equal) is None
    normal = runs(rng, DRAWS["normal"], [1] * 20), runs(rng, DRAWS["normal"], [30] * 20)
    first, second, remark = means_of_one_kind(*normal)
    assert (first.size, second[0], remark) == (20, pytest.approx(normal[1][0].mean()), "")
    assert values_that_count([], equal[0]) is None
    flat = [np.ones(1)] * 5, [np.ones(9)] * 5
    assert values_that_count(*flat) is None


def test_the_mean_of_a_difference_needs_no_equal_lengths_and_other_statistics_do() -> None:
    rng = np.random.default_rng(3)
    sides = runs(rng, DRAWS["gamma"], [10] * 40), runs(rng, DRAWS["gamma"], [200] * 40)
    assert values_that_count(*sides) == 10
    assert values_that_count(*sides, Scale(is_log=False)) is None
    assert values_that_count(*sides, Scale(quantity_of("trimmed_mean").of, is_log=False)) == 10


def test_longer_runs_fail_more_often_so_that_failures_are_counted_among_as_many_values() -> None:
    sides = [np.full(2, 1.0)] * 6, [np.array([1.0, 1.0, np.inf])] * 6
    first, second, remark = means_of_one_kind(*sides)
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
    assert "first 2 values" in remark


def test_a_table_of_means_beside_single_values_makes_no_claim() -> None:
    """The same program twice, one side as means of 20: read as first values, they look 70 % slower."""
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng([9, seed])
        means = rng.exponential(1.0, (30, 20)).mean(axis=1)
        values = rng.exponential(1.0, (30, 20))
        clusters = np.arange(30), np.repeat(np.arange(30), 20)
        found = steelyard.compare(means, values.ravel(), clusters=clusters)
        claims += found.verdict in {"slower", "faster"}
        assert any("a single value may be the mean of many" in each for each in found.remarks)
    assert claims <= 6  # 5 % are 2; more than 6 come in 0.3 % of cases


def test_single_values_beside_longer_runs_still_show_a_large_difference() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.exponential(1.0, 40), 6 * rng.exponential(1.0, (40, 20))
    found = steelyard.compare(first, second.ravel(), clusters=(np.arange(40), np.repeat(np.arange(40), 20)))
    assert found.verdict == "slower"


def test_what_neighbours_of_a_run_share_counts_once() -> None:
    """Blocks of one launch against blocks of fifty: the values of a launch are nearly the same."""
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        sides = [
            [
                np.repeat(rng.lognormal(0, 0.47, count), 20) * rng.uniform(0.98, 1.02, 20 * count)
                for _ in range(30)
            ]
            for count in (1, 50)
        ]
        assert values_that_count(sides[0], sides[1]) == 20
        means = means_of_one_kind(sides[0], sides[1])
        test = ratio_test(means[0], means[1])
        wrong += not test.low <= 1 <= test.high
    assert wrong <= 8, "5 % are 3; more than 8 come in 0.4 % of cases"
