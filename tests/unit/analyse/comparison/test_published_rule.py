from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.analyse.comparison.published_rule import PublishedClass, published_class

if TYPE_CHECKING:
    from steelyard.analyse.intervals.bootstrap import Limits

limits = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(
    lambda pair: (float(min(pair)), float(max(pair)))
)
MIRROR = {PublishedClass.HIGHER: PublishedClass.LESSER, PublishedClass.LESSER: PublishedClass.HIGHER}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((3, 4), (1, 2), "higher"),
        ((1, 2), (3, 4), "lesser"),
        ((1, 4), (2, 3), "same"),
        ((2, 3), (1, 4), "same"),
        ((1, 3), (2, 4), "overlap"),
        ((1, 2), (2, 3), "overlap"),
        ((2, 3), (1, 2), "overlap"),
        ((1, 2), (1, 2), "overlap"),
        ((1, 4), (1, 3), "overlap"),
        ((2, 4), (1, 4), "overlap"),
        ((math.nan, 1), (1, 2), "NA"),
        (None, (1, 2), "NA"),
        ((1, 2), None, "NA"),
    ],
)
def test_classes_follow_the_published_rule(
    first: Limits | None, second: Limits | None, expected: str
) -> None:
    assert published_class(first, second).value == expected


@given(limits, limits)
def test_swapping_the_sides_mirrors_the_class(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    found = published_class(first, second)
    assert published_class(second, first) is MIRROR.get(found, found)
