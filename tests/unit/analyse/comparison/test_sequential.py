from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison import sequential
from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.sequential import Design, Location, SequentialComparison, fixed_look
from steelyard.errors import AnalysisError


def series(shift: float, sd: float, size: int, seed: int = 1) -> np.ndarray:
    return shift + sd * np.random.default_rng(seed).standard_normal(size)


@pytest.mark.parametrize("location", list(Location))
@pytest.mark.parametrize(
    ("shift", "sd", "expected"),
    [
        (0.5, 0.05, Verdict.SLOWER),
        (-0.5, 0.05, Verdict.FASTER),
        (0.0, 0.005, Verdict.EQUIVALENT),
        (0.005, 0.002, Verdict.EQUIVALENT),
        (0.0, 0.3, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts(location: Location, shift: float, sd: float, expected: Verdict) -> None:
    found = SequentialComparison(Design(statistic=location)).look(series(shift, sd, 20), 0.5)
    assert found.verdict is expected
    assert found.low <= found.ratio <= found.high
    assert found.low <= found.narrow[0] <= found.narrow[1] <= found.high
    assert found.is_settled == (expected is not Verdict.INCONCLUSIVE)


def test_one_look_at_everything_is_the_t_interval() -> None:
    sample = series(0.01, 0.02, 15)
    found = fixed_look(Design(statistic=Location.MEAN), sample)
    expected = stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((expected.low, expected.high))
    grown = SequentialComparison(Design(statistic=Location.MEAN)).look(sample, 1.0)
    assert (grown.low, grown.high) == pytest.approx((found.low, found.high), rel=1e-9)


def test_looking_often_costs_width() -> None:
    sample = series(0.0, 0.05, 40)
    comparison = SequentialComparison(Design())
    for size in range(10, 40, 5):
        comparison.look(sample[:size], size / 40)
    last, alone = comparison.look(sample, 1.0), fixed_look(Design(), sample)
    assert last.low < alone.low < alone.high < last.high


def test_a_family_costs_width() -> None:
    sample = series(0.0, 0.05, 40)
    one, many = fixed_look(Design(), sample), fixed_look(Design(family=5), sample)
    assert many.low < one.low < one.high < many.high


def test_outliers_move_the_mean_and_not_the_typical_value() -> None:
    sample = np.r_[series(0.0, 0.002, 28), 1.0, 1.5]
    assert fixed_look(Design(), sample).verdict is Verdict.EQUIVALENT
    assert fixed_look(Design(statistic=Location.MEAN), sample).verdict is Verdict.INCONCLUSIVE
    assert fixed_look(Design(), sample).mean_ratio > 1.05


def test_a_difference_is_settled_when_its_size_is_known_beside_the_margin() -> None:
    surely_slower = fixed_look(Design(), series(0.03, 0.05, 30))
    assert surely_slower.verdict is Verdict.SLOWER
    assert not surely_slower.is_settled
    assert surely_slower.further_blocks is not None
    assert fixed_look(Design(Margin(0.2)), series(0.5, 0.2, 30)).is_settled, "beyond the margin for sure"


def test_the_advice_settles_it() -> None:
    sample = series(0.0, 0.1, 30)
    found = fixed_look(Design(), sample)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.further_blocks is not None
    more = 30 + round(1.3 * found.further_blocks)
    assert fixed_look(Design(), np.resize(sample, more)).is_settled


@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_few_blocks_allow_no_claim(size: int) -> None:
    for location in Location:
        found = SequentialComparison(Design(statistic=location)).look(np.full(size, 0.3), 1.0)
        assert found.verdict in {Verdict.NA, Verdict.DESCRIPTIVE}
        assert not found.is_settled


def test_values_without_spread_get_a_clear_answer() -> None:
    for location in Location:
        assert fixed_look(Design(statistic=location), np.zeros(12)).verdict is Verdict.EQUIVALENT
        assert fixed_look(Design(statistic=location), np.full(12, 0.1)).verdict is Verdict.SLOWER


def test_a_look_needs_new_blocks() -> None:
    comparison = SequentialComparison(Design())
    comparison.look(np.zeros(10), 0.1)
    with pytest.raises(AnalysisError):
        comparison.look(np.zeros(10), 0.2)


def test_a_look_that_is_interrupted_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    values = series(0.1, 0.05, 20)
    whole, broken = SequentialComparison(Design()), SequentialComparison(Design())
    whole.look(values[:10], 0.1)
    broken.look(values[:10], 0.1)

    def interrupt(*_: object) -> list[float]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sequential, "crossing_bounds", interrupt)
        with pytest.raises(KeyboardInterrupt):
            broken.look(values, 0.2)
    assert broken.look(values, 0.3) == whole.look(values, 0.3)
    assert broken.looks == whole.looks


def test_where_there_is_no_interval_the_advice_is_the_first_number_that_has_one() -> None:
    for location in Location:
        found = fixed_look(Design(statistic=location), np.full(1, 0.3))
        assert found.further_blocks is not None
        more = fixed_look(Design(statistic=location), np.full(1 + found.further_blocks, 0.3))
        assert math.isfinite(more.high)
        assert math.isinf(fixed_look(Design(statistic=location), np.full(1, 0.3)).high)
