from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.sequential import Design, Location, fixed_look
from steelyard.studies.comparison.claim import Claim, claim_of_look
from steelyard.studies.comparison.sample import Run, is_outlier, summarise

CLAIM = Claim(
    "A",
    "B",
    "wall",
    Verdict.SLOWER,
    1.0312,
    1.024,
    1.0378,
    level=0.95,
    margin=0.02,
    runs=(24, 24),
    mean_ratio=1.03,
    further_runs=None,
    is_settled=True,
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            (
                "`B` is 3.1 % slower than `A` (95 % interval +2.4 % to +3.8 %, margin 2 %, 24 runs each, "
                "wall time)"
            ),
        ),
        (
            {"verdict": Verdict.FASTER, "ratio": 0.9, "low": 0.8, "high": 0.95, "runs": (24, 20)},
            (
                "`B` is 10.0 % faster than `A` (95 % interval -20.0 % to -5.0 %, margin 2 %, 24 and 20 runs, "
                "wall time)"
            ),
        ),
        (
            {"metric": "memory"},
            (
                "`B` uses 3.1 % more memory than `A` (95 % interval +2.4 % to +3.8 %, margin 2 %, "
                "24 runs each, peak memory)"
            ),
        ),
        (
            {"metric": "cpu", "ratio": 3.0, "low": 2.5, "high": 3.456, "family": 2},
            (
                "`B` uses 3 times as much CPU time as `A` (95 % interval of 2 comparisons together 2.5 "
                "to 3.46 times, margin 2 %, 24 runs each, CPU time)"
            ),
        ),
        (
            {
                "verdict": Verdict.EQUIVALENT,
                "ratio": 1.001,
                "low": 0.9,
                "high": 1.1,
                "narrow": (0.99, 1.012),
            },
            (
                "`B` is as fast as `A` within 2 % (estimate +0.10 %, 90 % interval -1.0 % to +1.2 %, "
                "margin 2 %, 24 runs each, wall time)"
            ),
        ),
        (
            {"verdict": Verdict.INCONCLUSIVE, "low": 0.9, "high": 1.1},
            (
                "it is undecided whether `B` is slower or faster than `A` (estimate +3.1 %, 95 % interval "
                "-10.0 % to +10.0 %, margin 2 %, 24 runs each, wall time)"
            ),
        ),
        (
            {"verdict": Verdict.DESCRIPTIVE, "low": 0.0, "high": math.inf, "runs": (1, 1)},
            (
                "too few runs to say whether `B` is slower or faster than `A` (estimate +3.1 %, margin 2 %, "
                "1 run each, wall time)"
            ),
        ),
        ({"verdict": Verdict.NA}, "nothing is known about `B` against `A`: no block has both"),
    ],
)
def test_the_sentence_says_verdict_effect_interval_margin_and_runs(
    changes: dict[str, object], sentence: str
) -> None:
    assert replace(CLAIM, **changes).sentence == sentence  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "ratio", "is_regression"),
    [
        (Verdict.SLOWER, 1.03, True),
        (Verdict.SLOWER, 1.015, False),
        (Verdict.INCONCLUSIVE, 1.5, False),
        (Verdict.FASTER, 0.5, False),
    ],
)
def test_a_regression_is_sure_and_beyond_the_margin(
    verdict: Verdict,
    ratio: float,
    is_regression: bool,  # noqa: FBT001
) -> None:
    assert replace(CLAIM, verdict=verdict, ratio=ratio).is_regression == is_regression


def test_a_quantile_is_named_wherever_its_verdict_is() -> None:
    tail = replace(CLAIM, statistic="p99")
    assert tail.sentence.startswith("`B` is 3.1 % slower than `A` at p99 (95 % interval")
    assert tail.times_faster == "`A` ran 1.03 times faster than `B` at p99 (1.02 to 1.04)"
    here = replace(tail, origin="on this host alone")
    assert here.times_faster == f"{tail.times_faster}, on this host alone"
    assert replace(tail, verdict=Verdict.EQUIVALENT).sentence.startswith(
        "`B` is as fast as `A` at p99 within 2 %"
    )
    undecided = replace(CLAIM, statistic="median", verdict=Verdict.INCONCLUSIVE)
    assert "slower or faster than `A` at the median" in undecided.sentence
    assert tail.as_dict()["statistic"] == "p99"
    assert tail.suffix == " (p99)"
    far = replace(tail, mean_ratio=3.0)
    assert not far.remarks, "the mean says nothing about a tail"
    mean = replace(CLAIM, statistic="mean", mean_ratio=1.03)
    assert mean.sentence.endswith("24 runs each, geometric mean of wall time)")


@pytest.mark.parametrize("size", [0, 1, 3, 30])
def test_json_has_null_where_there_is_no_number(size: int) -> None:
    look = fixed_look(Design(statistic=Location.MEAN), np.full(size, 0.1)) if size else None
    claim = claim_of_look(look, Design(statistic=Location.MEAN), ("A", "B"), "wall")
    text = json.dumps(claim.as_dict(), allow_nan=False)
    assert json.loads(text)["runs_contender"] == size
    assert json.loads(text)["method"] == "sequential-t"


def test_outliers_are_labelled_and_count() -> None:
    values = np.array([10.0, 11.0, 12.0, 13.0, 14.0, 500.0])
    assert is_outlier(values).tolist() == [False] * 5 + [True]
    runs = [Run(0, at, at, "measure", "completed", 0, 1, 1, 1, ["preempted"] * (at % 2)) for at in range(6)]
    found = summarise(values, runs)
    assert (found.count, found.outliers, found.most, found.flags) == (6, 1, 500.0, {"preempted": 3})
    empty = summarise(np.array([]), [])
    assert (empty.count, empty.outliers) == (0, 0)
    assert math.isnan(empty.median)
