from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.cost_curve.network_factors import link_factors, one_way_delays
from steelyard.analyse.cost_curve.segments import fit_segments
from steelyard.errors import AnalysisError

SIZES = np.arange(1.0, 201.0)


def test_a_nominal_link_has_factors_of_one_in_every_piece() -> None:
    receive = fit_segments(SIZES, np.full(200, 3e-6), breaks=[])
    delay = 1e-5 + SIZES / 1e8
    delays = one_way_delays(SIZES, 3e-6 + 2 * delay, receive)
    assert delays == pytest.approx(delay)
    for factor in link_factors(
        fit_segments(SIZES, delays, breaks=[100.0]), bandwidth_bytes_per_s=1e8, latency_s=1e-5
    ):
        assert factor.bandwidth_factor == pytest.approx(1)
        assert factor.latency_factor == pytest.approx(1)


def test_a_delay_that_does_not_depend_on_size_has_no_end_of_bandwidth() -> None:
    (factor,) = link_factors(
        fit_segments(np.full(20, 8.0), np.full(20, 1e-5), breaks=[]),
        bandwidth_bytes_per_s=1e8,
        latency_s=1e-5,
    )
    assert factor.bandwidth_factor == np.inf
    assert factor.latency_factor == pytest.approx(1)


def test_impossible_links_say_why() -> None:
    model = fit_segments(SIZES, SIZES, breaks=[])
    with pytest.raises(AnalysisError, match="bandwidth 0 B/s"):
        link_factors(model, bandwidth_bytes_per_s=0, latency_s=1)
    with pytest.raises(AnalysisError, match="power law"):
        link_factors(fit_segments(SIZES, SIZES, breaks=[], log=True), bandwidth_bytes_per_s=1, latency_s=1)
