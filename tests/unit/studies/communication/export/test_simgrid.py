from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.cost_models import MODEL
from steelyard.errors import DataError
from steelyard.model.cost_model import CostModel, CostPiece
from steelyard.studies.communication.export.lines import LARGEST_BYTES
from steelyard.studies.communication.export.simgrid import fidelity, to_simgrid
from steelyard.studies.communication.export.simgrid_defaults import default_simgrid, tuned_link

if TYPE_CHECKING:
    from steelyard.studies.communication.export.simgrid_model import Profile

CURVES = ("delay", "send", "isend")
ALL = (0, LARGEST_BYTES)


def one_line(base: float, slope: float) -> CostModel:
    pieces = (CostPiece(-1, None, "line", base, slope),)
    return CostModel("t", "s", {"delay": pieces}, 1e9, 1e-6, measured_bytes=dict.fromkeys(CURVES, ALL))


def remarks(model: CostModel, profile: Profile = "rtt") -> list[tuple[str, int, int]]:
    known = replace(model, detached_bytes=4096)
    return [(note.reason, note.low, note.high) for note in to_simgrid(known, profile).notes]


def test_sizes_that_were_not_measured_are_listed() -> None:
    model = replace(one_line(5e-6, 2e-9), measured_bytes={"delay": (1, 65536), "send": (8, 1024)})
    beyond = ("extrapolated", 65537, LARGEST_BYTES)
    assert remarks(model) == [("extrapolated", 0, 0), beyond]
    sends = replace(model, curves={**model.curves, "send": (CostPiece(-1, None, "constant", 1e-6, 0.0),)})
    assert remarks(sends, "os") == [("extrapolated", 0, 7), ("extrapolated", 1025, LARGEST_BYTES)]
    assert remarks(replace(model, measured_bytes={})) == [("measured-unknown", 0, LARGEST_BYTES)]


def test_a_line_is_one_section_and_exact() -> None:
    simgrid = to_simgrid(one_line(5e-6, 2e-9))
    assert [factor.above for factor in simgrid.latency_factors] == [0]
    assert simgrid.latency_factors[0].value == pytest.approx((5e-6 - 16 * 2e-9) / 1e-6)
    assert simgrid.bandwidth_factors[0].value == pytest.approx(0.5)
    assert fidelity(one_line(5e-6, 2e-9), simgrid) < 1e-12
    assert not [note for note in simgrid.notes if note.reason != "threshold-unknown"]


def test_a_boundary_is_shifted_by_the_envelope_and_belongs_to_the_smaller_size() -> None:
    pieces = (CostPiece(-1, 1000, "line", 5e-6, 1e-9), CostPiece(1000, None, "line", 9e-6, 1e-9))
    simgrid = to_simgrid(replace(one_line(1, 1), curves={"delay": pieces}))
    assert [factor.above for factor in simgrid.bandwidth_factors] == [0, 1016]
    assert simgrid.half_round_trips([1000, 1001]) == pytest.approx([6e-6, 1.0001e-5])


def test_a_line_without_latency_is_reanchored_and_reported() -> None:
    model = one_line(1e-9, 1e-9)
    simgrid = to_simgrid(model)
    assert all(factor.value >= 0 for factor in simgrid.latency_factors)
    (note,) = [each for each in simgrid.notes if each.reason == "re-anchored"]
    assert (note.low, note.sections) == (0, len(simgrid.latency_factors))
    assert fidelity(model, simgrid) <= 1e-3


def test_every_kind_of_piece_is_within_the_promise() -> None:
    for profile in ("rtt", "os"):
        assert 0 < fidelity(MODEL, to_simgrid(MODEL, profile)) <= 1e-3


def test_the_send_is_charged_up_to_the_threshold_and_the_whole_stays() -> None:
    simgrid = to_simgrid(MODEL, "os")
    assert (simgrid.asynchronous_below, simgrid.detached_below) == (65481, 65481)
    sizes = np.array([0, 1, 2000, 65480, 65481, 1_000_000])
    sends = [MODEL.predict(int(size), curve="send") for size in sizes[:4]]
    assert simgrid.send_durations(sizes)[:4] == pytest.approx(sends, rel=1e-3)
    assert simgrid.send_durations(sizes)[4:] == pytest.approx(simgrid.half_round_trips(sizes)[4:])
    assert simgrid.isend[0].base_s == 4e-7


def test_a_send_that_outlasts_half_a_round_trip_leaves_a_nanosecond_and_is_reported() -> None:
    sends = {"send": (CostPiece(-1, None, "line", 1.0005e-6, 2e-9),)}
    model = replace(one_line(2e-6, 1e-9), detached_bytes=5000)
    model = replace(model, curves={**model.curves, **sends})
    simgrid = to_simgrid(model, "os")
    (note,) = [each for each in simgrid.notes if each.reason == "send-above-delay"]
    # 2e-6 + 1e-9 n - (1.0005e-6 + 2e-9 n) is below 1 ns from n = 999 on.
    assert (note.low, note.high) == (999, 5000)
    assert simgrid.transfers([999, 5000]) == pytest.approx([1e-9, 1e-9])
    assert simgrid.half_round_trips([998]) == pytest.approx([2.998e-6], rel=1e-3)
    assert simgrid.half_round_trips([5001]) == pytest.approx([7.001e-6])


