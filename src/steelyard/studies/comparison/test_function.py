from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import steelyard
from steelyard.analyse.equivalence import Margin, Verdict, ratio_test
from steelyard.errors import AnalysisError, UsageError

RNG = np.random.default_rng(1)
A = np.exp(0.01 * RNG.standard_normal(20))
B = 1.05 * np.exp(0.01 * RNG.standard_normal(20))


def test_samples_are_judged_by_welch_on_logarithms() -> None:
    found, test = steelyard.compare(A, B, margin=0.03), ratio_test(A, B, Margin(0.03))
    assert (found.ratio, found.low, found.high) == (test.ratio, test.low, test.high)
    assert (found.verdict, found.margin, found.runs) == (Verdict.SLOWER, 0.03, (20, 20))
    assert found.is_regression
    assert steelyard.compare(B, A).verdict is Verdict.FASTER
    same = steelyard.compare(A, A * 1.001)
    assert same.verdict is Verdict.EQUIVALENT
    assert 1 / 1.02 < same.narrow[0] < same.narrow[1] < 1.02, "the verdict is that of the interval shown"
    assert same.low < same.narrow[0]


@pytest.mark.parametrize("column", [list, pl.Series, pa.array, lambda values: pa.chunked_array([values])])
def test_columns_of_any_kind_give_the_same(column: object) -> None:
    assert callable(column)
    assert steelyard.compare(column(A), column(B)) == steelyard.compare(A, B)


def test_pairs_take_out_what_both_share() -> None:
    drift = np.exp(np.linspace(0, 1, 20))
    assert steelyard.compare(A * drift, B * drift).verdict is Verdict.INCONCLUSIVE
    assert steelyard.compare(A * drift, B * drift, paired=True).verdict is Verdict.SLOWER


@pytest.mark.parametrize("paired", [False, True])
def test_values_that_are_no_times_count_for_nothing(paired: bool) -> None:  # noqa: FBT001
    spoilt = np.r_[B, math.nan, math.inf, 0.0, -1.0]
    other = np.r_[A, 1.0, 1.0, 1.0, 1.0] if paired else A
    assert steelyard.compare(other, spoilt, paired=paired).runs[1] == 20
    assert steelyard.compare([], [], paired=paired).verdict is Verdict.NA
    assert steelyard.compare([1.0], [2.0], paired=paired).verdict is Verdict.DESCRIPTIVE
    assert steelyard.compare([1.0] * 9, [1.0] * 9, paired=paired).verdict is Verdict.EQUIVALENT


def test_commands_are_measured(tmp_path: object) -> None:
    found = steelyard.compare("true", [sys.executable, "-c", "pass"], budget_s=20)
    assert found.verdict is Verdict.SLOWER
    assert (found.baseline, found.metric) == ("true", "wall")


@pytest.mark.parametrize(
    ("sides", "options", "error", "said"),
    [
        (("true", A), {}, UsageError, "one side is a command"),
        ((A, B), {"margin": 0.0}, UsageError, "`--margin 0%`"),
        ((A, B), {"level": 2.0}, UsageError, "`--level 200%`"),
        ((A, B), {"metric": "joy"}, UsageError, "allowed: `wall`, `cpu`, `memory`"),
        ((A.reshape(4, 5), B), {}, AnalysisError, r"`a` has shape \(4, 5\)"),
        ((A, [1.0, "x"]), {}, AnalysisError, "`b` is no sample of numbers"),
        ((A, B[:3]), {"paired": True}, AnalysisError, "20 and 3 values"),
    ],
)
def test_wrong_requests_are_named(
    sides: tuple[Any, Any], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        steelyard.compare(*sides, **options)


def test_the_package_loads_nothing_before_it_is_asked() -> None:
    loaded = "print('numpy' in sys.modules)"
    code = f"import sys, steelyard; {loaded}; steelyard.compare; {loaded}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'weigh'"):
        steelyard.weigh  # type: ignore[attr-defined]  # noqa: B018
