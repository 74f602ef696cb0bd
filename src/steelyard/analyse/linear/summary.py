"""The text of a linear model as R's `print(summary(lm))` writes it, character by character."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.linear.coefficient_table import coefficient_table
from steelyard.analyse.linear.r_format import (
    format_common,
    format_general,
    format_p_values,
    named_vector,
    round_significant,
    zap_small,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analyse.linear.model import LinearModel

_DIGITS = 4
_FEW_DF = 5
_QUARTILES = ("Min", "1Q", "Median", "3Q", "Max")


def summary_text(model: LinearModel, call: str | None = None) -> str:
    """Give the summary; `call` stands under ``Call:``, the formula by default."""
    lines = ["", "Call:", call if call is not None else f"lm(formula = {model.formula})", ""]
    return "\n".join([*lines, *_residuals(model), *_coefficients(model), *_quality(model), "", ""])


def _residuals(model: LinearModel) -> Iterator[str]:
    yield "Residuals:"
    if model.residual_df > _FEW_DF:
        quartiles = model.residual_quartiles.tolist()
        yield from named_vector(_QUARTILES, zap_small(quartiles, _DIGITS + 1), _DIGITS)
    elif model.residual_df > 0:
        labels = model.labels or tuple(str(number + 1) for number in range(model.count))
        yield from named_vector(labels, model.residuals.tolist(), _DIGITS)
    else:
        yield f"ALL {model.rank} residuals are 0: no residual degrees of freedom!"


def _coefficients(model: LinearModel) -> Iterator[str]:
    missing = int(np.isnan(model.coefficients).sum())
    yield ""
    yield f"Coefficients: ({missing} not defined because of singularities)" if missing else "Coefficients:"
    columns = (model.coefficients, model.standard_errors, model.t_values, model.p_values)
    yield from coefficient_table(
        model.terms, [(float(a), float(b), float(c), float(d)) for a, b, c, d in zip(*columns, strict=True)]
    )


def _quality(model: LinearModel) -> Iterator[str]:
    sigma = format_common([round_significant(model.sigma, _DIGITS)])[0]
    yield ""
    yield f"Residual standard error: {sigma} on {model.residual_df} degrees of freedom"
    if math.isnan(model.f_statistic) and model.f_df == 0:
        return
    r_squared = format_general(model.r_squared, _DIGITS)
    adjusted = format_general(model.adjusted_r_squared, _DIGITS)
    yield f"Multiple R-squared:  {r_squared},\tAdjusted R-squared:  {adjusted} "
    statistic = format_general(model.f_statistic, _DIGITS)
    p_value = format_p_values([model.f_p_value], _DIGITS)[0]
    yield f"F-statistic: {statistic} on {model.f_df} and {model.residual_df} DF,  p-value: {p_value}"
