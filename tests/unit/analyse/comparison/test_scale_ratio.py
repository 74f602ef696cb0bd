from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.comparison.scale_ratio import deviations, scale_ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Sample = Callable[[np.random.Generator, int], NDArray[np.float64]]

STUDIES = 150
ALLOWED = 0.05 + 2.33 * (0.05 * 0.95 / STUDIES) ** 0.5


def normal(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.standard_normal(size)


def outlying(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.standard_normal(size) * np.where(rng.random(size) < 0.02, 10, 1)


def heavy(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.standard_t(3, size)


@pytest.mark.parametrize("sample", [normal, outlying, heavy])
def test_the_interval_misses_the_ratio_as_rarely_as_it_says(sample: Sample) -> None:
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(STUDIES):
        found = scale_ratio(
            deviations([3 * sample(rng, 40)]),
            deviations([sample(rng, 7), sample(rng, 7)]),
            0.95,
            rng,
        )
        missed += not found.low <= 3 <= found.high
    assert missed / STUDIES <= ALLOWED


def test_a_planted_ratio_is_found() -> None:
    rng = np.random.default_rng(2)
    found = scale_ratio(4 * rng.standard_normal(80), rng.standard_normal(20), 0.95, rng)
    assert found.is_known
    assert 1 < found.low < found.ratio < found.high < 10
    turned = scale_ratio(rng.standard_normal(20), 4 * rng.standard_normal(80), 0.95, rng)
    assert 0.1 < turned.low < turned.ratio < turned.high < 1


@pytest.mark.parametrize(("first", "second"), [(4, 40), (40, 4), (0, 0)])
def test_too_few_values_have_no_interval(first: int, second: int) -> None:
    rng = np.random.default_rng(1)
    found = scale_ratio(rng.standard_normal(first), rng.standard_normal(second), 0.95, rng)
    assert not found.is_known


def test_values_without_scatter_have_no_interval() -> None:
    rng = np.random.default_rng(1)
    assert not scale_ratio(np.zeros(20), rng.standard_normal(20), 0.95, rng).is_known
    assert not scale_ratio(rng.standard_normal(20), np.zeros(20), 0.95, rng).is_known


def test_distances_from_the_middle_of_a_group_are_as_large_as_from_a_known_place() -> None:
    rng = np.random.default_rng(3)
    groups = [rng.standard_normal(2) + 100 * group for group in range(4000)]
    assert float((deviations(groups) ** 2).mean()) == pytest.approx(1, abs=0.05)
