from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.comparison.pooling import pooled
from steelyard.errors import AnalysisError


def test_weights_are_inverse_variances() -> None:
    found = pooled([0.0, 1.0], [1.0, 2.0], is_random=False)
    assert found.weights == pytest.approx((0.8, 0.2))
    assert found.place == pytest.approx(0.2)
    assert found.standard_error == pytest.approx(math.sqrt(0.8))
    assert found.p_disagreement == pytest.approx(stats.chi2.sf(0.2, 1))


def test_one_value_is_itself() -> None:
    found = pooled([0.3], [0.1], is_random=True)
    assert (found.place, found.p_disagreement) == (0.3, 1.0)
    assert found.standard_error == pytest.approx(0.1)
    assert found.limits(0.025) == pytest.approx((0.3 - 0.196, 0.3 + 0.196), abs=1e-4)


def test_three_hosts_that_differ_have_their_own_scatter() -> None:
    """The BCG trials, as R's metafor gives them: rma(yi, vi, method = "PM", test = "knha")."""
    # SOURCE: Colditz et al. (1994), JAMA 271: log risk ratios and variances of 13 trials, `dat.bcg`.
    places = [
        *(-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209),
        *(0.0120, -0.4694, -1.3713, -0.3394, 0.4459, -0.0173),
    ]
    variances = [
        *(0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230),
        *(0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714),
    ]
    found = pooled(places, np.sqrt(variances).tolist(), is_random=True)
    assert found.between_sd**2 == pytest.approx(0.318, abs=0.002)
    assert found.place == pytest.approx(-0.715, abs=0.002)
    assert found.degrees == 12
    assert found.limits(0.025) == pytest.approx((-1.11, -0.32), abs=0.02)
    assert found.p_disagreement < 1e-20


def test_hosts_that_agree_too_well_are_no_surer_than_their_errors() -> None:
    found = pooled([0.1, 0.1, 0.1], [0.03, 0.03, 0.03], is_random=True)
    assert found.standard_error == pytest.approx(0.03 / math.sqrt(3))
    assert found.between_sd == 0.0


@pytest.mark.parametrize(("places", "errors"), [([], []), ([1.0], [0.0]), ([math.nan], [1.0])])
def test_what_has_no_error_is_refused(places: list[float], errors: list[float]) -> None:
    with pytest.raises(AnalysisError, match="each needs a value and an error above 0"):
        pooled(places, errors, is_random=True)
