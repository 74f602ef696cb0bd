from __future__ import annotations

import numpy as np

from steelyard.analyse.comparison.duel import Duel
from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.sequential import Design, SequentialComparison


def grown(size: int) -> Duel:
    duel = Duel(0, 1, SequentialComparison(Design()))
    duel.differences = list(0.03 + 0.05 * np.random.default_rng(4).standard_normal(size))
    return duel


def test_a_look_soon_after_another_does_not_hide_what_was_known() -> None:
    duel = grown(60)
    duel.look(0.4)
    before = duel.known
    assert before is not None
    assert before.verdict is Verdict.SLOWER
    duel.differences.append(0.03)
    duel.look(0.4)
    assert duel.sequence.looks[-1].log_width > before.log_width
    assert duel.known is before


def test_a_later_look_that_knows_more_counts() -> None:
    duel = grown(60)
    duel.look(0.4)
    before = duel.known
    duel.differences += grown(200).differences
    duel.look(1.0)
    assert before is not None
    assert duel.known is not None
    assert duel.known.blocks == 260
    assert duel.known.log_width < before.log_width


def test_a_look_at_nothing_new_changes_nothing() -> None:
    duel = grown(30)
    duel.look(0.2)
    duel.look(0.9)
    assert len(duel.sequence.looks) == 1


def test_nothing_is_known_without_blocks() -> None:
    duel = Duel(0, 1, SequentialComparison(Design()))
    duel.look(1.0)
    assert duel.known is not None
    assert duel.known.verdict is Verdict.NA
    assert duel.is_open
