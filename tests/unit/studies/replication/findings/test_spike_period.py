"""Tests of what is said about the period of spikes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from steelyard.analyse.peaks.periodicity import Period
from steelyard.model import Evidence
from steelyard.studies.replication.findings.spike_period import period_finding

EVIDENCE = Evidence("traces/*/calls.parquet", {}, ("start_ns",), "")


def periodic(period_ns: float) -> Period:
    return Period(
        is_periodic=True,
        p_value=1e-6,
        period_ns=period_ns,
        low_ns=period_ns - 0.5,
        high_ns=period_ns + 0.5,
        locked_share=0.9,
    )


NONE = replace(periodic(math.nan), is_periodic=False, p_value=0.5)
TOO_FEW = replace(NONE, p_value=1.0, reason="3 events are too few")


@pytest.mark.parametrize(
    ("periods", "verdict"),
    [
        ([periodic(100.0)] * 5, "periodic"),
        ([periodic(100.0), TOO_FEW], "periodic"),
        ([periodic(100.0), periodic(101.0), NONE, NONE], "periodic"),
        ([periodic(100.0), NONE, NONE], "no period"),
        ([periodic(100.0), periodic(300.0), periodic(710.0)], "no period"),
        ([periodic(100.1), periodic(99.9), periodic(50.0), periodic(7.692), NONE], "periodic"),
        ([periodic(100.0), periodic(100.0), periodic(64.0), periodic(71.0), periodic(37.0)], "no period"),
        ([NONE], "no period"),
        ([TOO_FEW, TOO_FEW], "too few spikes"),
    ],
)
def test_a_period_is_named_where_most_runs_share_it(periods: list[Period], verdict: str) -> None:
    found = period_finding("native", periods, EVIDENCE)
    assert found.verdict == verdict
    assert found.facts["runs"] == len(periods)


def test_a_run_that_was_not_looked_at_says_why() -> None:
    assert period_finding("native", [TOO_FEW], EVIDENCE).facts["reason"] == "3 events are too few"


def test_the_common_period_is_that_of_the_runs_which_show_it_as_a_whole() -> None:
    found = period_finding("native", [periodic(101.0), periodic(99.0), periodic(50.0)], EVIDENCE)
    assert found.estimates["period"].value == 100.0
    assert found.facts["agreeing_runs"] == 3


def test_runs_that_agree_by_chance_do_not_make_a_period_exact() -> None:
    period = period_finding("native", [periodic(100.0)] * 5, EVIDENCE).estimates["period"]
    assert (period.low, period.value, period.high) == (99.5, 100.0, 100.5)
