from __future__ import annotations

import math
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.cost_models import MODEL, with_noise
from steelyard.analyse.cost_curve.quantile_table import kolmogorov_distance
from steelyard.analyse.linear.model import linear_model
from steelyard.errors import AnalysisError
from steelyard.model.cost_model import TailLaw
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_noise import to_noise
from steelyard.studies.communication.model.rivals import MEASURED_ENDS
from steelyard.studies.communication.simulation.message_run import simulate
from steelyard.studies.communication.simulation.validation import (
    HeldOut,
    prediction_errors,
    validate,
)
from steelyard.studies.communication.trace import BLOCK, OPERATION, PROBE, Endpoint, Operation, Trace
from steelyard.studies.communication.transport.link_options import NominalLink

if TYPE_CHECKING:
    from steelyard.model.cost_model import CostModel

has_simgrid = shutil.which("smpirun") is not None and shutil.which("g++") is not None
NOISY = with_noise(MODEL)


def measured(model: CostModel, count: int, *, seed: int = 3, sigma: float = 0.05) -> HeldOut:
    """Draw what somebody measures on a host that follows the model, with its noise."""
    generator = np.random.default_rng(seed)
    sizes = np.floor(10 ** generator.uniform(0, 7, count)).astype(np.int64)
    place = np.linspace(0, 1, 101)
    ratio = np.where(
        sizes <= 1000,
        np.interp(generator.random(count), place, NOISY.noise[0].quantiles),
        np.interp(generator.random(count), place, NOISY.noise[1].quantiles),
    )
    half = np.array([model.predict(int(size)) for size in sizes])
    send = np.array([model.predict(int(size), curve="send") for size in sizes])
    return HeldOut(sizes, half * ratio, send * generator.lognormal(0, sigma, count))


def test_the_true_model_is_right_and_its_rivals_are_not() -> None:
    link = NominalLink(MODEL.bandwidth_bytes_per_s, MODEL.latency_s)
    seen = measured(MODEL, 8000, seed=4)
    found = validate(MODEL, measured(MODEL, 8000), seen=seen, nominal=link, simulates=False)
    # The median of 50 with sigma 0.1 (above 1000 bytes) or 0.4 is off by about 1.4 % or 5.7 % (one sigma).
    assert found.of("native").overall.median < 0.03
    assert found.of("native-os", "send").overall.median < 0.02
    assert found.of("native-os").overall.median == pytest.approx(found.of("native").overall.median, abs=2e-3)
    for rival in ("nominal", "defaults", "tuned-defaults", MEASURED_ENDS, "least-squares line"):
        assert found.of(rival).overall.median > 3 * found.of("native").overall.median
    assert found.of("native").overall.bins == 160
    assert sum(each.errors.bins for each in found.of("native").decades) == 160
    assert [each.low for each in found.of("native").decades] == [0, 10, 100, 1000, 10**4, 10**5, 10**6]
    assert found.simgrid is None
    assert found.native_gap is None


def test_rivals_know_what_their_users_know_and_nothing_of_the_model() -> None:
    seen, other = measured(MODEL, 4000, seed=4), measured(MODEL, 4000)
    wrong = replace(MODEL, bandwidth_bytes_per_s=1.0, latency_s=1.0)
    link = NominalLink(1e9, 5e-6)
    rows = [
        {
            each.predictor: each.overall
            for each in validate(model, other, seen=seen, nominal=link, simulates=False).errors
            if each.response == "half_round_trip" and not each.predictor.startswith("native")
        }
        for model in (MODEL, wrong)
    ]
    assert rows[0] == rows[1]
    # The line is that of `lm(time ~ size)`, on the bins' medians.
    line = linear_model(seen.sizes.astype(float), seen.half_round_trips_s)
    said = line.predict(other.sizes.astype(float))
    own = prediction_errors("", "half_round_trip", other.sizes, other.half_round_trips_s, said)
    assert rows[0]["least-squares line"].median == pytest.approx(own.overall.median)
    # Without measurements or a name of the link nobody predicts anything from them.
    said_alone = {each.predictor for each in validate(MODEL, other, simulates=False).errors}
    assert said_alone <= {"native", "native-os"}


def test_a_host_that_is_a_fifth_slower_is_seen_as_such() -> None:
    slower = replace(
        MODEL,
        curves={
            name: tuple(replace(piece, base=1.25 * piece.base, slope=_slope(piece)) for piece in pieces)
            for name, pieces in MODEL.curves.items()
        },
    )
    found = validate(MODEL, measured(slower, 8000), simulates=False)
    assert found.of("native").overall.median == pytest.approx(0.2, abs=0.02)
    assert found.of("native-os", "send").overall.median == pytest.approx(0.2, abs=0.02)


def _slope(piece: object) -> float:
    kind, slope = piece.kind, piece.slope  # type: ignore[attr-defined]
    return float(slope if kind == "power" else 1.25 * slope)


