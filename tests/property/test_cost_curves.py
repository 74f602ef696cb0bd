"""What holds for every curve of costs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analyse.cost_curve.curve import envelope, fit_curve
from steelyard.analyse.cost_curve.median_line import binned_medians, predict
from steelyard.analyse.cost_curve.piece_search import CurveOptions


@st.composite
def costs(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(8, 600))
    largest = draw(st.floats(1.0, 8.0))
    size = np.floor(10 ** generator.uniform(0, largest, count))
    if draw(st.booleans()):
        size = 2.0 ** np.floor(np.log2(np.maximum(size, 1)))
    if draw(st.booleans()):
        size[0] = 0
    step = draw(st.sampled_from([1.0, 3.0]))
    level = 10 ** draw(st.floats(-8, 0))
    line = level * (1 + size / 10 ** draw(st.floats(0, 7))) * np.where(size > 1000, step, 1.0)
    noise = draw(st.sampled_from([0.0, 0.05, 0.5]))
    return size, line * np.exp(noise * np.abs(generator.standard_normal(count)))


@given(costs())
@settings(max_examples=60, deadline=None)
def test_pieces_follow_each_other_and_never_fall(data):
    size, seconds = data
    pieces = fit_curve(size, seconds)
    assert pieces[0].low == -1
    assert pieces[-1].high is None
    for left, right in pairwise(pieces):
        assert left.high == right.low
        assert left.low < left.high
    assert sum(piece.count for piece in pieces) == size.size
    assert all(piece.slope >= 0 for piece in pieces)
    curve = predict(pieces, size)
    assert np.isfinite(curve).all()
    assert [piece.at(each) for piece in pieces[:1] for each in (0.0, 1.0)] == pytest.approx(
        predict(pieces[:1], [0.0, 1.0])
    )


@given(costs(), st.sampled_from([2.0**-20, 2.0**10]))
@settings(max_examples=30, deadline=None)
def test_neither_the_order_nor_the_unit_of_costs_matters(data, factor):
    size, seconds = data
    order = np.random.default_rng(1).permutation(size.size)
    one = fit_curve(size, seconds)
    assert fit_curve(size[order], seconds[order]) == one
    other = fit_curve(size, seconds * factor)
    assert [piece.high for piece in other] == [piece.high for piece in one]
    at = np.unique(size)
    assert predict(other, at) == pytest.approx(factor * predict(one, at), rel=1e-4)


@given(costs(), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_bins_hold_everything_once_and_equal_sizes_together(data, width):
    size, seconds = data
    order = np.lexsort((seconds, size))
    x, y = size[order], seconds[order]
    places, medians = binned_medians(x, y, width)
    assert (np.diff(places) > 0).all()
    assert math.isclose(places[0], np.clip(places[0], x[0], x[-1]))
    assert y.min() <= medians.min() <= medians.max() <= y.max()


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 4, 5, 8, 40]), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_curve_says_a_time_of_none_among_the_measured_sizes(seed, count, is_of_means, is_wild):
    generator = np.random.default_rng(seed)
    size = (
        np.floor(10 ** generator.uniform(0, 7, count))
        if seed % 2
        else 10.0 * generator.integers(1, 20, count)
    )
    seconds = 10 ** generator.uniform(-6, -1, count)
    if not is_wild:
        seconds = 1e-9 * size ** generator.uniform(0.5, 2.5) * np.exp(generator.normal(0, 0.5, count))
    pieces = fit_curve(size, seconds, CurveOptions(fewest=3, is_of_means=is_of_means))
    begins = [math.floor(piece.low) + 1 for piece in pieces]
    asked = np.unique(np.concatenate([size, begins]))
    asked = asked[(asked >= size.min()) & (asked <= size.max())]
    assert (predict(pieces, asked) > 0).all()
    assert (predict(envelope(size, seconds, pieces), asked) > 0).all()


def test_three_costs_that_a_line_would_put_below_zero_are_a_power_law():
    size, seconds = np.array([20.0, 30.0, 110.0]), np.array([3.7e-3, 6.8e-6, 9.5e-5])
    (piece,) = fit_curve(size, seconds, CurveOptions(fewest=3))
    assert piece.kind in {"power", "constant"}
    assert piece.at(20) > 0
