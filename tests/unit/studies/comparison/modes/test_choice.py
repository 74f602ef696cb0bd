from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.studies.comparison.modes.choice import choice_of
from steelyard.studies.comparison.terms import Mode


def trial(sds: tuple[float, float], times_s: tuple[float, float], pairs: int = 40, seed: int = 1) -> str:
    rng = np.random.default_rng(seed)
    found = {
        mode: [[1e6, 1e6 * float(np.exp(sd * rng.standard_normal())), time_s] for _ in range(pairs)]
        for mode, sd, time_s in zip(("turns", "duet"), sds, times_s, strict=True)
    }
    return json.dumps({"baseline": "a", **found})


def test_the_mode_that_needs_fewer_minutes_is_chosen() -> None:
    duet = choice_of(trial((0.1, 0.02), (2.0, 1.0)), seed=1)
    assert (duet.verdict, duet.mode) == ("duet", Mode.DUET)
    assert duet.low < duet.minutes < duet.high < 1
    assert duet.minutes == pytest.approx(0.02, rel=1)
    assert "a duet is chosen" in duet.sentence
    turns = choice_of(trial((0.02, 0.1), (2.0, 1.0)), seed=1)
    assert (turns.verdict, turns.mode) == ("turns", Mode.TURNS)
    assert turns.low > 1


def test_a_duet_may_scatter_more_and_still_need_fewer_minutes() -> None:
    found = choice_of(trial((0.02, 0.025), (20.0, 1.0)), seed=1)
    assert found.duet_sd < found.turns_sd
    assert found.verdict == "duet"


def test_what_is_undecided_takes_turns() -> None:
    like = [choice_of(trial((0.02, 0.02), (1.0, 1.0), seed=seed), seed=seed) for seed in range(40)]
    assert sum(each.verdict == "undecided" for each in like) >= 35
    assert {each.mode for each in like if each.verdict == "undecided"} == {Mode.TURNS}


@pytest.mark.parametrize("pairs", [0, 1, 4])
def test_few_pairs_choose_nothing(pairs: int) -> None:
    found = choice_of(trial((0.1, 0.001), (2.0, 1.0), pairs=pairs), seed=1)
    assert (found.verdict, found.mode) == ("undecided", Mode.TURNS)
    assert f"too few runs of `a` beside itself to choose by ({pairs} pairs in turns" in found.sentence
