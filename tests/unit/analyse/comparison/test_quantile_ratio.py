from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.quantile_ratio import (
    Quantile,
    fewest_blocks,
    has_unlike_spells,
    quantile_of,
    quantile_ratio_interval,
)
from steelyard.analyse.comparison.sequential import Design, SequentialComparison, fixed_look
from steelyard.errors import UsageError


def pairs(size: int, factor: float = 1.0, seed: int = 1) -> np.ndarray:
    return np.exp(0.1 * np.random.default_rng(seed).standard_normal((size, 2))) * [1.0, factor]


@pytest.mark.parametrize(("text", "name"), [("median", "median"), ("p50", "median"), ("p99.9", "p99.9")])
def test_a_quantile_is_read_by_its_name(text: str, name: str) -> None:
    assert str(Quantile.parse(text)) == name


@pytest.mark.parametrize(
    "text", ["", "p", "p0", "p100", "p-5", "95", "P95", "p1e1", "pnan", "p95%", "p\u0669\u0665"]
)
def test_what_is_no_quantile_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UsageError, match=r"allowed: `typical`, `mean`, `median`, and `p1` to `p99\.99`"):
        Quantile.parse(text)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95, 0.99])
def test_so_many_blocks_have_limits_and_one_less_has_none(share: float) -> None:
    fewest = fewest_blocks(share, 0.025)
    assert all(map(math.isfinite, quantile_ratio_interval(pairs(fewest), share, 0.025)))
    assert quantile_ratio_interval(pairs(fewest - 1), share, 0.025) == (-math.inf, math.inf)


def test_a_share_that_is_no_binary_number_gives_its_own_rank() -> None:
    values = np.arange(1.0, 101.0)
    assert [quantile_of(values, share) for share in (0.07, 0.5, 0.95, 0.99)] == [7, 50, 95, 99]


def test_the_interval_moves_with_a_factor_and_turns_with_the_sides() -> None:
    sample = pairs(200)
    low, high = quantile_ratio_interval(sample, 0.95, 0.025)
    moved = quantile_ratio_interval(sample * [1.0, 2.0], 0.95, 0.025)
    assert np.allclose(np.array(moved) - math.log(2.0), [low, high], atol=1e-7)
    assert np.allclose(quantile_ratio_interval(sample[:, ::-1], 0.95, 0.025), [-high, -low], atol=1e-7)
    assert (
        low
        < math.log(quantile_of(np.sort(sample[:, 1]), 0.95) / quantile_of(np.sort(sample[:, 0]), 0.95))
        < high
    )


def test_equal_sides_at_their_quantile_are_fewer_runs_apart_where_blocks_share_a_drift() -> None:
    """Both intervals are narrow beside the spread of the drift."""
    rng = np.random.default_rng(3)
    sample = np.exp(np.linspace(0, 1, 300)[:, None] + 0.01 * rng.standard_normal((300, 2)))
    low, high = quantile_ratio_interval(sample, 0.5, 0.025)
    alone = stats.mstats.hdquantiles_sd(np.log(sample[:, 0]), [0.5])[0]
    assert high - low < 2 * 1.96 * math.sqrt(2) * alone / 1.3
    assert low < 0 < high


def test_ties_have_limits_and_hold_the_ratio_one() -> None:
    rng = np.random.default_rng(5)
    ticks = np.round(rng.normal(20, 1.5, (500, 2)))
    low, high = quantile_ratio_interval(ticks, 0.95, 0.025)
    assert -0.2 < low <= 0 <= high < 0.2


def test_constant_values_have_no_spread() -> None:
    low, high = quantile_ratio_interval(np.full((80, 2), 7.0), 0.95, 0.025)
    assert abs(low) < 1e-7
    assert abs(high) < 1e-7


def test_the_first_look_has_limits_whenever_it_is_the_first() -> None:
    for most in (80, 200, 5000):
        design = Design(statistic=Quantile(95))
        size = design.first_look(most)
        assert math.isfinite(SequentialComparison(design).look(pairs(size), size / most).high)
        before = SequentialComparison(design).look(pairs(size - 1), (size - 1) / most)
        assert before.verdict is Verdict.DESCRIPTIVE
        assert before.further_blocks is not None
    assert Design(family=3, statistic=Quantile(95)).first_look(1000) > design.first_look(1000)
    assert Design().first_look(1000) == 1, "a location has limits by itself"


def test_too_few_runs_say_how_many_are_needed() -> None:
    found = fixed_look(Design(statistic=Quantile(99)), pairs(100))
    assert found.verdict is Verdict.DESCRIPTIVE
    assert found.further_blocks == 368 - 100
    assert fixed_look(Design(statistic=Quantile(99)), pairs(368)).verdict is not Verdict.DESCRIPTIVE


def test_spells_on_one_side_alone_are_told() -> None:
    rng = np.random.default_rng(7)
    is_busy = np.arange(400) // 40 % 2
    slow = (rng.random((400, 2)) < 0.2 * is_busy[:, None]) * rng.random((400, 2)) * [0.1, 3.0]
    spells = np.exp(0.01 * rng.standard_normal((400, 2)) + slow)
    assert has_unlike_spells(spells, 0.95, 0.025)
    assert not has_unlike_spells(rng.permutation(spells), 0.95, 0.025), "no spells"
    assert not has_unlike_spells(spells[:, [0, 0]], 0.95, 0.025), "the same shape"
    assert fixed_look(Design(statistic=Quantile(95)), spells).has_unlike_spells
