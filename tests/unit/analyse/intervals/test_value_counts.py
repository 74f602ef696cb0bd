"""Counted values say what the values say, however they are parted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analyse.intervals.value_counts import count_values, merge_counts

VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)


@settings(max_examples=25)
@given(st.lists(VALUES, min_size=1, max_size=5), st.floats(0, 1))
def test_parts_together_are_the_whole(parts: list[list[int]], p: float) -> None:
    whole = np.array([value for part in parts for value in part], dtype=np.int64)
    found = merge_counts(count_values(np.array(part, dtype=np.int64)) for part in parts)
    assert found.size == whole.size
    assert found.mean == pytest.approx(whole.mean(), rel=1e-12)
    assert found.quantile(p) == pytest.approx(np.quantile(whole, p), rel=1e-12, abs=1e-9)
    assert (found.low, found.high) == (whole.min(), whole.max())
    if whole.size > 1:
        assert found.sd == pytest.approx(whole.std(ddof=1), rel=1e-9, abs=1e-6)


@settings(max_examples=25)
@given(VALUES, st.integers(0, 10**12))
def test_values_above_a_threshold_are_counted(values: list[int], threshold: int) -> None:
    found = count_values(np.array(values, dtype=np.int64))
    assert found.above(threshold) == sum(value > threshold for value in values)
