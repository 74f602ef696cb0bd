"""Any cost model: what SimGrid will answer to the exported options is the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from fixtures.cost_models import cost_models
from steelyard.errors import DataError
from steelyard.studies.communication.export.lines import TOO_MANY
from steelyard.studies.communication.export.simgrid import fidelity, to_simgrid
from steelyard.studies.communication.export.simgrid_files import options

if TYPE_CHECKING:
    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.export.simgrid_model import Profile, SimGridModel

PROMISED = 1e-3
SIZES = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=40)


def exported(model: CostModel, profile: Profile) -> SimGridModel:
    try:
        return to_simgrid(model, profile)
    except DataError as error:
        # Few of the drawn models fall so far that SimGrid cannot be told.
        if error.code != TOO_MANY:
            raise
        reject()


def truth(model: CostModel, sizes: list[int], curve: str = "delay") -> np.ndarray:
    return np.array([model.predict(size, curve=curve) for size in sizes])


def near_boundaries(simgrid: SimGridModel) -> list[int]:
    edges = [factor.above - 16 for factor in simgrid.latency_factors]
    return [size for edge in edges for size in (edge, edge + 1) if 0 <= size < 2**31]


@pytest.mark.long("many models at many sizes")
@settings(max_examples=60, deadline=None)
@given(cost_models(), SIZES)
def test_half_round_trips_are_the_models_at_every_size(model: CostModel, sizes: list[int]) -> None:
    simgrid = exported(model, "rtt")
    asked = sizes + near_boundaries(simgrid)
    found = simgrid.half_round_trips(asked)
    assert np.max(np.abs(found / truth(model, asked) - 1)) <= PROMISED
    assert fidelity(model, simgrid) <= PROMISED


@settings(max_examples=60, deadline=None)
@given(cost_models(), SIZES)
def test_charging_the_send_keeps_half_round_trips_and_gives_the_send(
    model: CostModel, sizes: list[int]
) -> None:
    simgrid = exported(model, "os")
    asked = np.array(sizes + near_boundaries(simgrid))
    outlasted = np.zeros(len(asked), dtype=bool)
    for note in simgrid.notes:
        if note.reason == "send-above-delay":
            outlasted |= (asked >= note.low) & (asked <= note.high)
    half, send = truth(model, asked.tolist()), truth(model, asked.tolist(), "send")
    charged = asked < simgrid.detached_below
    found = simgrid.half_round_trips(asked)
    # Where the send outlasts half a round trip, what is left is 1 ns; nowhere else.
    assert np.all(np.abs(found / half - 1)[~outlasted] <= PROMISED)
    assert np.all((send + 1e-9 >= half * (1 - PROMISED))[outlasted])
    assert np.all(charged[outlasted])
    assert np.all(np.abs(simgrid.send_durations(asked) / send - 1)[charged] <= PROMISED)


@settings(max_examples=30, deadline=None)
@given(cost_models())
def test_options_say_exactly_what_the_predictor_believes(model: CostModel) -> None:
    simgrid = exported(model, "os")
    text = options(simgrid)
    for name, factors in (
        ("smpi/lat-factor", simgrid.latency_factors),
        ("smpi/bw-factor", simgrid.bandwidth_factors),
    ):
        rows = [row.split(":") for row in text[name].split(";")]
        # SimGrid reads boundaries as `int` and stops at anything that is no digit.
        assert all(bound.isdecimal() and int(bound) < 2**31 for bound, _ in rows)
        assert [(int(bound), float(value)) for bound, value in rows] == [
            (factor.above, factor.value) for factor in factors
        ]
        bounds = [int(bound) for bound, _ in rows]
        assert bounds[0] == 0
        assert bounds == sorted(set(bounds))
        assert all(0 <= float(value) < np.inf for _, value in rows)
    assert len(max(text.values(), key=len)) < 128 * 1024
