"""Planted traces: what was put in is what the analysis finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.communication_traces import (
    SHAPED,
    SHARED_MEMORY,
    SMOOTH,
    TCP,
    TRANSPORTS,
    Plan,
    Switch,
    planted_trace,
)
from steelyard.analyse.cost_curve import fit_curve
from steelyard.analyse.median_line import predict
from steelyard.errors import AnalysisError
from steelyard.model.cost_model import read_cost_model
from steelyard.studies.communication.model_fit import FitOptions, model_of
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


def test_a_switch_is_called_one_at_its_place_and_a_bend_is_not(tmp_path):
    model, _ = model_of([planted_trace(SHARED_MEMORY, Plan(seed=4))], FitOptions(declared={"limit": 4096}))
    switches = [each.at for each in model.boundaries if each.kind == "protocol"]
    assert switches[0] == pytest.approx(4035, rel=0.005)
    path = tmp_path / "model.json"
    path.write_text(model.to_json(), encoding="utf-8")
    assert read_cost_model(path) == model
    bend = replace(SHARED_MEMORY, pieces=SMOOTH.pieces)
    for seed in range(3):
        model, _ = model_of([planted_trace(bend, Plan(seed=seed))])
        assert not [each for each in model.boundaries if each.kind == "protocol"]


def test_the_same_traces_give_the_same_model():
    traces = [planted_trace(TCP, Plan(operations=2000, seed=seed)) for seed in (1, 2)]
    assert model_of(traces)[0].to_json() == model_of(traces)[0].to_json()


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
    slow, _ = model_of([trace], FitOptions(resamples=0))
    fast, details = model_of([trace], FitOptions(resamples=0, state="fast"))
    assert (slow.state, fast.state) == ("slow", "fast")
    assert abs(details.is_used.sum() - 4000) <= 50
    assert fast.predict(1e6) == pytest.approx(TCP.curve(np.array([1e6]))[0], rel=0.03)
    assert slow.predict(1e6) / fast.predict(1e6) == pytest.approx(1.4 ** (1 / 7) * 2.9 ** (6 / 7), rel=0.05)
    with pytest.raises(AnalysisError, match="there is: slow, fast"):
        model_of([trace], FitOptions(state="medium"))
