"""Residuals, leverages and influences on demand."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.linear.model import linear_model
from steelyard.errors import AnalysisError


def test_rows_are_those_of_the_fit() -> None:
    x, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 2.0, 3.0, 7.0])
    model = linear_model(x, y)
    np.testing.assert_allclose(model.residuals, [-1, 1, -2, 2], rtol=1e-12)
    np.testing.assert_allclose(model.fitted, [1, 1, 5, 5], rtol=1e-12)
    np.testing.assert_allclose(model.leverage, 0.5, rtol=1e-12)
    np.testing.assert_allclose(model.cook, [0.2, 0.2, 0.8, 0.8], rtol=1e-12)
    np.testing.assert_allclose(model.residual_quartiles, [-2, -1.25, 0, 1.25, 2], atol=1e-12)
    assert model.residuals is model.residuals


@pytest.mark.parametrize("columns", [1, 2])
def test_data_that_changed_since_the_fit_are_noticed(columns: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(columns, 50)), rng.normal(size=50)
    names = ("a", "b")[:columns]
    model = linear_model(x, y, names=(*names, "y"))
    y[17] += 1
    with pytest.raises(AnalysisError, match="changed after the model was fitted") as caught:
        _ = model.residuals
    assert "copies" in str(caught.value.hint)


def test_a_stride_makes_no_difference() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=200), rng.normal(size=200)
    every_other = linear_model(x[::2], y[::2])
    copied = linear_model(x[::2].copy(), y[::2].copy())
    assert every_other.coefficients.tolist() == copied.coefficients.tolist()
    assert every_other.residuals.tolist() == copied.residuals.tolist()
