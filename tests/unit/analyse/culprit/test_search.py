from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from statistical.planted_histories import linear, planted, searched
from steelyard.analyse.culprit.choice import Costs, choose
from steelyard.analyse.culprit.evidence import PART, Blocks, favour, gather
from steelyard.analyse.culprit.history import CommitFacts, History
from steelyard.analyse.culprit.posterior import posterior_of
from steelyard.analyse.culprit.search import Answer, Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.culprit.search import Knowledge


def commits(*parents: tuple[int, ...]) -> History:
    return History(tuple(CommitFacts(str(at), str(at), each) for at, each in enumerate(parents)))


# 0 - 1 ----- 4 - 5, with 2 - 3 beside it
MERGED = commits((), (0,), (0,), (2,), (1, 3), (4,))


def seen(search: Search, levels: Sequence[float], *, sd: float = 0.01, blocks: int = 6) -> None:
    """Measure both ends, and each commit that has a level, in so many blocks."""
    rng = np.random.default_rng(5)

    def taken(level: float) -> float:
        return math.exp(level + sd * rng.standard_normal())

    while not search.differs:
        search.add_ends(taken(0.0), taken(levels[-1]))
    for commit, level in enumerate(levels[:-1]):
        if not math.isnan(level):
            for _ in range(blocks):
                search.add(commit, taken(0.0), taken(level), taken(levels[-1]))


def confirmed(search: Search, levels: Sequence[float], *, sd: float = 0.01) -> Knowledge:
    """Measure commits beside their parents as long as the search asks for it."""
    rng = np.random.default_rng(6)
    while (known := search.know()).answer is Answer.OPEN:
        choice = search.choose(known, Costs(1.0, 1.0, range(len(levels))))
        if choice is None or choice.beside is None:
            break
        before = levels[choice.beside] if choice.beside >= 0 else 0.0
        for _ in range(choice.blocks):
            step = levels[choice.commit] - before + sd * rng.standard_normal()
            search.add_step(choice.beside, choice.commit, math.exp(step))
    return known


def test_a_commit_contains_its_ancestors() -> None:
    assert MERGED.contains(3).tolist() == [True, False, True, True, False, False]
    assert MERGED.contains(5).all()
    weights = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.1])
    assert MERGED.changed(weights) == pytest.approx([0.1, 0.3, 0.4, 0.5, 0.9, 1.0])
    line = linear(4)
    assert line.changed(np.full(4, 0.25)) == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert line.contains(1).tolist() == [True, True, False, False]


def test_commits_that_no_measurement_tells_apart_are_one_class() -> None:
    assert linear(5).classes(frozenset({1, 2})).tolist() == [0, 1, 1, 1, 2]
    found = MERGED.classes(frozenset({2, 4}))
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len(set(found.tolist())) == 4


@pytest.mark.parametrize("step", [0.2, -0.2])
def test_a_step_in_either_direction_is_found(step: float) -> None:
    search = Search(linear(6))
    levels = [0.0, 0.0, step, step, math.nan, step]
    seen(search, levels)
    assert search.know().answer is Answer.OPEN
    known = confirmed(search, levels)
    assert known.answer is Answer.FOUND
    assert np.flatnonzero(known.suspects).tolist() == [2]
    assert known.weights.sum() + known.several == pytest.approx(1.0)


def test_a_culprit_beside_the_main_line_is_found() -> None:
    search = Search(MERGED)
    seen(search, [0.0, 0.0, 0.0, 0.2, 0.2, 0.2])
    assert np.flatnonzero(search.know().suspects).tolist() == [3]


def test_the_unit_of_the_values_does_not_matter() -> None:
    found = []
    for unit in (1.0, 1e9):
        search = Search(linear(6))
        rng = np.random.default_rng(3)
        while not search.differs:
            search.add_ends(unit * rng.lognormal(0, 0.02), unit * rng.lognormal(0.1, 0.02))
        for _ in range(6):
            first, candidate, last = (unit * rng.lognormal(level, 0.02) for level in (0, 0.1, 0.1))
            search.add(3, first, candidate, last)
        found.append(search.know().weights)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_the_order_of_blocks_of_different_commits_does_not_matter() -> None:
    values = {1: [(0.01, -0.09), (-0.02, -0.12)], 3: [(0.1, 0.0), (0.09, 0.01)]}
    ends = [0.1, 0.11, 0.09, 0.1]
    one = gather(Blocks(ends, values))
    other = gather(Blocks(ends, dict(reversed(values.items()))))
    assert posterior_of(linear(6), one).weights == pytest.approx(posterior_of(linear(6), other).weights)


def test_commits_between_which_nothing_builds_are_named_together() -> None:
    search = Search(linear(8))
    search.failed.update({3, 4})
    levels = [math.nan, 0.0, 0.0, math.nan, math.nan, 0.2, math.nan, 0.2]
    seen(search, levels)
    known = confirmed(search, levels)
    assert list(search.blocks.steps) == [(2, 5)]
    assert known.answer is Answer.FOUND
    assert np.flatnonzero(known.suspects).tolist() == [3, 4, 5]
    assert known.weights[3] == pytest.approx(known.weights[5])


def test_the_first_choice_halves_the_history_and_failures_move_it() -> None:
    search = Search(linear(101))
    seen(search, [*[math.nan] * 100, 0.2])
    costs = Costs(build_s=30.0, block_s=1.0)
    first = search.choose(search.know(), costs)
    assert first is not None
    assert abs(first.commit - 50) <= 1
    search.failed.add(first.commit)
    second = search.choose(search.know(), costs)
    assert second is not None
    assert 3 <= abs(second.commit - first.commit) <= 20


