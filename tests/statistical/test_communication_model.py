"""Planted traces: what was put in is what the analysis finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.communication_traces import (
    BENT,
    BENT_TCP,
    SHAPED,
    SHARED_MEMORY,
    SMOOTH,
    TCP,
    TRANSPORTS,
    Plan,
    Switch,
    planted_trace,
    replications,
)
from steelyard.analyse.cost_curve import fit_curve
from steelyard.analyse.median_line import predict
from steelyard.errors import AnalysisError
from steelyard.model.cost_model import read_cost_model
from steelyard.record.trace import Trace
from steelyard.studies.communication.model_fit import FitOptions, judged_delay, measured, model_of
from steelyard.studies.communication.operations import operations_of
from steelyard.studies.communication.regimes import regimes_of

SIZES = np.unique(np.logspace(0, 7, 2000).round())


@pytest.mark.parametrize("truth", [SHARED_MEMORY, TCP, SHAPED, SMOOTH], ids=lambda truth: truth.name)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_curves_are_within_one_percent_of_the_truth(truth, seed):
    table, _ = operations_of(planted_trace(truth, Plan(seed=seed)))
    pieces = fit_curve(table.size, table.half_s)
    errors = np.abs(predict(pieces, SIZES) / truth.curve(SIZES) - 1)
    assert np.median(errors) <= 0.01


def test_an_exponent_is_recovered():
    for seed in range(5):
        table, _ = operations_of(planted_trace(SMOOTH, Plan(seed=seed)))
        (piece,) = fit_curve(table.size, table.half_s)
        assert piece.kind == "power"
        assert piece.slope == pytest.approx(0.6, abs=0.02)


def judged(traces, **options):
    used = FitOptions(**options)
    return judged_delay(measured(traces, used).half, used)[1]


@pytest.mark.parametrize(("truth", "place"), [(SHARED_MEMORY, 4035), (TCP, 65_557)])
def test_a_switch_is_called_one_at_its_place(truth, place):
    for seed in range(2):
        traces = replications(truth, Plan(operations=5000, seed=seed), 3)
        found = judged(traces, declared={"limit": 65_536}, resamples=20)
        near = [each for each in found if abs(each.boundary.at / place - 1) <= 0.005]
        assert len(near) == 1
        assert near[0].boundary.kind == "protocol"
        assert near[0].declared == ("limit" if truth is TCP else "")
        assert near[0].mixed_count <= 3


def test_a_bend_is_called_a_knot():
    for truth in (BENT, BENT_TCP):
        for seed in range(3):
            found = judged([planted_trace(truth, Plan(seed=seed))], resamples=10)
            assert found
            assert not [each for each in found if each.boundary.kind == "protocol"]


def test_both_modes_near_a_switch_stay_visible():
    trace = planted_trace(SHARED_MEMORY, Plan(seed=2))
    rows = trace.endpoints[0].operations.copy()
    generator = np.random.default_rng(0)
    # From 3 to 4 kB every second message already costs what larger ones cost.
    early = (rows["size"] > 3000) & (rows["size"] <= 4035) & (generator.random(rows.size) < 0.5)
    cost = 2 * (2320 + 0.077 * rows["size"]) * np.exp(generator.normal(0, 0.05, rows.size))
    rows["end_ns"] = np.where(early, rows["start_ns"] + cost.astype(np.uint64), rows["end_ns"])
    mixed = Trace((replace(trace.endpoints[0], operations=rows), trace.endpoints[1]), trace.probes)
    zones = [each.mixed for each in judged([mixed], resamples=4) if each.mixed]
    assert any(low < 3500 and 3500 < high < 4500 for low, high in zones)


def test_the_same_traces_give_the_same_model_and_it_is_kept_as_a_document(tmp_path):
    traces = [planted_trace(TCP, Plan(operations=1000, seed=seed)) for seed in (1, 2)]
    options = FitOptions(resamples=10)
    model, _ = model_of(traces, options)
    assert model_of(traces, options)[0] == model
    path = tmp_path / "model.json"
    path.write_text(model.to_json(), encoding="utf-8")
    assert read_cost_model(path) == model


def regimes(truth, plan):
    trace = planted_trace(truth, plan)
    return regimes_of([trace], operations_of(trace)[0])


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
@pytest.mark.parametrize("seed", range(4))
def test_a_switch_of_the_host_is_found_within_fifty_operations(truth, seed):
    there, back = Switch(237, 1.4, 2.9), Switch(2821, 1 / 1.4, 1 / 2.9)
    found = regimes(truth, Plan(seed=seed, has_carry_over=True, switches=(there, back)))
    places = [each.first for each in found.stretches[1:]]
    assert len(places) == 2
    assert np.abs(np.array(places) - [237, 2821]).max() <= 50
    assert [each.state for each in found.stretches] == ["fast", "slow", "fast"]
    assert [each.canary_ns > 70 for each in found.stretches] == [False, True, False]


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
@pytest.mark.parametrize("costs", [(2.0, 1.0), (1.0, 2.0)], ids=["small", "large"])
def test_a_switch_that_only_some_sizes_feel_is_found(truth, costs):
    there, back = Switch(2000, *costs), Switch(7000, 1 / costs[0], 1 / costs[1])
    for seed in range(4):
        found = regimes(truth, Plan(seed=seed, has_carry_over=True, switches=(there, back))).stretches
        assert [each.state for each in found] == ["fast", "slow", "fast"]
        assert np.abs(np.array([each.first for each in found[1:]]) - [2000, 7000]).max() <= 50
        is_small = found[1].small_ratio > found[1].large_ratio
        assert is_small == (costs[0] > costs[1])


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_a_mild_change_is_no_switch(truth):
    for seed in range(4):
        found = regimes(truth, Plan(seed=seed, switches=(Switch(4000, 1.12, 1.12),)))
        assert len(found.stretches) == 1


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_a_host_that_does_not_switch_has_one_state(truth):
    for seed in range(8):
        found = regimes(truth, Plan(seed=seed, has_carry_over=True))
        assert [each.state for each in found.stretches] == ["fast"]
        assert found.disturbances == ()


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_a_disturbance_is_flagged_where_it_was(truth):
    for seed in range(4):
        found = regimes(truth, Plan(seed=seed, disturbed=((3000, 5000),)))
        flagged = np.flatnonzero(found.is_disturbed)
        inside = (flagged >= 3000) & (flagged < 5000)
        assert inside.sum() >= 0.8 * 2000
        assert inside.mean() >= 0.8
        assert len(found.stretches) == 1


def test_a_model_holds_in_the_state_it_is_asked_for():
    trace = planted_trace(TCP, Plan(seed=3, switches=(Switch(4000, 1.4, 2.9),)))
    slow, fast = (measured([trace], FitOptions(state=state)) for state in (None, "fast"))
    assert (slow.state, fast.state) == ("slow", "fast")
    assert abs(fast.is_used.sum() - 4000) <= 50
    large = [predict(fit_curve(each.half.size, each.half.half_s), [1e6])[0] for each in (slow, fast)]
    assert large[1] == pytest.approx(TCP.curve(np.array([1e6]))[0], rel=0.03)
    assert large[0] / large[1] == pytest.approx(1.4 ** (1 / 7) * 2.9 ** (6 / 7), rel=0.05)
    with pytest.raises(AnalysisError, match="there is: slow, fast"):
        measured([trace], FitOptions(state="medium"))
