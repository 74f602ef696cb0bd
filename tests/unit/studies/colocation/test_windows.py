from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.studies.colocation.windows import Phases, Window

LENGTH = st.floats(0.1, 1000.0)


def test_the_edges_of_the_sources_phases_are_cut_off() -> None:
    phases = Phases(2.0, 11.0, 30.0, 32.0, 33.0)
    assert phases.before.low == 2.0
    assert phases.before.high == pytest.approx(11.0 - 0.45)
    assert (phases.beside.low, phases.beside.high) == (12.5, 29.5)


@given(LENGTH, LENGTH, LENGTH)
def test_most_of_every_phase_is_left(warm_up_s: float, baseline_s: float, jobs_s: float) -> None:
    start_s = warm_up_s + baseline_s
    phases = Phases(warm_up_s, start_s, start_s + jobs_s, start_s + jobs_s, start_s + jobs_s)
    assert phases.before.length_s >= 0.94 * baseline_s
    assert phases.beside.length_s >= 0.79 * jobs_s
    assert phases.before.high < start_s < phases.beside.low
    assert phases.beside.high < phases.jobs.high


def test_a_bin_that_reaches_over_an_edge_is_outside() -> None:
    starts_s = np.array([0.85, 0.9, 1.85, 1.9, 1.95])
    assert Window(0.9, 2.0).holds(starts_s, 0.1).tolist() == [False, True, True, True, False]