def test_where_builds_are_dear_a_built_commit_is_measured_on() -> None:
    search = Search(linear(64))
    seen(search, [*[math.nan] * 31, 0.05, *[math.nan] * 31, 0.05], sd=0.05, blocks=2)
    known = search.know()
    assert known.evidence is not None
    assert known.posterior is not None
    chosen = {}
    for build_s in (0.0, 10_000.0):
        choice = choose(search.history, known.evidence, known.posterior, Costs(build_s, 3.0, {31}))
        assert choice is not None
        chosen[build_s] = choice
    assert chosen[10_000.0].commit == 31
    assert chosen[0.0].rate > chosen[10_000.0].rate


def test_a_commit_is_measured_beside_its_parent_before_it_is_named() -> None:
    search = Search(linear(4))
    seen(search, [0.0, 0.0, 0.5, 0.5])
    known = search.know()
    assert known.probability > 0.95
    assert known.answer is Answer.OPEN
    choice = search.choose(known, Costs(1.0, 1.0, {0, 1, 2}))
    assert choice is not None
    assert (choice.beside, choice.commit) == (1, 2)


def test_a_commit_that_is_as_fast_as_its_parent_is_not_named() -> None:
    search = Search(linear(4))
    levels = [0.0, 0.0, 0.2, 0.2]
    seen(search, levels)
    assert search.know().probability > 0.95
    for _ in range(20):
        search.add_step(1, 2, 1.0)
    assert search.know().answer is Answer.OPEN


def test_a_merge_is_measured_beside_each_of_its_parents() -> None:
    suspects = np.arange(6) == 4
    assert MERGED.sides(suspects, frozenset()) == [(1, 4), (3, 4)]
    # The side branch cannot be measured: what it begins at stands in its place.
    branch = MERGED.classes(frozenset({2, 3}))
    assert MERGED.sides(branch == branch[3], frozenset({2, 3})) == [(0, 4), (1, 4)]
    assert linear(5).sides(np.arange(5) == 0, frozenset()) == [(-1, 0)]


def test_the_evidence_for_a_step_holds_however_often_one_looks() -> None:
    rng = np.random.default_rng(7)
    crossed = 0
    for _ in range(400):
        values = 0.1 * PART + 0.1 * rng.standard_t(3, 200)
        path = [favour(values[:count], 0.1, 0.1) for count in range(1, 201)]
        crossed += max(path) >= math.log(20)
    assert crossed <= 30
    assert favour(np.full(20, 0.1), 0.1, 0.02) > math.log(1000)
    assert favour(np.full(20, -0.1), -0.1, 0.02) > math.log(1000)
    assert favour(np.full(20, -0.1), 0.1, 0.02) < 0


def test_more_than_one_step_is_said_and_the_largest_named() -> None:
    search = Search(linear(12))
    levels = [0.0, 0.0, 0.0, 0.06, 0.06, 0.06, 0.06, 0.06, 0.06, 0.16, 0.16, 0.16]
    seen(search, levels, sd=0.005, blocks=10)
    unsure = search.know()
    assert unsure.answer is Answer.OPEN
    assert unsure.evidence is not None
    assert [(step.before, step.after) for step in search.steps(unsure.evidence)] == [(7, 10), (1, 4)]
    known = confirmed(search, levels, sd=0.005)
    assert known.several > 0.99
    assert known.answer is Answer.SEVERAL
    assert known.evidence is not None
    steps = search.steps(known.evidence)
    assert [(step.before, step.after) for step in steps] == [(8, 9), (2, 3)]
    assert steps[0].size == pytest.approx(0.1, abs=4 * steps[0].sd)


def test_ends_that_are_alike_leave_nothing_to_find() -> None:
    search = Search(linear(8))
    rng = np.random.default_rng(8)
    for _ in range(40):
        search.add_ends(rng.lognormal(0, 0.005), rng.lognormal(0, 0.005))
    assert search.know().answer is Answer.SAME
    noisy = Search(linear(8))
    for _ in range(400):
        noisy.add_ends(rng.lognormal(0, 0.4), rng.lognormal(0, 0.4))
    assert noisy.know().answer is Answer.UNSEEN


def test_equal_values_do_not_stop_it() -> None:
    search = Search(linear(4))
    for _ in range(12):
        search.add_ends(1000.0, 1100.0)
    for commit, value in ((1, 1000.0), (2, 1100.0)):
        for _ in range(4):
            search.add(commit, 1000.0, value, 1100.0)
    known = confirmed(search, [0.0, 0.0, math.log(1.1), math.log(1.1)], sd=0.0)
    assert known.answer is Answer.FOUND
    assert np.flatnonzero(known.suspects).tolist() == [2]


def test_runs_that_resemble_their_neighbours_count_less() -> None:
    rng = np.random.default_rng(2)
    shocks, walk = rng.standard_normal(200), [0.0]
    for shock in shocks:
        walk.append(0.8 * walk[-1] + 0.6 * shock)
    independent = gather(Blocks([0.1 + 0.02 * shock for shock in shocks]))
    dependent = gather(Blocks([0.1 + 0.02 * each for each in walk]))
    assert independent.independence == 1.0
    assert dependent.independence < 0.3


def test_a_planted_commit_is_named_among_many_with_few_builds() -> None:
    found = searched(planted(7, "normal", 0.02, size=500))
    assert found.is_right
    assert found.builds < 20
