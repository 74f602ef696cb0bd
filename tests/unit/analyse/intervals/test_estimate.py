from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard
from steelyard.errors import AnalysisError, SteelyardError, UsageError

SPREADS = ["sd", "iqr", "mad"]
LOCATIONS = ["mean", "median", "trimmed_mean", ("quantile", 0.9), ("harrell_davis", 0.5)]
PURE = ["cv", ("quantile_ratio", 0.9, 0.5)]


def skewed(count: int, seed: int = 1) -> np.ndarray:
    return 1 + np.random.default_rng(seed).lognormal(0, 0.5, count)


def correlated(count: int, correlation: float = 0.9) -> np.ndarray:
    noise = np.random.default_rng(4).standard_normal(count)
    for place in range(1, count):
        noise[place] = correlation * noise[place - 1] + math.sqrt(1 - correlation**2) * noise[place]
    return np.exp(0.5 * noise)


RUNS = np.repeat(np.arange(20), 10)


@pytest.mark.parametrize(
    ("statistic", "options", "method"),
    [
        ("mean", {}, "wider"),
        ("sd", {}, "studentised"),
        ("cv", {}, "studentised"),
        ("median", {}, "exact"),
        (("quantile", 0.9), {}, "exact"),
        ("iqr", {}, "percentile"),
        ("mad", {}, "percentile"),
        (("harrell_davis", 0.9), {}, "percentile"),
        (("quantile_ratio", 0.9, 0.5), {}, "percentile"),
        ("trimmed_mean", {}, "t"),
        ("mean", {"clusters": RUNS}, "wider of clusters"),
        ("median", {"clusters": RUNS}, "wider of clusters"),
        ("trimmed_mean", {"clusters": RUNS}, "wider of clusters"),
        (("quantile", 0.9), {"clusters": RUNS}, "percentile of clusters"),
        ("iqr", {"clusters": RUNS}, "percentile of clusters"),
        ("sd", {"clusters": RUNS}, "studentised of clusters"),
        ("mean", {"strata": RUNS // 5}, "studentised"),
        ("mean", {"clusters": RUNS, "strata": RUNS // 5}, "studentised of clusters"),
        ("iqr", {"strata": RUNS // 5}, "percentile"),
        ("mean", {"block": 7}, "percentile of blocks of 7"),
    ],
)
def test_the_procedure_follows_the_labels_and_the_statistic(
    statistic: Any, options: dict[str, Any], method: str
) -> None:
    found = steelyard.interval(skewed(200), statistic=statistic, **options)
    assert found.method == method
    assert found.low <= found.estimate <= found.high
    assert found.why


@pytest.mark.parametrize(
    ("statistic", "method"),
    [
        ("mean", "wider"),
        ("trimmed_mean", "t"),
        ("median", "percentile"),
        ("iqr", "percentile"),
        ("sd", "studentised"),
    ],
)
def test_two_samples_are_compared_by_welch_or_by_ranks(statistic: str, method: str) -> None:
    found = steelyard.interval(skewed(80), other=2 * skewed(90, 2), statistic=statistic)
    assert (found.method, found.contrast, found.n) == (method, "ratio", (80, 90))
    assert found.low < found.estimate < found.high
    assert found.text.startswith(f"ratio of {found.statistic}")


def test_an_autocorrelated_series_is_not_taken_for_independent() -> None:
    values = correlated(9000)
    mean = steelyard.interval(values)
    assert mean.method == "wider"
    assert mean.guaranteed
    assert mean.effective_n[0] < 1200
    assert "neighbours" in mean.why
    median = steelyard.interval(values, statistic="median")
    assert median.method.startswith("percentile of blocks of ")
    assert int(median.method.split()[-1]) > 10
    pair = steelyard.interval(values, other=correlated(4000) * 1.2)
    assert pair.method == "batch_t"
    forced = steelyard.interval(values, method="t")
    assert not forced.guaranteed
    assert "neighbours" in forced.reason
    # The honest interval is about sqrt(19) times as wide.
    assert (mean.high - mean.low) / (forced.high - forced.low) == pytest.approx(math.sqrt(19), rel=0.4)


def test_an_autocorrelated_series_that_is_short_guarantees_nothing() -> None:
    found = steelyard.interval(correlated(200), other=correlated(200) * 1.1)
    assert found.method == "effective_t"
    assert not found.guaranteed
    assert "effective size" in found.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sample": skewed(29)}, "29 values without labels of runs, at least 30"),
        ({"sample": skewed(29), "clusters": np.arange(29)}, "29 values, at least 30 needed"),
        ({"sample": skewed(70), "clusters": np.arange(70) // 10}, "7 clusters, at least 8"),
        ({"sample": np.random.default_rng(2).lognormal(0, 2.5, 60)}, "lean so far to one side"),
        ({"sample": skewed(60), "method": "t"}, "lean so far to one side"),
        ({"sample": skewed(20), "other": skewed(20, 2)}, "do not show whether neighbours depend"),
        ({"sample": np.sort(skewed(60)), "other": skewed(60, 2)}, "neighbours resemble each other"),
        ({"sample": np.sort(skewed(60)), "clusters": np.arange(60)}, "change in the order"),
        ({"sample": np.full(40, 3.0), "other": np.full(40, 3.0)}, "no spread"),
        ({"sample": skewed(200), "statistic": ("quantile", 0.99)}, "beyond the quantile"),
        ({"sample": skewed(200), "statistic": ("quantile", 0.995)}, "too few values for a limit"),
        ({"sample": skewed(200), "statistic": "sd"}, "see iqr"),
        ({"sample": np.append(skewed(200), 90.0)}, "one value carries 99% of the variance"),
        ({"sample": np.full(60, 3.0)}, "no spread"),
        ({"sample": np.round(skewed(200) * 4), "statistic": "iqr"}, "scale is coarse"),
        ({"sample": skewed(90), "clusters": np.arange(90) // 9, "statistic": "iqr"}, "10 clusters drawn"),
        (
            {"sample": skewed(509), "clusters": np.repeat(np.arange(10), [1] * 9 + [500])},
            "509 values in unequal clusters count as 11, at least 40 needed",
        ),
    ],
)
def test_what_cannot_be_promised_is_said(options: dict[str, Any], reason: str) -> None:
    found = steelyard.interval(**options)
    assert not found.guaranteed
    assert reason in found.reason
    assert "not guaranteed" in found.text


@pytest.mark.parametrize(
    "options",
    [
        {"sample": skewed(60)},
        {"sample": np.random.default_rng(1).normal(10, 1, 30)},
        {"sample": np.random.default_rng(1).poisson(20, 200)},
        {"sample": np.random.default_rng(1).normal(10, 1, 30), "clusters": np.arange(30)},
        {"sample": skewed(5), "other": skewed(60, 2), "clusters": (range(5), range(60))},
        {"sample": skewed(200), "statistic": "median"},
        {"sample": skewed(200), "statistic": "iqr"},
        {"sample": skewed(600), "statistic": ("quantile", 0.99)},
        {"sample": skewed(80), "clusters": np.arange(80) // 10},
        {"sample": skewed(140), "clusters": np.repeat(np.arange(10), [5] * 8 + [50] * 2)},
        {"sample": skewed(100), "other": skewed(100, 2), "statistic": "shift"},
    ],
)
def test_enough_data_are_guaranteed(options: dict[str, Any]) -> None:
    found = steelyard.interval(**options)
    assert found.guaranteed, found.reason
    assert "not guaranteed" not in str(found)


def test_what_may_not_have_come_is_said() -> None:
    few = steelyard.interval(skewed(60))
    assert few.unseen_share == pytest.approx(1 - 0.05 ** (1 / 60))
    assert few.text.endswith("nothing is said of what comes in fewer than 4.9% of cases")
    assert steelyard.interval(skewed(60), statistic="median").text.endswith("(exact, n = 60)")
    assert steelyard.interval(skewed(400)).text.endswith("(wider, n = 400)")
    runs = steelyard.interval(skewed(400), clusters=np.arange(400) // 40)
    assert runs.unseen_share == pytest.approx(1 - 0.05 ** (1 / 10))


def test_a_limit_that_does_not_exist_is_infinite() -> None:
    found = steelyard.interval([1.0, 2.0, 3.0], statistic="median")
    assert (found.low, found.high) == (-math.inf, math.inf)
    one = steelyard.interval([7.0], statistic="iqr")
    assert (one.estimate, one.guaranteed) == (0.0, False)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"sample": [1.0]}, AnalysisError, "at least 2 needed"),
        ({"sample": []}, AnalysisError, "empty"),
        ({"sample": [1.0, math.nan]}, AnalysisError, "position 1"),
        ({"sample": [1.0, math.inf, 2.0]}, AnalysisError, "not finite"),
        ({"sample": np.ones((2, 2))}, UsageError, "2 dimensions"),
        ({"sample": ["a", "b"]}, UsageError, "type"),
        ({"sample": skewed(9), "statistic": "average"}, UsageError, '"median"'),
        ({"sample": skewed(9), "statistic": ("quantile", 1.0)}, UsageError, "quantile"),
        ({"sample": skewed(9), "statistic": ("trimmed_mean", 0.5)}, UsageError, "trimmed_mean"),
        ({"sample": skewed(9), "statistic": "shift"}, UsageError, "between two"),
        (
            {"sample": skewed(9), "other": skewed(9), "statistic": "shift", "method": "t"},
            UsageError,
            "not for a shift",
        ),
        ({"sample": skewed(9), "method": "jackknife"}, UsageError, '"bca"'),
        ({"sample": skewed(9), "method": "exact"}, UsageError, "quantile"),
        ({"sample": skewed(9), "method": "studentised", "statistic": "median"}, UsageError, "standard error"),
        ({"sample": skewed(9), "method": "t", "statistic": "iqr"}, UsageError, "means"),
        ({"sample": skewed(9), "level": 1.0}, UsageError, "level"),
        ({"sample": skewed(9), "resamples": 0}, UsageError, "resamples"),
        ({"sample": skewed(9), "resamples": 10**9}, UsageError, "resamples"),
        ({"sample": skewed(9), "seed": -1}, UsageError, "seed"),
        ({"sample": skewed(9), "seed": 2**64}, UsageError, "seed"),
        ({"sample": skewed(9), "block": 5}, UsageError, "1 to 4"),
        ({"sample": skewed(9), "block": 2, "clusters": range(9)}, UsageError, "together"),
        ({"sample": skewed(9), "clusters": range(8)}, UsageError, "one label"),
        ({"sample": skewed(9), "clusters": [0] * 9}, AnalysisError, "1 clusters"),
        ({"sample": skewed(9), "clusters": range(9), "other": skewed(9)}, UsageError, "two samples"),
        ({"sample": skewed(9), "other": skewed(9), "contrast": "odds"}, UsageError, '"difference"'),
        ({"sample": skewed(9), "other": -skewed(9)}, AnalysisError, "positive"),
        ({"sample": -skewed(9), "other": skewed(9), "statistic": "shift"}, AnalysisError, "positive"),
        (
            {"sample": skewed(8), "clusters": [0, 0, 1, 1] * 2, "strata": [0, 1] * 4, "method": "bca"},
            AnalysisError,
            "more than one stratum",
        ),
        ({"sample": [-1.0, 1.0, 0.5, -0.5], "statistic": "cv"}, AnalysisError, "not a finite number"),
        ({"sample": [1e308, 1e308, 1.0], "method": "t"}, AnalysisError, "not finite numbers"),
        ({"sample": skewed(9), "block": 2, "method": "t"}, UsageError, "`block`"),
        ({"sample": skewed(9), "strata": [0, 1, 1] * 3, "method": "t"}, UsageError, "`strata`"),
        (
            {"sample": skewed(60), "clusters": range(60), "statistic": "median", "method": "exact"},
            UsageError,
            "independent",
        ),
    ],
)
def test_bad_input_names_itself_and_the_next_step(
    options: dict[str, Any], kind: type[SteelyardError], text: str
) -> None:
    with pytest.raises(kind) as caught:
        steelyard.interval(**options)
    error = caught.value
    assert text in error.message
    assert error.hint or "stratum" in text


def test_a_difference_may_have_any_sign() -> None:
    values = np.random.default_rng(2).standard_normal(100)
    found = steelyard.interval(values, other=values - 3, contrast="difference")
    assert found.estimate == pytest.approx(-3)
    assert steelyard.interval(values, method="percentile").low < 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(100, 10_000), min_size=60, max_size=90).filter(lambda xs: len(set(xs)) > 40),
    st.floats(0.01, 100),
    st.floats(0, 1000),
)
def test_limits_follow_scale_and_shift_and_ignore_order(xs: list[int], factor: float, shift: float) -> None:
    values = np.array(xs, dtype=float)
    moved = values * factor + shift
    shuffled = np.random.default_rng(1).permutation(values)
    for statistic in (*LOCATIONS, *SPREADS, *PURE):
        options: dict[str, Any] = {"statistic": statistic, "method": "percentile", "resamples": 200}
        plain = steelyard.interval(values, **options)
        again = steelyard.interval(shuffled, **options)
        assert (plain.estimate, plain.low, plain.high) == (again.estimate, again.low, again.high)
        assert plain.low <= plain.high
        if statistic in PURE:
            continue
        offset = shift if statistic in LOCATIONS else 0
        found = steelyard.interval(moved, **options)
        for one, other in (
            (plain.estimate, found.estimate),
            (plain.low, found.low),
            (plain.high, found.high),
        ):
            assert other == pytest.approx(offset + factor * one, rel=1e-7, abs=1e-7 * factor)


def test_the_number_of_threads_does_not_change_a_bit() -> None:
    program = (
        "import json, numpy as np, steelyard\n"
        "x = np.random.default_rng(1).lognormal(0, 1, 400); y = x[:300] * 1.1; runs = np.arange(400) // 8\n"
        "all = [steelyard.interval(x, statistic=s, method=m, resamples=2000, **o)\n"
        "  for s in ('mean', 'sd', 'cv', 'median', 'iqr', 'mad', 'trimmed_mean', ('harrell_davis', .9))\n"
        "  for m in ('percentile', 'bca') for o in ({}, {'other': y}, {'clusters': runs}, {'block': 9})]\n"
        "print(json.dumps([(e.low.hex(), e.high.hex()) for e in all]))\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "RAYON_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2", "5")
    ]
    assert len(json.loads(answers[0])) == 64
    assert answers[0] == answers[1] == answers[2]


def test_a_seed_belongs_to_its_numbers() -> None:
    first, again, other = (
        steelyard.interval(skewed(60), method="studentised", seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.low != other.low
    assert (first.seed, first.resamples) == (1, 9999)
    with pytest.raises(FrozenInstanceError):
        first.low = 0.0  # type: ignore[misc]


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = "import sys, steelyard; print([m for m in ('numpy', 'scipy', 'pyarrow') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == "[]"
    assert "interval" in dir(steelyard)
    with pytest.raises(AttributeError):
        getattr(steelyard, "interva")  # noqa: B009


def test_large_samples_do_not_resample_for_nothing() -> None:
    values = np.random.default_rng(1).lognormal(0, 0.5, 300_000)
    found = steelyard.interval(values)
    assert (found.method, found.resamples) == ("wider", 0)
    assert found.guaranteed
    assert steelyard.interval(values, statistic="iqr").method == "percentile"
    with pytest.raises(AnalysisError, match="resamples"):
        steelyard.interval(values, statistic="mad", resamples=1_000_000)