@pytest.mark.long("three simulations, one of five draws per message")
@pytest.mark.needs_simgrid
@pytest.mark.skipif(not has_simgrid, reason="needs SimGrid: `make deps-communication`")
def test_simgrid_predicts_as_the_formula_and_draws_the_measured_noise() -> None:
    held_out = measured(NOISY, 4000)
    found = validate(NOISY, held_out)
    assert found.native_gap is not None
    assert found.native_gap <= 1e-6
    for suffix in ("", "-os"):
        simulated, native = found.of(f"simulated{suffix}").overall, found.of(f"native{suffix}").overall
        assert simulated.median == pytest.approx(native.median, abs=1e-6)
    assert [each.operations for each in found.noise] == [
        int(np.sum(held_out.sizes <= 1000)),
        int(np.sum(held_out.sizes > 1000)),
    ]
    for each in found.noise:
        # Two samples of one law exceed 1.95 sqrt(2 / n) once in 1000.
        assert each.distance <= 1.95 * np.sqrt(2 / each.operations)
        assert each.noiseless_distance > 0.45
        # Both draw from one law; an interval of 95 % misses 1 by bad luck, of which these seeds have none.
        assert all(one.low <= 1 <= (one.high or math.inf) for one in each.quantiles)
        assert all(one.ratio == pytest.approx(1, abs=0.15) for one in each.quantiles)
        assert each.verdict != "beyond 10 %"


def test_too_few_round_trips_are_refused() -> None:
    with pytest.raises(AnalysisError, match="49 held-out round trips; at least 50"):
        validate(MODEL, measured(MODEL, 49), simulates=False)


def test_held_out_round_trips_are_those_of_a_trace_that_are_kept() -> None:
    records = np.zeros(3, dtype=OPERATION)
    records["op"] = [Operation.PINGPONG, Operation.STREAM, Operation.PINGPONG]
    records["size"] = [5, 6, 7]
    records["start_ns"], records["mid_ns"], records["end_ns"] = 100, 130, 500
    endpoint = Endpoint({}, records, np.zeros(0, dtype=BLOCK))
    trace = Trace((endpoint, endpoint), np.zeros(0, dtype=PROBE))
    found = HeldOut.of_trace(trace)
    assert found.sizes.tolist() == [5, 7]
    assert found.half_round_trips_s == pytest.approx([2e-7, 2e-7])
    assert found.send_durations_s == pytest.approx([3e-8, 3e-8])
    assert HeldOut.of_trace(trace, np.array([False, True, True])).sizes.tolist() == [7]


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_the_distance_of_two_uniform_samples_is_their_shift(shift: float) -> None:
    sample = np.linspace(0, 1, 1001)
    assert kolmogorov_distance(sample, sample + shift) == pytest.approx(min(shift, 1.0), abs=2e-3)


def test_the_floor_of_an_error_is_the_scatter_of_what_was_measured() -> None:
    generator = np.random.default_rng(5)
    sizes = np.floor(10 ** generator.uniform(0, 6, 20_000)).astype(np.int64)
    predicted = np.asarray(1e-6 + sizes * 1e-9, dtype=np.float64)
    scattered = np.asarray(predicted * generator.lognormal(0, 0.2, sizes.size), dtype=np.float64)
    found = prediction_errors("native", "half_round_trip", sizes, scattered, predicted).overall
    # The median of 50 values of this law is off by sqrt(pi / 2) * 0.2 / sqrt(50), and half of the time by
    # more than 0.6745 of that.
    assert found.floor == pytest.approx(0.6745 * math.sqrt(math.pi / 2) * 0.2 / math.sqrt(50), rel=0.15)
    assert found.median == pytest.approx(found.floor, rel=0.2)
    exact = prediction_errors(
        "native", "half_round_trip", sizes, predicted + predicted / 10, predicted
    ).overall
    assert exact.floor == pytest.approx(0.0, abs=1e-12)
    assert exact.median == pytest.approx(1 / 11)


@pytest.mark.needs_simgrid
@pytest.mark.skipif(not has_simgrid, reason="needs SimGrid: `make deps-communication`")
def test_simgrid_draws_every_quantile_of_the_exported_law() -> None:
    table = NOISY.noise[0].quantiles
    beyond = float(np.interp(0.98, np.linspace(0, 1, len(table)), table))
    tail = TailLaw(share=0.02, threshold=beyond, shape=0.6, scale=2.0)
    model = replace(NOISY, noise=(replace(NOISY.noise[0], tail=tail), *NOISY.noise[1:]))
    simgrid = to_simgrid(model)
    count = 8000
    sizes = np.tile([100, 100_000], count)
    drawn = simulate(simgrid, sizes, noise=to_noise(model, seed=5)).half_round_trips_s
    ratios = (drawn / simgrid.half_round_trips(sizes)).reshape(-1, 2).T
    for found, law in zip(ratios, model.noise, strict=True):
        for share in (0.05, 0.5, 0.9, 0.95, 0.985, 0.99, 0.998):
            at = float(np.interp(share, np.linspace(0, 1, len(law.quantiles)), law.quantiles))
            if law.tail is not None and share > 1 - law.tail.share:
                at = law.tail.quantile(share)
            # Four standard errors of a share of so many independent draws.
            assert np.mean(found <= at) == pytest.approx(
                share, abs=4 * math.sqrt(share * (1 - share) / count)
            )
