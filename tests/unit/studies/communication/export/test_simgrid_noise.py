from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.cost_models import MODEL, with_noise
from steelyard.errors import DataError
from steelyard.model.cost_model import NoiseClass, TailLaw
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_noise import noise_source, to_noise

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


def test_a_heavy_tail_is_drawn_from_its_law_and_not_from_the_table() -> None:
    tail = TailLaw(share=0.01, threshold=3.0, shape=0.66, scale=14.0)
    heavy = replace(NOISY, noise=(replace(NOISY.noise[0], tail=tail), *NOISY.noise[1:]))
    first, *others = to_noise(heavy, seed=1).tables
    assert first.tail == tail
    assert {table.tail for table in others} == {None}
    text = noise_source(to_simgrid(heavy), to_noise(heavy, seed=1))
    assert "{0.01, 3.0, 0.66, 14.0}" in text
    assert text.count("{0.0, 0.0, 1.0, 0.0}") == len(others)
