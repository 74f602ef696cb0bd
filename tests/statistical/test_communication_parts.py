"""Clocks, noise, carry-over, calls and comparisons of planted traces."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fixtures.communication_traces import (
    SHAPED,
    SHARED_MEMORY,
    TCP,
    TRANSPORTS,
    Plan,
    planted_trace,
    replications,
)
from steelyard.analyse.cost_curve.curve import envelope, fit_curve
from steelyard.analyse.cost_curve.median_line import predict
from steelyard.analyse.cost_curve.noise import pareto_tail
from steelyard.errors import AnalysisError
from steelyard.studies.communication.findings.compare import compare
from steelyard.studies.communication.findings.diagnostics import diagnostics, size_histogram
from steelyard.studies.communication.model.call_costs import call_costs
from steelyard.studies.communication.model.carry_over import carry_over
from steelyard.studies.communication.model.fit import FitOptions, model_of
from steelyard.studies.communication.model.noise_classes import law_of, noise_classes
from steelyard.studies.communication.model.outliers import find_outliers, trimmed
from steelyard.studies.communication.model.rivals import held_out_errors
from steelyard.studies.communication.operations import CALLS, operations_of
from steelyard.studies.communication.trace import Operation, Trace

ALL = tuple(Operation)


def clocks(truth, plan):
    return operations_of(planted_trace(truth, plan))[1].model


@pytest.mark.parametrize("asymmetry_ns", [100.0, 2000.0])
@pytest.mark.parametrize("drift_ppb", [0.0, 50.0, -12_000.0])
def test_an_offset_is_found_within_100_ns_and_covered_by_its_error(asymmetry_ns, drift_ppb):
    for seed in range(5):
        offset = -1.7e15 + 1e6 * seed
        plan = Plan(operations=4000, seed=seed, offset_ns=offset, drift_ppb=drift_ppb)
        model = clocks(SHAPED, replace(plan, asymmetry_ns=asymmetry_ns))
        stamps = model.origin_ns + np.array([0, 10**9, 20 * 10**9], dtype=np.uint64)
        remote = np.round(stamps * (1 + drift_ppb * 1e-9) + offset + 1e9).astype(np.int64).astype(np.uint64)
        errors = model.to_clock_0(remote) - stamps.astype(np.int64)
        assert np.abs(errors).max() <= 100
        assert np.abs(errors).max() <= model.error_ns


def test_a_drift_is_found_within_2_ppb_over_90_s():
    for seed in range(3):
        plan = Plan(operations=10_000, seed=seed, drift_ppb=37.0, gap_ns=9e6, asymmetry_ns=1000.0)
        model = clocks(SHARED_MEMORY, plan)
        assert model.drift_ppb == pytest.approx(37.0, abs=2)
        assert abs(model.drift_ppb - 37.0) <= 4 * model.drift_error_ppb


def test_one_way_times_are_mapped_or_withheld():
    plan = Plan(operations=3000, kinds=(Operation.STREAM,), offset_ns=5e8, drift_ppb=-300.0, has_noise=False)
    table, found = operations_of(planted_trace(TCP, plan))
    shown = np.isfinite(table.one_way_s)
    assert 0 < shown.sum() < len(table)
    assert found.withheld == (~shown).sum()
    assert "errors of the clocks" in found.reason
    assert table.one_way_s[shown] == pytest.approx(TCP.curve(table.size[shown].astype(float)), rel=0.01)
    assert TCP.curve(table.size[~shown].astype(float)).max() <= 3.1 * found.model.error_ns * 1e-9


BOOT = {"boot_id": "a-boot", "clock": "CLOCK_MONOTONIC"}


def test_ends_of_one_boot_have_one_clock_and_exact_one_way_times():
    # A slow probe whose ways differ by 30 us: alone it would be off by as much.
    plan = Plan(operations=1500, kinds=(Operation.STREAM, Operation.PINGPONG), has_noise=False, header=BOOT)
    uneven = replace(plan, asymmetry_ns=30_000.0, offset_ns=-1e9)
    table, found = operations_of(planted_trace(SHARED_MEMORY, uneven))
    assert (found.model.is_shared, found.model.error_ns, found.withheld) == (True, 0.0, 0)
    streams = table.where(table.op == Operation.STREAM)
    truth = SHARED_MEMORY.curve(streams.size.astype(float))
    assert streams.one_way_s == pytest.approx(truth, abs=1.1e-9)
    model, _ = model_of(
        [planted_trace(SHARED_MEMORY, replace(uneven, has_noise=True))], FitOptions(resamples=1)
    )
    at = np.array([1e4, 1e5, 5e6])
    assert predict(model.curves["one_way"], at) == pytest.approx(SHARED_MEMORY.curve(at), rel=0.05)


@pytest.mark.parametrize(
    "header",
    [{}, {"clock": "CLOCK_MONOTONIC"}, {"boot_id": "", "clock": "CLOCK_MONOTONIC"}, {"boot_id": "a-boot"}],
)
def test_what_does_not_prove_one_clock_leaves_it_to_the_probes(header):
    plan = Plan(operations=1000, kinds=(Operation.STREAM,), offset_ns=-1e9, header=header)
    assert not clocks(TCP, plan).is_shared


def test_probes_are_believed_where_they_contradict_the_boot():
    # As another time namespace of the same boot does it.
    model = clocks(TCP, Plan(operations=1000, offset_ns=5e8 - 1e9, header=BOOT))
    assert not model.is_shared
    assert abs(model.base_ns + model.offset_ns - 5e8) <= model.error_ns


def test_one_way_times_whose_shortest_are_withheld_have_no_curve():
    plan = Plan(operations=1000, kinds=(Operation.STREAM, Operation.PINGPONG), offset_ns=5e8)
    model, _ = model_of([planted_trace(TCP, plan)], FitOptions(resamples=1))
    assert "one_way" not in model.curves


def test_what_one_endpoint_did_not_finish_is_left_out():
    trace = planted_trace(TCP, Plan(operations=1000))
    first, second = trace.endpoints
    killed = Trace((first, replace(second, operations=second.operations[:700])), trace.probes)
    assert len(operations_of(killed)[0]) == 700
    with pytest.raises(AnalysisError, match="endpoint 1 finished no operation"):
        operations_of(Trace((first, replace(second, operations=second.operations[:0])), trace.probes))
    with pytest.raises(AnalysisError, match="no clock probe"):
        operations_of(Trace(trace.endpoints, trace.probes[:0]))


def test_every_kind_of_operation_has_its_costs():
    table, _ = operations_of(planted_trace(SHARED_MEMORY, Plan(operations=4000, kinds=ALL, has_noise=False)))
    truth = SHARED_MEMORY.curve(table.size.astype(float))
    for kind, column, share in (
        (Operation.PINGPONG, "half_s", 1.0),
        (Operation.PINGPONG, "send_s", SHARED_MEMORY.send_share),
        (Operation.SEND, "send_s", SHARED_MEMORY.send_share),
        (Operation.ISEND, "send_s", SHARED_MEMORY.send_share),
        (Operation.RECV, "receive_s", 0.2),
    ):
        here = table.op == kind
        assert getattr(table, column)[here] == pytest.approx(share * truth[here], rel=0.01, abs=2e-9)
    after_a_call = np.flatnonzero(np.isin(table.op[10:-1], CALLS)) + 11
    assert table.previous_size[after_a_call].min() >= 1
    assert table.frame().height == len(table)


def test_calls_are_claimed_above_the_cost_of_a_stamp_only():
    cheap = planted_trace(TCP, Plan(operations=2000, kinds=ALL))
    dear = planted_trace(TCP, Plan(operations=2000, kinds=ALL, header={"stamp_cost_ns": 50.0}))
    costs = [call_costs([trace], operations_of(trace)[0]) for trace in (cheap, dear)]
    assert [each.name for each in costs[0]] == ["test", "iprobe", "wtime"]
    for each in costs[0]:
        assert each.low_s <= each.cost_s <= each.high_s
        assert each.cost_s == pytest.approx(65e-9 - 22e-9, abs=3e-9)
        assert not each.reason
    assert all("50 ns" in each.reason for each in costs[1])


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_carry_over_is_found_where_it_was_planted(truth):
    trace = planted_trace(truth, Plan(has_carry_over=True))
    table, _ = operations_of(trace)
    ratio = table.half_s / truth.curve(table.size.astype(float))
    small, *others = carry_over(table.size, table.previous_size, ratio)
    planted = np.array(truth.carry_over)
    found = np.array([each.ratio for each in small.after])
    assert found / found[0] == pytest.approx(planted / planted[0], rel=0.1)
    assert small.explained > 0.1
    assert max(each.explained for each in others) < 0.01
    assert all(each.ratio_low <= each.ratio <= each.ratio_high for each in small.after)


def test_a_planted_law_is_named_and_a_heavy_tail_found():
    generator = np.random.default_rng(3)
    skewed = 0.9 + generator.lognormal(-2.3, 1.0, 4000)
    assert law_of(skewed).startswith("lognormal")
    light = 0.9 + generator.gamma(2.0, 0.1, 4000)
    assert "heavy Pareto" not in law_of(light)
    pareto = np.where(generator.random(4000) < 0.1, 1.5 * generator.random(4000) ** (-1 / 1.5), light)
    text = law_of(pareto)
    assert "heavy Pareto tail" in text
    low, high = (float(each) for each in text.split("[")[1].split("]")[0].split(", "))
    assert low <= 1.5 <= high
    modes = np.where(generator.random(4000) < 0.4, light, 2.5 * light)
    lower, upper = (each.split(" (")[0] for each in law_of(modes).split("two modes: ")[1].split(" and "))
    assert [float(each) for each in lower.split(" % around ")] == pytest.approx([40, 1.08], rel=0.05)
    assert [float(each) for each in upper.split(" % around ")] == pytest.approx([60, 2.7], rel=0.05)
    uneven = np.where(generator.random(4000) < 0.5, generator.uniform(1, 1.2, 4000), light)
    assert law_of(uneven).startswith("none fits, nearest")


BODIES = {
    "normal": lambda generator, count: 1 + 0.05 * generator.standard_normal(count),
    "gamma": lambda generator, count: 0.9 + generator.gamma(2.0, 0.05, count),
    "lognormal": lambda generator, count: 0.95 + generator.lognormal(-3.0, 0.6, count),
}
DELAYS = {
    "added, long": lambda body, delay: body + 20 * delay,
    "added, short": lambda body, delay: body + delay,
    "in their place": lambda body, delay: 1.5 * delay,
}


@pytest.mark.parametrize("name", list(BODIES))
@pytest.mark.parametrize("kind", list(DELAYS))
def test_one_delay_in_a_hundred_is_found_as_a_heavy_tail(name, kind):
    found = right = 0
    for seed in range(50):
        generator = np.random.default_rng([4, seed])
        body = BODIES[name](generator, 10_000)
        delay = generator.random(body.size) ** (-1 / 1.5)
        tail = pareto_tail(np.where(generator.random(body.size) < 0.01, DELAYS[kind](body, delay), body))
        assert tail is not None
        found += tail.is_heavy
        right += tail.is_heavy and tail.shape.low <= 1 / 1.5 <= tail.shape.high
    assert found >= 45
    # The interval holds 90 %; the place of the threshold was chosen.
    assert right >= 0.7 * found


def test_a_body_with_a_heavy_tail_and_its_law_reach_the_simulator():
    generator = np.random.default_rng(8)
    body = 0.9 + generator.gamma(2.0, 0.05, 12_000)
    rare = 20 * generator.random(body.size) ** (-1 / 1.5)
    ratio = np.where(generator.random(body.size) < 0.01, body + rare, body)
    (found,) = noise_classes(np.full(body.size, 100.0), ratio)
    assert found.law.startswith("99")
    assert "gamma" in found.law
    assert found.tail is not None
    assert found.tail.share == pytest.approx(0.01, abs=0.004)
    # Of the largest in a thousand a table of 401 quantiles knows two points.
    truth = 1 + 20 * 0.1 ** (-1 / 1.5)
    assert found.tail.quantile(0.999) == pytest.approx(truth, rel=0.35)
    (none,) = noise_classes(np.full(body.size, 100.0), body)
    assert none.tail is None


@pytest.mark.parametrize("name", list(BODIES))
def test_the_law_of_a_class_has_the_quantiles_of_what_it_is_drawn_from(name):
    def delayed(generator, count):
        body = BODIES[name](generator, count)
        late = body + 20 * generator.random(count) ** (-1 / 1.5)
        return np.where(generator.random(count) < 0.01, late, body)

    for seed in range(2):
        generator = np.random.default_rng([6, seed])
        (law,) = noise_classes(np.full(4000, 100.0), delayed(generator, 4000), seed=seed)
        fresh = delayed(generator, 400_000)
        for share in (0.5, 0.95, 0.99, 0.995):
            at = np.interp(share, np.linspace(0, 1, len(law.quantiles)), law.quantiles)
            if law.tail is not None and share > 1 - law.tail.share:
                at = law.tail.quantile(share)
            # Four standard errors of a share of 4000 values.
            assert np.mean(fresh <= at) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 4000))


def test_a_delay_that_adds_to_the_time_weighs_less_on_large_messages():
    generator = np.random.default_rng(3)
    size = np.floor(10 ** generator.uniform(1, 7, 24_000))
    curve = 1e-6 + 1e-9 * size
    delay = np.where(generator.random(size.size) < 0.1, 1e-4 * generator.lognormal(0, 0.3, size.size), 0.0)
    ratio = 1 + delay / curve
    found = noise_classes(size, ratio)
    ends = [math.inf if each.high is None else each.high for each in found]
    for low in 2.0 ** np.arange(4, 22):
        here = (size > low) & (size <= 2 * low)
        law = found[int(np.searchsorted(ends, 1.4 * low))]
        # Over a class the 95 % quantile falls by a factor of 4: half of it lies on either side.
        assert 0.5 < law.quantiles[380] / np.quantile(ratio[here], 0.95) < 2


def test_noise_classes_keep_quantiles_and_move_to_switches():
    generator = np.random.default_rng(1)
    size = np.floor(10 ** generator.uniform(0, 7, 8000))
    ratio = 0.5 + np.where(size <= 4035, 1.0, 0.5) * generator.lognormal(0.0, 0.8, 8000)
    found = noise_classes(size, ratio, [4035.0])
    powers = [64.0, 256.0, 1024.0, 4035.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0]
    assert [each.high for each in found] == [*powers, None]
    assert all(len(each.quantiles) == 401 for each in found)
    assert found[3].quantiles[200] == pytest.approx(1.5, rel=0.05)
    assert found[4].quantiles[200] == pytest.approx(1.0, rel=0.05)
    assert found[4].law.startswith("lognormal")


def test_outliers_that_come_together_are_said_to():
    table, _ = operations_of(planted_trace(TCP, Plan(operations=5000)))
    ratio = np.ones(len(table))
    ratio[1000:1060] = 12.0
    together = {each.name: each for each in find_outliers(table, ratio)}["cost > 10 times the curve"]
    assert together.count == 60
    assert {"time", "order"} <= set(together.shared)
    apart = np.ones(len(table))
    apart[np.random.default_rng(5).choice(5000, 60, replace=False)] = 12.0
    spread = {each.name: each for each in find_outliers(table, apart)}["cost > 10 times the curve"]
    assert (spread.count, spread.shared) == (60, ())


SMALL = "size < 100 B and half round trip > 100 us"


def late_small_messages(table, seed, chance):
    """Delay small messages, each with a chance that depends on its size and on its place."""
    generator = np.random.default_rng([7, seed])
    is_late = (table.size < 100) & (generator.random(len(table)) < chance(table.size, table.seq))
    half = np.where(is_late, 3e-4, np.minimum(table.half_s, 5e-5 + 1e-9 * table.size))
    return {each.name: each for each in find_outliers(replace(table, half_s=half), np.ones_like(half))}[SMALL]


def test_a_limit_of_the_size_is_not_found_again_as_something_shared():
    table, _ = operations_of(planted_trace(TCP, Plan(operations=8000)))
    found = [late_small_messages(table, seed, lambda size, seq: 0.05 + 0 * size) for seed in range(20)]
    assert {each.among for each in found} == {"below 100 B"}
    assert all(50 < each.count < each.of < 3000 for each in found)
    # 80 tests at 0.001.
    assert sum(len(each.shared) for each in found) <= 1
    by_size = late_small_messages(table, 1, lambda size, seq: np.where(size > 50, 0.3, 0.01))
    assert by_size.shared == ("size",)
    by_time = late_small_messages(table, 1, lambda size, seq: np.where(seq > 6000, 0.3, 0.01))
    assert "time" in by_time.shared
    assert "size" not in by_time.shared


def test_trimming_marks_and_keeps_everything():
    values = np.arange(25.0)
    assert trimmed(values).nonzero()[0].tolist() == [0, 9, 10, 19, 20, 24]


def test_diagnostics_show_order_sampling_and_influence():
    table, _ = operations_of(planted_trace(TCP, Plan()))
    series = diagnostics(table, TCP.pieces, [65_557.0, 4035.0])
    assert np.abs(series.autocorrelation[1:]).max() < 2 * series.autocorrelation_limit
    assert series.sizes.log_uniform_p > 0.01
    assert series.sizes.counts.sum() == len(table)
    assert series.sizes.wrong_side == ((4035.0, 4096),)
    full = diagnostics(table.where(np.arange(len(table)) < 1500), TCP.pieces)
    # Leverages of a line add up to its two coefficients, over all pieces.
    assert full.leverage.sum() == pytest.approx(2 * len(TCP.pieces), rel=1e-6)
    assert size_histogram(2.0 ** np.arange(24)).powers_of_two == 24


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_pieces_predict_another_run_better_than_the_simple_models(truth):
    half = operations_of(planted_trace(truth, Plan()))[0]
    errors = {each.model: each for each in held_out_errors(half, FitOptions().curve)}
    ours = errors.pop("pieces")
    assert ours.median <= 0.06
    assert all(ours.mean < each.mean for each in errors.values())
    assert [decade for decade, _ in ours.decades] == list(range(7))


def test_replications_agree_and_a_slower_link_differs_in_its_slope_only():
    plan = Plan(operations=4000, has_carry_over=True)
    *others, last = SHAPED.pieces
    slower = replace(SHAPED, pieces=(*others, replace(last, slope=last.slope / 0.95)))
    first, again, reshaped = (
        replications(truth, replace(plan, seed=seed), 3, spread=0.005)
        for truth, seed in ((SHAPED, 1), (SHAPED, 2), (slower, 3))
    )
    options = FitOptions(resamples=20)
    same = compare(first, again, options)
    assert not same.differs
    found = compare(first, reshaped, options)
    moved = [each for each in found.coefficients if each.verdict == "different"]
    assert [(each.coefficient, each.high > 9e6) for each in moved] == [("slope", True)]
    assert moved[0].second / moved[0].first == pytest.approx(1 / 0.95, abs=0.02)
    assert [each.high for each in found.levels if each.verdict == "different"] in ([], [None])


def test_two_single_runs_are_never_called_different():
    # Launches of one host differ by some per cent, and by nothing that a single launch can tell of.
    plan = Plan(operations=2000)
    for seed in range(3):
        first, second = (
            replications(TCP, replace(plan, seed=100 * seed + side), 1, spread=0.06) for side in (1, 2)
        )
        found = compare(first, second, FitOptions(resamples=10))
        assert found.is_single
        assert not found.differs
        judged = [*found.boundaries, *found.coefficients, *found.levels]
        assert "different" not in {each.verdict for each in judged}
        assert "same" not in {each.verdict for each in found.levels}


def edited(trace, change):
    endpoints = []
    for endpoint in trace.endpoints:
        rows = endpoint.operations.copy()
        change(rows)
        endpoints.append(replace(endpoint, operations=rows))
    return Trace((endpoints[0], endpoints[1]), trace.probes)


def doubling(rows):
    rows["size"] = 2 ** np.floor(np.log2(np.maximum(rows["size"], 1))).astype(np.uint64)


def with_zeros(rows):
    rows["size"] = np.where(rows["seq"] % 2, 0, rows["size"])


def constant(rows):
    rows["end_ns"] = rows["start_ns"] + 1000


@pytest.mark.parametrize("change", [doubling, with_zeros, constant], ids=lambda change: change.__name__)
def test_unusual_plans_have_models_and_equal_themselves(change):
    trace = edited(planted_trace(TCP, Plan(operations=400)), change)
    blind = [replace(endpoint, blocks=endpoint.blocks[:0]) for endpoint in trace.endpoints]
    for each in (trace, Trace((blind[0], blind[1]), trace.probes[:1])):
        model, _ = model_of([each], FitOptions(resamples=2))
        assert model.predict(0) > 0
        assert model.bandwidth_bytes_per_s > 0
        assert not compare([each], [each, each], FitOptions(resamples=2)).differs


@pytest.mark.parametrize("operations", [1, 7])
def test_too_few_round_trips_are_refused(operations):
    with pytest.raises(AnalysisError, match="too few for a curve") as caught:
        model_of([planted_trace(TCP, Plan(operations=operations))])
    assert "pingpong" in (caught.value.hint or "")
    with pytest.raises(AnalysisError, match="no trace"):
        model_of([])


@pytest.mark.parametrize("truth", TRANSPORTS, ids=lambda truth: truth.name)
def test_the_lower_envelope_is_the_planted_quantile(truth):
    table, _ = operations_of(planted_trace(truth, Plan(operations=60_000)))
    pieces = fit_curve(table.size, table.half_s)
    low = predict(envelope(table.size, table.half_s, pieces), table.size)
    assert np.mean(table.half_s < low) == pytest.approx(0.05, abs=0.01)
    ratio = low / truth.curve(table.size.astype(float))
    for number, (begin, end) in enumerate([(1, 200), (1000, 8000), (2e6, 1e7)]):
        here = (table.size > begin) & (table.size < end)
        assert np.median(ratio[here]) == pytest.approx(truth.noise[number][2], rel=0.05)
