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
from steelyard.analyse.cost_curve.boundaries import Resampling, judge_boundaries
from steelyard.analyse.cost_curve.curve import fit_curve
from steelyard.analyse.cost_curve.known_places import KnownPlace
from steelyard.analyse.cost_curve.median_line import predict
from steelyard.analyse.cost_curve.piece_search import CurveOptions, sorted_costs
from steelyard.errors import AnalysisError
from steelyard.model.cost_model import read_cost_model
from steelyard.studies.communication.model.fit import FitOptions, judged_delay, measured, model_of
from steelyard.studies.communication.model.regimes import regimes_of
from steelyard.studies.communication.operations import operations_of
from steelyard.studies.communication.trace import Trace

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
        found = judged(traces, known=(KnownPlace("limit", 62_000, 65_536, is_measured=False),), resamples=20)
        near = [each for each in found if abs(each.boundary.at / place - 1) <= 0.005]
        assert len(near) == 1
        assert near[0].boundary.kind == "protocol"
        assert near[0].declared == ("limit" if truth is TCP else "")
        assert near[0].mixed_count <= 3


def limited(jump, seed, *, early=0.0, noise=0.08):
    """Draw costs that jump at 65 480 B; a share of the messages just below it goes the other way already."""
    generator = np.random.default_rng([9, seed])
    size = np.floor(10 ** generator.uniform(0, 7, 4000))
    is_beyond = (size > 65_480) | ((size > 58_000) & (generator.random(size.size) < early))
    level = (2e-6 + 2e-10 * size) * np.where(is_beyond, jump, 1.0)
    return size, level * (0.92 + generator.lognormal(np.log(noise), 0.8, size.size))


DETACHED = KnownPlace("detached limit", 65_480, 65_480, is_measured=True)
UNRELATED = KnownPlace("eager limit", 3840, 4096, is_measured=False)


def judged_costs(size, seconds, known, resamples=10):
    pieces = fit_curve(size, seconds, known=known)
    data = sorted_costs(size, seconds)
    plan = Resampling(np.arange(size.size), np.zeros(size.size, dtype=np.int64), resamples)
    return pieces, judge_boundaries(data, pieces, plan, CurveOptions(), known)


@pytest.mark.parametrize("early", [0.0, 0.4])
@pytest.mark.parametrize("jump", [1.3, 3.0])
def test_a_measured_threshold_is_the_boundary_that_the_costs_show_near_it(jump, early):
    for seed in range(4):
        size, seconds = limited(jump, seed, early=early)
        pieces, found = judged_costs(size, seconds, (DETACHED, UNRELATED))
        (at,) = [
            each for each in found if abs(each.boundary.at / 65_480 - 1) < 0.1 and each.boundary.at >= 60_000
        ]
        assert (at.boundary.at, at.boundary.low, at.boundary.high) == (65_480, 65_480, 65_481)
        assert (at.boundary.kind, at.boundary.source, at.declared) == (
            "protocol",
            "measured",
            "detached limit",
        )
        here, beyond = predict(pieces, np.array([65_400.0, 65_500.0]))
        assert beyond / here == pytest.approx(jump, rel=0.08)
        assert not [each for each in found if each.declared == "eager limit"]


def test_known_places_next_to_each_other_are_one_boundary():
    # As a library declares 64 KiB, of which its header is a part.
    declared = [
        KnownPlace(name, 62_000, 65_536, is_measured=False) for name in ("eager limit", "rendezvous limit")
    ]
    near = KnownPlace("asynchronous limit", 65_500, 65_500, is_measured=True)
    for seed in range(4):
        pieces = fit_curve(*limited(3.0, seed), known=(DETACHED, near, *declared))
        ends = [piece.high for piece in pieces if piece.high is not None]
        assert [end for end in ends if 60_000 < end < 70_000] == [65_480]


def test_a_threshold_that_costs_nothing_is_no_boundary():
    kept = 0
    for seed in range(20):
        size, seconds = limited(1.0, seed)
        ends = [piece.high for piece in fit_curve(size, seconds, known=(DETACHED, UNRELATED))]
        kept += len(ends) - 1
    assert kept <= 2


def test_a_threshold_that_the_costs_refute_leaves_the_boundary_where_it_is():
    far = KnownPlace("detached limit", 75_000, 75_000, is_measured=True)
    for seed in range(4):
        pieces, found = judged_costs(*limited(3.0, seed), (far,))
        assert pieces[0].high == pytest.approx(65_480, rel=0.01)
        assert {each.boundary.source for each in found} == {"search"}


def test_a_declared_jump_is_a_switch_even_where_resamples_place_it_elsewhere():
    for seed in range(4):
        size, seconds = limited(3.0, seed, early=0.5)
        declared = KnownPlace("eager limit", 62_000, 65_536, is_measured=False)
        _, found = judged_costs(size, seconds, (declared,))
        (near,) = [each for each in found if each.declared == "eager limit"]
        assert near.boundary.kind == "protocol"
        assert near.boundary.source == "declared"


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
    with pytest.raises(AnalysisError, match="measured: slow, fast"):
        measured([trace], FitOptions(state="medium"))


@pytest.mark.parametrize("huge", [1e7, 1e15])
def test_one_absurd_time_moves_no_curve(huge):
    rng = np.random.default_rng(7)
    size = np.round(10 ** rng.uniform(0, 6, 600))
    costs = np.where(size < 65_000, 5.0 + 1e-3 * size, 415.5 + 8.497e-3 * size)
    costs *= 0.95 + rng.gamma(3, 0.02, 600)
    at = int(np.argmin(np.abs(size - 150_000)))
    before = predict(fit_curve(size, costs), SIZES[SIZES < 1e6])
    costs[at] = huge
    assert predict(fit_curve(size, costs), SIZES[SIZES < 1e6]) == pytest.approx(before, rel=0.01)
