from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import steelyard
from steelyard.analyse.comparison.equivalence import Margin, Verdict, ratio_test
from steelyard.analyse.intervals.procedure import Contrast, hodges_lehmann
from steelyard.errors import AnalysisError, UsageError

RNG = np.random.default_rng(1)
A = np.exp(0.01 * RNG.standard_normal(20))
B = 1.05 * np.exp(0.01 * RNG.standard_normal(20))


def test_samples_are_judged_by_welch_on_logarithms() -> None:
    labels = (range(20), range(20))
    found, test = steelyard.compare(A, B, margin=0.03, clusters=labels), ratio_test(A, B, Margin(0.03))
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
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, r"`b` has 2 values of 20 that are not finite, the first \(nan\) at position 3"),
        (math.inf, r"`b` has 2 values of 20 that are not finite, the first \(inf\) at position 3"),
        (0.0, "`b` has 2 values of 20 that are not positive"),
        (-1.0, "`b` has 2 values of 20 that are not positive"),
        (-math.inf, "`b` has 2 values of 20 that are not positive"),
    ],
)
def test_values_that_are_no_times_are_refused(value: float, said: str, paired: bool) -> None:  # noqa: FBT001
    spoilt = B.copy()
    spoilt[[3, 9]] = value
    with pytest.raises(AnalysisError, match=said) as caught:
        steelyard.compare(A, spoilt, paired=paired)
    assert caught.value.hint


def test_few_values_get_a_clear_answer() -> None:
    for paired in (False, True):
        assert steelyard.compare([], [], paired=paired).verdict is Verdict.NA
        assert steelyard.compare([1.0], [2.0], paired=paired).verdict is Verdict.DESCRIPTIVE
        assert steelyard.compare([1.0] * 9, [1.0] * 9, paired=paired).verdict is Verdict.EQUIVALENT
        assert not steelyard.compare([1.0] * 9, [1.0] * 9, paired=paired).guaranteed


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("failure", [math.inf, math.nan])
def test_failed_runs_are_slower_than_every_other(failure: float, paired: bool) -> None:  # noqa: FBT001
    order = np.random.default_rng(2).permutation(20)
    some, most = A.copy(), A.copy()
    some[order[:2]] = most[order[:14]] = failure
    options: dict[str, Any] = {"failures": "slowest", "paired": paired}
    assert steelyard.compare(A, A * 1.0001, **options).verdict is Verdict.EQUIVALENT
    few = steelyard.compare(A, some, **options)
    assert few.failed == (0, 2)
    assert few.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}, "ranks hardly move"
    assert "0 and 2 of them failed" in few.sentence
    slower, faster = steelyard.compare(A, most, **options), steelyard.compare(most, A, **options)
    assert (slower.verdict, slower.ratio) == (Verdict.SLOWER, math.inf)
    assert (faster.verdict, faster.ratio) == (Verdict.FASTER, 0.0)
    assert "by its failed runs" in slower.sentence
    assert "0 and 14 of them failed" in slower.sentence
    assert slower.is_regression
    json.dumps(slower.as_dict(), allow_nan=False)
    assert steelyard.compare(most, most[::-1], failures="slowest").verdict is Verdict.INCONCLUSIVE


def test_ranks_without_failures_are_those_of_hodges_and_lehmann() -> None:
    labels = (range(20), range(20))
    found = steelyard.compare(A, B, failures="slowest", clusters=labels)
    expected = hodges_lehmann(A, B, contrast=Contrast.RATIO)
    assert (found.ratio, found.low, found.high) == (expected.estimate, expected.low, expected.high)
    assert (found.method, found.guaranteed) == ("rank-sum", True)


def test_a_run_with_a_failed_value_has_failed() -> None:
    values = np.repeat(B, 2)
    values[5] = math.inf
    runs = np.repeat(np.arange(20), 2)
    found = steelyard.compare(np.repeat(A, 2), values, failures="slowest", clusters=(runs, runs))
    assert (found.runs, found.failed) == ((20, 20), (0, 1))


def test_what_a_claim_rests_on_is_said() -> None:
    unlabelled, labelled = steelyard.compare(A, B), steelyard.compare(A, B, clusters=(range(20), range(20)))
    assert not unlabelled.guaranteed
    assert "labels of the runs" in unlabelled.reason
    assert labelled.guaranteed
    assert "in which order" in str(labelled)
    assert unlabelled.as_dict()["guaranteed"] is False
    rng = np.random.default_rng(3)
    pairs = steelyard.compare(A, B[rng.permutation(20)], paired=True)
    assert (pairs.guaranteed, pairs.remarks) == (True, ())


def test_the_mean_that_lies_outside_is_said_in_python_too() -> None:
    rng = np.random.default_rng(4)
    first, second = np.exp(0.01 * rng.standard_normal((2, 100)))
    second[rng.permutation(100)[:8]] *= 5
    typical = steelyard.compare(first, second, paired=True)
    assert typical.verdict is Verdict.EQUIVALENT
    assert [
        remark for remark in typical.remarks if remark.startswith("mean: by the ratio of geometric means")
    ]
    assert "mean: by the ratio" in str(typical)
    assert any("mean: by the ratio" in remark for remark in typical.as_dict()["remarks"])
    mean = steelyard.compare(first, second, paired=True, statistic="mean")
    assert (mean.verdict, mean.method) == (Verdict.SLOWER, "sequential-t")
    assert not any("geometric" in remark for remark in mean.remarks)


def test_commands_are_measured(tmp_path: object) -> None:
    found = steelyard.compare("true", [sys.executable, "-c", "pass"], budget_s=20)
    assert found.verdict is Verdict.SLOWER
    assert (found.baseline, found.metric) == ("true", "wall")


@pytest.mark.parametrize(
    ("sides", "options", "error", "said"),
    [
        (("true", A), {}, UsageError, "one side is a command"),
        ((A, B), {"margin": 0.0}, UsageError, "`--margin 0%`"),
        ((A, B), {"level": 2.0}, UsageError, "`level` is 2.0; allowed: between 0.5 and 1, both excluded"),
        ((A, B), {"level": "95%"}, UsageError, "`level` is '95%'; allowed: between 0.5 and 1"),
        ((A, B), {"metric": "joy"}, UsageError, "allowed: `wall`, `cpu`, `memory`"),
        ((A.reshape(4, 5), B), {}, AnalysisError, r"`a` has shape \(4, 5\)"),
        ((A, [1.0, "x"]), {}, AnalysisError, "`b` is not a sample of numbers"),
        ((A, B[:3]), {"paired": True}, AnalysisError, "20 and 3 values"),
        ((A, B), {"failures": "ignore"}, UsageError, "allowed: `refuse`, `slowest`"),
        ((A, B), {"statistic": "middle"}, UsageError, "allowed: `typical`, `mean`"),
        ((A, B), {"clusters": range(20)}, UsageError, "one column"),
        ((A, B), {"clusters": (range(20), range(19))}, UsageError, "one label"),
        ((A, B), {"clusters": (range(20), range(20)), "paired": True}, UsageError, "one of the two"),
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
