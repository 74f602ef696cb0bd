"""What readings of two clocks say: limits that enclose the truth, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.run.hosts.clocks import (
    CLOCK_NAME,
    ClockReading,
    checked,
    compare_clock,
    keep_readings,
    read_readings,
)

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9


@given(
    offset_ns=st.integers(-5 * SECOND, 5 * SECOND),
    drift_ppm=st.integers(-500, 500),
    trips=st.lists(
        st.tuples(st.integers(0, 3600), st.integers(0, SECOND), st.integers(0, SECOND)),
        min_size=1,
        max_size=8,
    ),
)
def test_the_true_offset_and_drift_lie_within(
    offset_ns: int, drift_ppm: int, trips: list[tuple[int, int, int]]
) -> None:
    """However long the ways there and back take, and however different they are."""
    readings, offsets = [], []
    for at_s, way_ns, back_ns in trips:
        at_ns = 10 * SECOND + at_s * SECOND
        ahead_ns = offset_ns + at_s * 1000 * drift_ppm
        readings.append(ClockReading(at_ns - way_ns, at_ns + ahead_ns, at_ns + back_ns))
        offsets.append(ahead_ns / SECOND)
    found = compare_clock(readings)
    assert found is not None
    if not drift_ppm:
        assert found.is_steady
    if not found.is_steady or not drift_ppm:
        assert found.low_s <= min(offsets) + 1e-9
        assert found.high_s >= max(offsets) - 1e-9
    if found.drift_low_ppm is not None:
        assert found.drift_high_ppm is not None
        assert found.drift_low_ppm - 1e-6 <= drift_ppm <= found.drift_high_ppm + 1e-6


def test_a_clock_that_was_set_meanwhile_is_told_from_one_that_was_not() -> None:
    trips = [(0, SECOND), (1800, SECOND), (3600, 3 * SECOND)]
    readings = [ClockReading(at * SECOND, at * SECOND + ahead, at * SECOND + 1000) for at, ahead in trips]
    found = compare_clock(readings)
    assert found is not None
    assert not found.is_steady
    assert [found.low_s, found.high_s] == pytest.approx([1, 3], abs=1e-5)
    assert compare_clock([]) is None
    alone = compare_clock(readings[:1])
    assert alone is not None
    assert alone.drift_low_ppm is None


def test_readings_are_kept_and_damaged_ones_are_left_out(tmp_path: Path) -> None:
    keep_readings(tmp_path, [ClockReading(1, 5, 2)])
    keep_readings(tmp_path, [ClockReading(3, 7, 4)])
    with (tmp_path / CLOCK_NAME).open("a") as file:
        file.write('[1, 2]\n[2, 2, 1]\n["1", 2, 3]\n{}\n[-1, 2, 3]\n[1, 2, 1e400]\n[1, true, 3]\n[1, 2')
    assert list(read_readings(tmp_path)) == [ClockReading(1, 5, 2), ClockReading(3, 7, 4)]
    assert list(read_readings(tmp_path / "absent")) == []
    with pytest.raises(ValueError, match="no reading"):
        checked(1, 1 << 70, 3)
