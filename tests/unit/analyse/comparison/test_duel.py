"""The fastest of many: who is out, and how the others stand to a faster one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from steelyard.analyse.comparison.duel import Duel, best_of, eliminate, losers_of
from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.sequential import Design, SequentialComparison


def everybody(levels: list[float], blocks: int, noise: float, seed: int = 1) -> list[Duel]:
    """Compare everybody with everybody in the same blocks, and look once at the end."""
    values = np.array(levels) * np.exp(np.random.default_rng(seed).normal(0, noise, (blocks, len(levels))))
    pairs = list(itertools.combinations(range(len(levels)), 2))
    duels = [Duel(*pair, SequentialComparison(Design(Margin(0.02), len(pairs)))) for pair in pairs]
    for duel in duels:
        for block in values:
            duel.add(block[duel.baseline], block[duel.contender])
        duel.look(1.0)
    return duels


def test_who_is_slower_is_out_and_the_fastest_is_named() -> None:
    duels = everybody([1.3, 1.0, 1.0, 1.1], 200, 0.02)
    assert set(losers_of(duels)) == {0, 3}
    best, others = best_of(duels)
    assert best in {1, 2}
    second = {1: 2, 2: 1}[best]
    said = {}
    for duel, is_turned in others:
        number = duel.baseline if is_turned else duel.contender
        known = duel.known
        assert known is not None
        said[number] = (known.turned() if is_turned else known).verdict
    assert said == {0: Verdict.SLOWER, 3: Verdict.SLOWER, second: Verdict.EQUIVALENT}


def test_nobody_runs_on_against_one_who_is_out() -> None:
    duels = everybody([1.0, 1.5, 1.0], 12, 0.02)
    for duel in duels:
        duel.is_open = True
    eliminate(duels)
    assert [(duel.baseline, duel.contender) for duel in duels if duel.is_open] == [(0, 2)]


def test_who_left_early_is_said_to_be_slower_than_the_one_who_put_it_out() -> None:
    duels = everybody([1.2, 1.0, 0.95], 60, 0.02)
    # The first one's comparison with the fastest ended before a look that could tell.
    direct = next(duel for duel in duels if (duel.baseline, duel.contender) == (0, 2))
    direct.known = None
    best, others = best_of(duels)
    assert best == 2
    duel, is_turned = others[0]
    assert ((duel.baseline, duel.contender), is_turned) == ((0, 1), True)


def test_a_look_that_is_turned_says_the_same_of_the_other_side() -> None:
    (duel,) = everybody([1.0, 1.2], 100, 0.02)
    known = duel.known
    assert known is not None
    turned = known.turned()
    assert turned.verdict is Verdict.FASTER
    assert (turned.ratio, turned.low, turned.high) == pytest.approx(
        (1 / known.ratio, 1 / known.high, 1 / known.low)
    )
    early = everybody([1.0, 1.2], 2, 0.02)[0].known
    assert early is not None
    assert (early.turned().low, early.turned().high) == (0.0, float("inf"))


def test_of_equal_ones_none_is_out_more_often_than_the_level_allows() -> None:
    wrong = sum(bool(losers_of(everybody([1.0] * 6, 20, 0.05, seed))) for seed in range(200))
    assert wrong <= 18
