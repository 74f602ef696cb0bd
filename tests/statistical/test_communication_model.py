"""Planted traces: what was put in is what the analysis finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.communication_traces import SHAPED, SHARED_MEMORY, SMOOTH, TCP, Plan, planted_trace
from steelyard.analyse.cost_curve import fit_curve
from steelyard.analyse.median_line import predict
from steelyard.model.cost_model import read_cost_model
from steelyard.studies.communication.model_fit import FitOptions, model_of
from steelyard.studies.communication.operations import operations_of

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
