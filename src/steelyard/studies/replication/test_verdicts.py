"""False claims of verdicts, at the margin and without a difference, over simulated launches."""

from __future__ import annotations

import numpy as np

from steelyard.analyse.equivalence import Margin
from steelyard.studies.replication.verdicts import Holding, judge_family

MARGIN = Margin(0.05)
SERIES = 1000
LAUNCHES = 8


def _verdicts(ratio: float, cv: float) -> list[Holding]:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(SERIES):
        first, second = (np.exp(cv * rng.standard_normal(LAUNCHES)) for _ in range(2))
        found += [each.verdict for each in judge_family([(list(first), list(ratio * second))], MARGIN)]
    return found


def test_the_same_is_called_different_no_oftener_than_the_level_allows() -> None:
    assert _verdicts(1.0, 0.1).count(Holding.DIFFERENT) < 0.07 * SERIES


def test_what_lies_on_the_margin_is_called_equivalent_no_oftener_than_the_level_allows() -> None:
    assert _verdicts(1.05, 0.02).count(Holding.EQUIVALENT) < 0.07 * SERIES


def test_clear_cases_are_decided() -> None:
    assert _verdicts(1.59, 0.05).count(Holding.DIFFERENT) > 0.99 * SERIES
    assert _verdicts(1.0, 0.01).count(Holding.EQUIVALENT) > 0.99 * SERIES


def test_few_launches_give_no_verdict_and_say_why() -> None:
    (found,) = judge_family([([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])], MARGIN)
    assert found.verdict is Holding.UNDECIDED
    assert found.reason == "3 runs on a side, a verdict needs 5"


def test_what_only_the_number_of_comparisons_leaves_open_is_said() -> None:
    rng = np.random.default_rng(2)
    apart = ([1.0, 1.1, 0.9, 1.05, 0.95], [1.15, 1.25, 1.05, 1.22, 1.08])
    sides = np.exp(0.1 * rng.standard_normal((19, 2, 5))).tolist()
    noise = [(first, second) for first, second in sides]
    (alone,) = judge_family([apart], MARGIN)
    assert alone.verdict is Holding.DIFFERENT
    among = judge_family([apart, *noise], MARGIN)[0]
    assert among.verdict is Holding.UNDECIDED
    assert among.test.low > 1
    assert "among so many comparisons such a difference may be chance" in among.reason
