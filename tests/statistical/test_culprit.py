"""A search that says 95 % names the right commit at least so often, whatever the noise is like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scipy import stats

from statistical.planted_histories import planted, run_by_script, searched

if TYPE_CHECKING:
    from collections.abc import Callable

HISTORIES = 100


@pytest.mark.parametrize(
    ("kind", "sd", "peculiar"),
    [
        ("normal", 0.02, 0.0),
        ("normal", 0.05, 0.0),
        ("lognormal", 0.05, 0.0),
        ("heavy", 0.05, 0.0),
        ("drift", 0.03, 0.0),
        ("normal", 0.02, 0.006),
    ],
)
def test_the_stated_probability_is_kept(
    simulated: Callable[[int], int], kind: str, sd: float, peculiar: float
) -> None:
    count = simulated(HISTORIES)
    found = [searched(planted(each, kind, sd, peculiar=peculiar)) for each in range(count)]
    named = [each for each in found if each.is_right is not None]
    # A build that is peculiar by itself, at an end above all, is a small step beside the large one.
    largest = sum(bool(each.is_largest_right) for each in found)
    assert len(named) + largest >= 0.8 * count
    wrong = sum(not each.is_right for each in named)
    assert stats.binom.sf(wrong - 1, len(named), 0.05) > 0.01, f"{wrong} of {len(named)} are wrong"


@pytest.mark.parametrize("shape", ["up, down, up", "two steps", "slow drift"])
def test_a_named_commit_is_a_step_whatever_the_history_does(
    simulated: Callable[[int], int], shape: str
) -> None:
    count = max(simulated(HISTORIES) // 10, 1)
    found = [searched(planted(each, "normal", 0.02, shape=shape)) for each in range(count)]
    rises = [rise for each in found for rise in each.rises]
    assert rises or shape == "slow drift"
    wrong = sum(rise < 0.25 for rise in rises)
    assert stats.binom.sf(wrong - 1, len(rises), 0.05) > 0.01, f"{wrong} of {len(rises)} are none"


def test_the_usual_script_is_wrong_more_often(simulated: Callable[[int], int]) -> None:
    count = simulated(HISTORIES)
    script = [run_by_script(planted(each, "normal", 0.05)) for each in range(count)]
    assert sum(bool(each.is_right) for each in script) < 0.5 * count
