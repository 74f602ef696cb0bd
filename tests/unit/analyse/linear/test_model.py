from __future__ import annotations

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from steelyard.analyse.linear.model import linear_model
from steelyard.analyse.linear.residuals import diagnose, lack_of_fit, rivals
from steelyard.errors import AnalysisError

X = np.array([1.0, 2.0, 4.0, 7.0, 11.0, 17.0, 30.0, 9.5])
Y = np.array([3.1, 2.2, 7.9, 8.1, 9.9, 20.1, 31.5, 8.0])

# R 4.2.2: summary(lm(y ~ 1)), summary(lm(y ~ 0 + x)), summary(lm(y ~ x + I(2 * x))), two points.
CONSTANT = """
Residuals:
   Min     1Q Median     3Q    Max 
 -9.15  -4.65  -3.30   1.10  20.15 

Coefficients:
            Estimate Std. Error t value Pr(>|t|)  
(Intercept)   11.350      3.459   3.281   0.0135 *
"""  # noqa: W291
ORIGIN = """
Residual standard error: 2.062 on 7 degrees of freedom
Multiple R-squared:  0.9825,\tAdjusted R-squared:   0.98 
F-statistic: 392.9 on 1 and 7 DF,  p-value: 2.079e-07
"""  # noqa: W291
ALIASED = """
Coefficients: (1 not defined because of singularities)
            Estimate Std. Error t value Pr(>|t|)    
(Intercept)  1.12420    1.10193    1.02    0.347    
x            1.00376    0.08128   12.35 1.72e-05 ***
twice             NA         NA      NA       NA    
"""  # noqa: W291
SATURATED = """
Residuals:
ALL 2 residuals are 0: no residual degrees of freedom!

Coefficients:
            Estimate Std. Error t value Pr(>|t|)
(Intercept)       -2        NaN     NaN      NaN
x                  1        NaN     NaN      NaN

Residual standard error: NaN on 0 degrees of freedom
Multiple R-squared:      1,\tAdjusted R-squared:    NaN 
F-statistic:   NaN on 1 and 0 DF,  p-value: NA
"""  # noqa: W291


def test_special_models_print_as_in_r() -> None:
    assert CONSTANT in linear_model(None, Y).summary()
    assert "F-statistic" not in linear_model(None, Y).summary()
    assert ORIGIN in linear_model(X, Y, intercept=False).summary()
    assert ALIASED in linear_model([X, 2 * X], Y, names=("x", "twice", "y")).summary()
    assert SATURATED in linear_model([3.0, 4.0], [1.0, 2.0]).summary()


def test_columns_of_other_libraries_give_the_same() -> None:
    plain = linear_model(X, Y).coefficients
    assert linear_model(pl.Series(X), pl.Series(Y)).coefficients.tolist() == plain.tolist()
    assert linear_model(pa.chunked_array([X]), pa.array(Y)).coefficients.tolist() == plain.tolist()


def test_a_power_law_predicts_on_the_plain_scale() -> None:
    model = linear_model(X, 3.0 * X**0.5, log=True, names=("size", "time"))
    assert model.terms == ("(Intercept)", "log10(size)")
    assert model.predict([4.0, 100.0]) == pytest.approx([6.0, 30.0])
    assert model.is_perfect


@pytest.mark.parametrize(
    ("x", "y", "log", "words"),
    [
        ([1.0, 2.0], [1.0], False, "2 values, but 1"),
        ([1.0, math.nan], [1.0, 2.0], False, "not finite"),
        ([0.0, 1.0], [1.0, 2.0], True, "no logarithm"),
        ([], [], False, "at least 1"),
        ([1e300, -1e300, 1e299], [1.0, 2.0, 1e300], False, "too large"),
    ],
)
def test_impossible_models_say_why(x: list[float], y: list[float], log: bool, words: str) -> None:  # noqa: FBT001
    with pytest.raises(AnalysisError, match=words):
        linear_model(x, y, log=log)


def test_lack_of_fit_by_hand() -> None:
    # Means 1, 4, 1 around a flat line at 2: lack = 2 (1 + 4 + 1) = 12 on 1, pure = 6 / 4 on 3.
    x = np.array([1.0, 1, 2, 2, 3, 3])
    y = np.array([0.5, 1.5, 3.5, 4.5, 0.5, 1.5])
    found = lack_of_fit(x, linear_model(x, y))
    assert found is not None
    assert found.df == (1, 3)
    assert found.f_statistic == pytest.approx(12.0 / 1.5 * 3)
    assert lack_of_fit(np.arange(6.0), linear_model(np.arange(6.0), y)) is None


def test_the_right_kind_predicts_best() -> None:
    generator = np.random.default_rng(3)
    x = 10 ** generator.uniform(2, 6, 300)
    noise = 1 + 0.05 * generator.normal(size=300)
    assert rivals(x, 2.0 * x**0.6 * noise)[0].kind == "power"
    assert rivals(x, (900.0 + 0.01 * x) * noise)[0].kind == "line"
    assert rivals(x[:5], x[:5]) == ()


def test_residuals_are_judged() -> None:
    generator = np.random.default_rng(4)
    x = np.arange(400.0)
    skewed = diagnose(linear_model(x, x + generator.exponential(5.0, 400)))
    assert skewed.normality_p < 1e-6 < abs(skewed.lag_1_limit)
    trend = diagnose(linear_model(x, np.cumsum(generator.normal(size=400))))
    assert trend.lag_1 > trend.lag_1_limit
    assert math.isnan(diagnose(linear_model([1.0, 2.0], [1.0, 2.0])).normality_p)
