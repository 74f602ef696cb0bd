from __future__ import annotations

import math

import pytest

from steelyard.studies.colocation.findings.checks import median_ns


@pytest.mark.parametrize(
    ("histograms", "expected"),
    [
        ([], None),
        ([[0, 0]], None),
        ([[0, 0, 0, 4]], math.sqrt(8 * 16)),
        ([[5, 0, 0, 4]], math.sqrt(1 * 2)),
        ([[1, 0, 0, 1], [0, 0, 0, 0, 9]], math.sqrt(16 * 32)),
    ],
)
def test_the_median_is_the_middle_of_its_class(histograms: list[list[int]], expected: float | None) -> None:
    assert median_ns(histograms) == (None if expected is None else pytest.approx(expected))
