"""Levels of revisions that links hold together."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from steelyard.analyse.series.chain import Chain, Link, Window, _part, link_of, since_best

ERROR = 0.001


def straight(*steps: float, error: float = ERROR, freedom: float = 1000.0) -> list[Link]:
    return [Link(place, place + 1, math.log(step), error, freedom) for place, step in enumerate(steps)]


def test_levels_are_the_products_of_the_links_and_their_variances_add_up() -> None:
    chain = Chain.of(4, straight(1.1, 0.9, 1.2))
    assert np.exp(chain.levels) == pytest.approx([1, 1.1, 0.99, 1.188])
    assert np.sqrt(chain.covariance.diagonal()) == pytest.approx([0, ERROR, ERROR * 2**0.5, ERROR * 3**0.5])
    assert chain.windows_to(3, 0.95)[1].error == pytest.approx(ERROR * 2**0.5)


def test_several_links_of_a_pair_weigh_by_their_variances() -> None:
    links = [Link(0, 1, 0.10, 0.01, 1000), Link(0, 1, 0.13, 0.02, 1000)]
    chain = Chain.of(2, links)
    assert chain.levels[1] == pytest.approx((4 * 0.10 + 0.13) / 5)
    assert chain.disagreement == pytest.approx(max(1.0, 0.03 / math.hypot(0.01, 0.02)))


def test_a_link_backwards_says_the_same() -> None:
    forwards, backwards = Link(0, 1, 0.2, 0.01, 50), Link(1, 0, -0.2, 0.01, 50)
    assert Chain.of(2, [forwards]).levels == pytest.approx(Chain.of(2, [backwards]).levels)


def test_a_long_link_makes_the_sum_of_short_ones_surer() -> None:
    short = straight(*[1.0] * 20)
    alone = Chain.of(21, short).windows_to(20, 0.95)[0].error
    with_long = Chain.of(21, [*short, Link(0, 20, 0.0, ERROR, 1000)]).windows_to(20, 0.95)[0].error
    assert alone == pytest.approx(ERROR * 20**0.5)
    assert 1 / with_long**2 == pytest.approx(1 / alone**2 + 1 / ERROR**2)


def test_links_around_a_circle_that_disagree_widen_all_errors() -> None:
    circle = [*straight(1.0, 1.0), Link(0, 2, 0.01, ERROR, 1000)]
    chain = Chain.of(3, circle)
    assert chain.disagreement == pytest.approx(0.01 / (ERROR * 3**0.5))
    agreed = Chain.of(3, [*straight(1.0, 1.0), Link(0, 2, 0.0, ERROR, 1000)])
    assert chain.windows_to(1, 0.95)[0].error == pytest.approx(
        chain.disagreement * agreed.windows_to(1, 0.95)[0].error
    )


def test_no_window_reaches_across_a_gap() -> None:
    chain = Chain.of(4, [Link(0, 1, 0.5, ERROR, 1000), Link(2, 3, 0.5, ERROR, 1000)])
    assert [(each.first, each.second) for each in chain.windows_to(3, 0.95)] == [(2, 3)]
    assert chain.windows_to(2, 0.95) == []
    assert [(each.first, each.second) for each in chain.changes(0.95)] == [(0, 1), (2, 3)]


def test_a_step_is_found_at_its_link_and_a_slow_drift_over_many() -> None:
    step = Chain.of(21, straight(*[1.0] * 10, 1.02, *[1.0] * 9)).changes(0.95)
    assert [(each.first, each.second) for each in step] == [(10, 11)]
    assert step[0].low < 1.02 < step[0].high
    drift = Chain.of(61, straight(*[1.0015] * 60)).changes(0.95)
    assert drift
    assert all(each.is_slower and each.second - each.first > 1 for each in drift)


def newest(chain: Chain, accepted: list[int] | None = None) -> Window | None:
    to_newest = chain.windows_to(len(chain.levels) - 1, 0.95)
    return since_best(chain.changes(0.95), to_newest, accepted or [])


def test_what_changed_stays_changed_until_it_is_accepted_or_undone() -> None:
    quiet = [1.0] * 40
    slower = Chain.of(82, straight(*quiet, 1.03, *quiet))
    found = newest(slower)
    assert found is not None
    assert found.is_regression(0.02)
    assert found.ratio == pytest.approx(1.03)
    assert newest(slower, [41]) is None
    assert newest(slower, [40]) == found
    undone = newest(Chain.of(83, straight(*quiet, 1.03, *quiet, 1 / 1.03)))
    assert undone is not None
    assert not undone.is_regression(0.02)


def test_a_faster_level_is_the_one_to_hold() -> None:
    found = newest(Chain.of(5, straight(0.8, 1.0, 1.1, 1.0)))
    assert found is not None
    assert found.ratio == pytest.approx(1.1)


def test_a_drift_counts_as_a_whole() -> None:
    drift = Chain.of(61, straight(*[1.003] * 60, error=0.003))
    found = newest(drift)
    assert found is not None
    assert found.ratio > 1.003**50


def test_the_error_of_several_changes_is_that_of_their_sum() -> None:
    one, other = Window(0, 1, math.log(1.1), 0.05, 0.01), Window(3, 4, math.log(1.2), 0.05, 0.02)
    found = since_best([one, other], [], [])
    assert found is not None
    assert (found.first, found.second) == (0, 4)
    assert found.ratio == pytest.approx(1.32)
    assert found.error == pytest.approx(math.hypot(0.01, 0.02))


def test_what_jobs_differ_by_of_their_own_is_noise() -> None:
    random = np.random.default_rng(4)
    jobs = [Link(n, n + 1, float(random.normal(0, 0.01)), 0.001, 30) for n in range(60)]
    chain = Chain.of(61, jobs)
    assert chain.scatter == pytest.approx(0.01, rel=0.4)
    assert not chain.changes(0.95)
    # One large change among them is none of it.
    jobs[30] = Link(30, 31, 0.2, 0.001, 30)
    assert [(each.first, each.second) for each in Chain.of(61, jobs).changes(0.95)] == [(30, 31)]


def test_far_levels_overflow_nothing() -> None:
    for log_ratio in (10.0, -10.0):
        chain = Chain.of(201, [Link(n, n + 1, log_ratio, 0.5, 1) for n in range(200)])
        for window in chain.windows_to(200, 0.95):
            assert 0 < window.low <= window.ratio <= window.high < math.inf
            assert math.isfinite(window.visible)


def test_blocks_that_are_equal_by_chance_are_not_exact() -> None:
    assert link_of(0, 1, np.full(9, 0.03), is_mean=True) is None
    ticks = [Link(n, n + 1, 0.0, 0.01, 2) for n in range(9)] + [Link(9, 10, 0.03, 0.0, 2)]
    chain = Chain.of(11, ticks)
    assert not chain.changes(0.95)
    assert chain.windows_to(10, 0.95)[-1].error > 0.005


def test_noise_that_is_alike_everywhere_is_known_better_than_one_link_knows_it() -> None:
    random = np.random.default_rng(5)
    alike = [link_of(place, place + 1, random.normal(0, 0.02, 8), is_mean=True) for place in range(40)]
    links = [link for link in alike if link is not None]
    own = Chain.of(41, links[-1:]).windows_to(40, 0.95)[0]
    among = Chain.of(41, links).windows_to(40, 0.95)[-1]
    assert among.error == pytest.approx(0.02 / 8**0.5, rel=0.3)
    assert math.log(among.high / among.low) / among.error < 0.5 * math.log(own.high / own.low) / own.error


def test_noise_of_many_kinds_is_not_pooled() -> None:
    kinds = [Link(place, place + 1, 0.0, 10.0 ** (place % 3 - 3), 9) for place in range(42)]
    alone = Chain.of(2, kinds[:1]).windows_to(1, 0.95)[0]
    among = Chain.of(43, kinds).windows_to(1, 0.95)[0]
    assert among.error == pytest.approx(alone.error, rel=0.6)


def test_equal_differences_have_no_error_and_a_change_of_them_is_sure() -> None:
    same = link_of(0, 1, np.zeros(20), is_mean=False)
    more = link_of(1, 2, np.full(20, math.log(1.01)), is_mean=False)
    assert same is not None
    assert more is not None
    assert [(each.first, each.second) for each in Chain.of(3, [same, more]).changes(0.95)] == [(1, 2)]


@pytest.mark.parametrize("is_mean", [True, False])
@pytest.mark.parametrize("count", [5, 9, 10, 40])
def test_the_standard_error_of_a_link_is_that_of_its_estimate(count: int, *, is_mean: bool) -> None:
    random = np.random.default_rng(3)
    links = [link_of(0, 1, random.normal(0.1, 0.05, count), is_mean=is_mean) for _ in range(800)]
    estimates = [link.log_ratio for link in links if link is not None]
    variances = [link.standard_error**2 for link in links if link is not None]
    assert np.mean(variances) ** 0.5 == pytest.approx(np.std(estimates), rel=0.15)
    assert link_of(0, 1, np.array([0.1, 0.2, 0.1, 0.3]), is_mean=is_mean) is None


@pytest.mark.parametrize("count", [2, 30, 100])
def test_the_parts_of_the_error_of_all_pairs_add_up_to_at_most_all_of_it(count: int) -> None:
    parts = [last * _part(last, count) for last in range(1, count)]
    assert 0.3 < sum(parts) <= 1
    assert sum(last * _part(last, 100) for last in range(1, 100)) == pytest.approx(1, abs=0.01)


def test_a_long_history_needs_the_memory_of_one_matrix_at_a_time() -> None:
    """Five benchmarks over thousands of revisions would else hold several matrices each."""
    count = 700
    links = straight(*[1.0] * (count - 1))
    for jobs in (links, [*links, Link(0, count - 1, 0.0, ERROR, 1000)]):
        tracemalloc.start()
        chain = Chain.of(count, jobs)
        _, peak = tracemalloc.get_traced_memory()
        kept = chain.without_covariance()
        errors = chain.errors
        del chain
        left, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        matrix = 8 * count**2
        assert peak < 6.5 * matrix
        assert left < 0.3 * matrix
        assert kept.levels == pytest.approx(np.zeros(count))
        assert errors[0] == 0


def test_the_covariance_of_a_path_is_that_of_the_equations() -> None:
    links = straight(1.1, 0.9, 1.2, 1.0)
    path = Chain.of(5, links)
    # The same jobs in another order are no path to the solver.
    other = Chain.of(5, [links[1], links[0], *links[2:]])
    assert path.covariance == pytest.approx(other.covariance)
    assert path.levels == pytest.approx(other.levels)
    assert path.own_errors == pytest.approx([0.0, *[link.standard_error for link in links]], rel=0.5)
    assert path.own_errors == pytest.approx(other.own_errors)


def test_a_precise_link_behind_a_noisy_one_keeps_its_degrees_of_freedom() -> None:
    """A peak of memory that is the same in all runs, after one that was not."""
    noisy = Link(0, 1, 0.0, 0.02, 9)
    path = Chain.of(3, [noisy, Link(1, 2, 0.001, 0.0, 9)]).windows_to(2, 0.95)
    other = Chain.of(3, [Link(1, 2, 0.001, 0.0, 9), noisy]).windows_to(2, 0.95)
    assert [each.half for each in path] == pytest.approx([each.half for each in other])
