from __future__ import annotations

import math

import pytest

from steelyard.design.sample_size import RepetitionLevel, plan_repetitions
from steelyard.errors import DesignError


def level(name: str, variance: float, cost_s: float) -> RepetitionLevel:
    return RepetitionLevel(name, variance, cost_s)


def test_repetitions_follow_the_published_formula() -> None:
    found = plan_repetitions([level("iteration", 9.0, 0.2), level("run", 2.0, 3.0), level("boot", 0.5, 60.0)])
    assert found == {
        "iteration": math.ceil(math.sqrt(3.0 / 0.2 * 9.0 / 2.0)),
        "run": math.ceil(math.sqrt(60.0 / 3.0 * 2.0 / 0.5)),
    }


def test_an_exact_root_is_not_rounded_up() -> None:
    assert plan_repetitions([level("a", 0.09, 0.1), level("b", 0.01, 10.0)]) == {"a": 30}


def test_no_variance_below_needs_one_repetition_even_if_the_estimate_is_negative() -> None:
    assert plan_repetitions([level("a", -0.3, 1.0), level("b", 1.0, 1.0)]) == {"a": 1}


def test_no_variance_above_meets_the_ceiling() -> None:
    assert plan_repetitions([level("a", 1.0, 1.0), level("b", 0.0, 1.0)], ceiling=77) == {"a": 77}


@pytest.mark.parametrize("levels", [[], [level("a", 1.0, 1.0)], [level("a", 1, 0), level("b", 1, 1)]])
def test_an_impossible_question_is_refused(levels: list[RepetitionLevel]) -> None:
    with pytest.raises(DesignError):
        plan_repetitions(levels)