@pytest.mark.parametrize(
    ("model", "profile", "part"),
    [
        (replace(MODEL, curves={"send": MODEL.curves["send"]}), "rtt", "no curve `delay`"),
        (replace(MODEL, curves={"delay": MODEL.curves["delay"]}), "os", "no curve `send`"),
        (replace(MODEL, asynchronous_bytes=None, detached_bytes=None), "os", "up to which size"),
        (replace(MODEL, latency_s=0.0), "rtt", "latency of the model's link is 0"),
        (replace(MODEL, bandwidth_bytes_per_s=float("inf")), "rtt", "bandwidth of the model's link is inf"),
        (one_line(-1e-6, 1e-9), "rtt", "0 bytes take -1e-06 s"),
    ],
)
def test_a_model_that_cannot_be_exported_says_what_is_missing(
    model: CostModel, profile: str, part: str
) -> None:
    with pytest.raises(DataError, match=part) as caught:
        to_simgrid(model, profile)  # type: ignore[arg-type]
    assert caught.value.hint


def test_unknown_thresholds_are_simgrids_own_and_reported() -> None:
    simgrid = to_simgrid(replace(MODEL, asynchronous_bytes=None, detached_bytes=None))
    assert (simgrid.asynchronous_below, simgrid.detached_below) == (0, 65536)
    assert "threshold-unknown" in {note.reason for note in simgrid.notes}


def test_the_tuned_link_is_right_at_one_byte_and_at_the_largest_message() -> None:
    ends = [(size, MODEL.predict(size)) for size in (1, 10_000_000)]
    bandwidth, latency = tuned_link(ends[0], ends[1])
    tuned = default_simgrid("tuned", bandwidth_bytes_per_s=bandwidth, latency_s=latency)
    wanted = [MODEL.predict(1), MODEL.predict(10_000_000)]
    assert tuned.half_round_trips([1, 10_000_000]) == pytest.approx(wanted)


def test_a_tuned_link_is_positive_where_no_link_is_right_at_both() -> None:
    bandwidth, latency = tuned_link((1, 1e-6), (10_000_000, 1e-6))
    assert bandwidth > 0
    assert latency > 0


def test_what_a_send_costs_above_the_threshold_is_not_asked() -> None:
    falling = (CostPiece(-1, 65480, "line", 1e-6, 1e-11), CostPiece(65480, None, "line", 1e-5, -1e-10))
    model = replace(MODEL, curves={**MODEL.curves, "send": falling, "isend": falling})
    simgrid = to_simgrid(model, "os")
    assert simgrid.send_overheads([65480, 65481]) == pytest.approx([1e-6 + 65480e-11, 0])
    assert fidelity(model, simgrid) <= 1e-3


def test_a_model_that_falls_far_gets_coarser_sections_within_the_promise() -> None:
    # From 1 s to 0.2 s in each of two pieces: with 0.04 % that takes 4000 constants.
    def falls(low: float, high: float | None) -> CostPiece:
        width = 1_000_000
        return CostPiece(low, high, "line", 1 + 0.8 * max(low, 0) / width, -0.8 / width)

    last = CostPiece(2_000_000, None, "constant", 1.0, 0.0)
    model = replace(MODEL, curves={"delay": (falls(-1, 1_000_000), falls(1_000_000, 2_000_000), last)})
    simgrid = to_simgrid(model)
    assert len(simgrid.latency_factors) > 1000
    assert 4e-4 < fidelity(model, simgrid) <= 1e-3


def test_a_model_that_needs_too_many_sections_is_refused() -> None:
    pieces = [
        CostPiece(low - 1 if low == 0 else low, low + 1_000_000, "line", 1 + 0.99e-6 * low, -0.99e-6)
        for low in range(0, 9_000_000, 1_000_000)
    ]
    last = CostPiece(9_000_000, None, "constant", 1.0, 0.0)
    with pytest.raises(DataError, match="fit into an option"):
        to_simgrid(replace(MODEL, curves={"delay": (*pieces, last)}))


def test_sends_that_wait_for_progress_and_outlast_the_round_trip_are_not_charged() -> None:
    # As shared memory: up to 256 bytes the send returns by itself, up to 4040 when the receiver looks.
    sends = (CostPiece(-1, 256, "constant", 1e-7, 0), CostPiece(256, None, "constant", 1.5e-6, 0))
    model = replace(one_line(1e-6, 1e-10), asynchronous_bytes=4040, detached_bytes=256)
    model = replace(model, curves={**model.curves, "send": sends})
    simgrid = to_simgrid(model, "os")
    assert (simgrid.asynchronous_below, simgrid.detached_below) == (257, 257)
    assert [(note.reason, note.low, note.high) for note in simgrid.notes] == [
        ("threshold-lowered", 257, 4040)
    ]
    assert fidelity(model, simgrid) < 1e-9
    assert simgrid.send_durations([256, 257]) == pytest.approx([1e-7, 1.0257e-6])
    short = (sends[0], CostPiece(256, None, "constant", 5e-7, 0))
    early = to_simgrid(replace(model, curves={**model.curves, "send": short}), "os")
    assert early.detached_below == 4041
    assert early.send_durations([4040]) == pytest.approx([5e-7])


def test_neighbouring_remarks_are_one() -> None:
    steep = (CostPiece(-1, 100_000, "constant", 1e-5, 0), CostPiece(100_000, None, "power", 1e-11, 1.2))
    simgrid = to_simgrid(replace(one_line(1, 1), curves={"delay": steep}, detached_bytes=0))
    assert [note.reason for note in simgrid.notes] == ["chords", "re-anchored"]
    assert simgrid.notes[1].sections == len(simgrid.latency_factors) - 1
    assert fidelity(replace(one_line(1, 1), curves={"delay": steep}), simgrid) <= 4e-4
