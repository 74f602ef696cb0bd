from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.series.held_level import seen_before, slowdown
from steelyard.analyse.series.history import Change, SeriesHistory


def seen(
    levels: list[float], counts: list[int], *, is_rate: bool = False, accepted: tuple[int, ...] = ()
) -> tuple[int, int] | None:
    """Ask about the last of some levels, whose change is found."""
    rng = np.random.default_rng(3)
    values = np.repeat(levels, counts) * np.exp(0.005 * rng.standard_normal(sum(counts)))
    position, ratio = sum(counts[:-1]), levels[-1] / levels[-2]
    change = Change(position, ratio, ratio, ratio, 0.01, (position, position))
    history = SeriesHistory((change,), 0.01, 0.0, is_undecidable=False)
    slower = slowdown(history, accepted, is_rate=is_rate, margin=0.02)
    assert slower is not None
    return seen_before(values, history, slower, accepted, is_rate=is_rate, margin=0.02)


@pytest.mark.parametrize("is_rate", [False, True])
def test_a_level_that_came_and_went_was_seen_before(is_rate: bool) -> None:  # noqa: FBT001 - a case
    levels = [1.0, 1.1, 1.0, 1.1]
    if is_rate:
        levels = [1 / level for level in levels]
    assert seen(levels, [10, 7, 9, 8], is_rate=is_rate) == (10, 16)


def test_the_latest_visit_is_named() -> None:
    assert seen([1.0, 1.1, 1.0, 1.1, 1.0, 1.1], [10, 8, 9, 8, 9, 8]) == (27, 34)


@pytest.mark.parametrize(
    ("levels", "counts"),
    [
        ([1.0, 1.1], [10, 10]),
        ([1.1, 1.0, 1.1], [10, 10, 10]),  # what was gained is lost
        ([1.0, 1.1, 1.2], [10, 10, 10]),  # did not go
        ([1.0, 1.1, 1.0, 1.2], [10, 10, 10, 10]),  # slower than what was seen
        ([1.0, 1.2, 1.0, 1.2], [10, 2, 10, 10]),  # two results are outliers
    ],
)
def test_a_level_that_is_new_was_not(levels: list[float], counts: list[int]) -> None:
    assert seen(levels, counts) is None


def test_what_was_before_an_accepted_level_does_not_count() -> None:
    """The level was accepted and left again: it is the faster one that is to hold."""
    assert seen([1.0, 1.1, 1.0, 1.1], [10, 8, 10, 8]) == (10, 17)
    assert seen([1.0, 1.1, 1.0, 1.1], [10, 8, 10, 8], accepted=(20,)) is None
