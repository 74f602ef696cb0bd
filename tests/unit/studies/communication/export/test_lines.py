from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.model.cost_model import CostPiece, PieceName
from steelyard.studies.communication.export.lines import LARGEST_BYTES, curve_lines, furthest

TOLERANCE = 4e-4


@settings(deadline=None)
@given(st.floats(-0.9, 1.8), st.floats(1e-9, 1e-3), st.integers(-1, 5000), st.integers(2, 10**7))
def test_chords_of_a_power_law_stay_within_the_tolerance(
    exponent: float, factor: float, low: int, width: int
) -> None:
    high = low + width
    pieces = [CostPiece(low, None, "power", factor, exponent)]
    if low >= 0:
        pieces = [
            CostPiece(-1, low, "constant", 1e-6, 0),
            CostPiece(low, high, "power", factor, exponent),
            CostPiece(high, None, "constant", 1.0, 0),
        ]
    lines = curve_lines(pieces, tolerance=TOLERANCE)
    law = pieces[-2] if low >= 0 else pieces[0]
    for line in lines:
        if line.first <= low or (low >= 0 and line.last > high):
            continue
        for size in np.unique(np.geomspace(line.first + 1, line.last + 1, 9).round() - 1):
            assert line.at(size) == pytest.approx(law.at(size), rel=TOLERANCE * 1.01)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**8), min_size=0, max_size=8, unique=True))
def test_lines_hold_every_size_exactly_once(ends: list[int]) -> None:
    borders = [-1, *sorted(ends), None]
    kinds: tuple[PieceName, ...] = ("line", "power", "constant")
    pieces = [
        CostPiece(low if low is not None else 0, high, kinds[place % 3], 1e-6, 0.5)
        for place, (low, high) in enumerate(itertools.pairwise(borders))
    ]
    lines = curve_lines(pieces, tolerance=TOLERANCE)
    assert lines[0].first == 0
    assert lines[-1].last == LARGEST_BYTES
    assert all(after.first == line.last + 1 for line, after in itertools.pairwise(lines))


def test_a_boundary_between_two_sizes_belongs_to_the_smaller() -> None:
    pieces = [CostPiece(-1, 99.5, "constant", 1.0, 0), CostPiece(99.5, None, "constant", 2.0, 0)]
    first, second = curve_lines(pieces, tolerance=TOLERANCE)
    assert (first.last, second.first) == (99, 100)


@pytest.mark.parametrize(
    ("piece", "part"),
    [
        (CostPiece(-1, None, "line", -1e-6, 1e-9), "0 bytes take -1e-06 s"),
        (CostPiece(-1, None, "line", 1e-6, -1e-9), "the largest message of MPI, take -2.1"),
        (CostPiece(-1, None, "constant", 0.0, 0.0), "0 bytes take 0 s"),
        (CostPiece(-1, None, "constant", math.nan, 0.0), "0 bytes take nan s"),
        (CostPiece(-1, None, "power", 1.0, 400.0), "take inf s"),
        (CostPiece(0, None, "constant", 1.0, 0.0), "does not begin at 0 bytes"),
    ],
)
def test_a_curve_that_gives_no_durations_is_refused(piece: CostPiece, part: str) -> None:
    with pytest.raises(DataError, match=part):
        curve_lines([piece], tolerance=TOLERANCE)


def test_a_curve_that_needs_too_many_chords_is_refused() -> None:
    with pytest.raises(DataError, match="fit into an option"):
        curve_lines([CostPiece(-1, None, "power", 1e-9, 0.5)], tolerance=1e-9)


@pytest.mark.parametrize("step", [1, 100_000_000])
def test_nearly_the_furthest_fine_number_is_found_in_few_steps(step: int) -> None:
    asked: list[int] = []

    def is_fine(end: int) -> bool:
        asked.append(end)
        return end <= 123_456_789

    assert 0.98 * 123_456_789 <= furthest(5, LARGEST_BYTES, is_fine, step=step) <= 123_456_789
    assert len(asked) < 40
