from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.errors import DataError
from steelyard.model.cost_model import NoiseClass
from steelyard.report.export.simgrid import to_simgrid
from steelyard.report.export.simgrid_noise import noise_source, to_noise
from steelyard.report.export.test_cost_models import MODEL, with_noise

NOISY = with_noise(MODEL)


def test_the_source_holds_the_sections_the_tables_and_no_gap() -> None:
    simgrid = to_simgrid(NOISY, "os")
    text = noise_source(simgrid, to_noise(NOISY, seed=11))
    assert "@" not in text
    assert "11ULL" in text
    assert f"constexpr double latency   = {simgrid.latency_s!r};" in text
    assert all(repr(factor.value) in text for factor in simgrid.latency_factors)
    assert all(repr(ratio) in text for each in NOISY.noise for ratio in each.quantiles)
    # SimGrid refuses factors beside callbacks.
    assert "factor:" not in text
    assert '"smpi/send-is-detached-thresh:65481"' in text


def test_the_first_table_begins_below_zero_bytes() -> None:
    assert [table.above for table in to_noise(NOISY, seed=1).tables] == [-1, 1000]


@pytest.mark.parametrize(
    ("noise", "part"),
    [
        ((), "has no noise classes"),
        ((NoiseClass(-1, None, (1.0,), None, ""),), "noise class 1"),
        ((NoiseClass(-1, None, (0.0, 1.0), None, ""),), "noise class 1"),
        ((NoiseClass(-1, None, (1.0, float("inf")), None, ""),), "noise class 1"),
    ],
)
def test_a_model_without_usable_noise_is_refused(noise: tuple[NoiseClass, ...], part: str) -> None:
    with pytest.raises(DataError, match=part):
        to_noise(replace(MODEL, noise=noise), seed=1)
