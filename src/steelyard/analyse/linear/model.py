"""Linear models: ordinary least squares with everything R's `summary(lm)` says, and robust errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.noise import noise_around
from steelyard.analyse.linear.coefficient_table import coefficient_table
from steelyard.analyse.linear.deviations import CurveKind
from steelyard.analyse.linear.r_format import (
    format_common,
    format_general,
    format_p_values,
    named_vector,
    round_significant,
    zap_small,
)
from steelyard.analyse.linear.rows import LinearRows
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from steelyard.analyse.cost_curve.noise import NoiseModel

    Vector = NDArray[np.float64]

_DIGITS = 4
_FEW_DF = 5
_QUARTILES = ("Min", "1Q", "Median", "3Q", "Max")


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """A fitted linear model.

    Parameters
    ----------
    response : str
        Name of the response, as in a formula.
    terms : tuple of str
        Names of the coefficients, ``(Intercept)`` first where it was fitted.
    coefficients, standard_errors, hc3_errors : ndarray
        Shape (n_terms,); not a number for a column that others determine. Unit: response over column.
    cluster_errors : ndarray or None
        CR1 standard errors, where clusters were given.
    sigma : float
        Residual standard error, in the unit of the response; NaN without degrees of freedom.
    residual_df, rank : int
        Residual degrees of freedom, and number of coefficients estimated.
    residual_sum : float
        Sum of squared residuals.
    r_squared, adjusted_r_squared : float
        As R computes them: around zero in a model without intercept.
    f_statistic : float
        Against the intercept alone; NaN where there is nothing else.
    f_df : int
        Its numerator degrees of freedom.
    residual_quartiles : ndarray
        Shape (5,): smallest, quartiles (type 7) and largest residual.
    fitted_square : float
        Mean of the squares of the fitted values.
    rows : LinearRows
        What the model says of each observation, computed when it is first asked for.
    labels : tuple of str
        Names of the observations.
    has_intercept, is_log : bool
        Whether a constant was fitted, and whether both sides are log10.
    """

    response: str
    terms: tuple[str, ...]
    coefficients: Vector
    standard_errors: Vector
    hc3_errors: Vector
    cluster_errors: Vector | None
    sigma: float
    residual_df: int
    rank: int
    residual_sum: float
    r_squared: float
    adjusted_r_squared: float
    f_statistic: float
    f_df: int
    residual_quartiles: Vector
    fitted_square: float
    rows: LinearRows
    labels: tuple[str, ...] | None
    has_intercept: bool
    is_log: bool

    @property
    def count(self) -> int:
        """Number of observations."""
        return self.rows.count

    @property
    def residuals(self) -> Vector:
        """Observed less fitted, shape (n,), in the order of the data."""
        return self.rows.values[0]

    @property
    def fitted(self) -> Vector:
        """Values of the model at the observations, shape (n,)."""
        return self.rows.fitted

    @property
    def leverage(self) -> Vector:
        """Diagonal of the hat matrix, shape (n,)."""
        return self.rows.values[1]

    @property
    def cook(self) -> Vector:
        """Cook's distance of each observation, shape (n,)."""
        return self.rows.values[2]

    @property
    def t_values(self) -> Vector:
        """Coefficients over their classical standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.coefficients / self.standard_errors)

    @property
    def p_values(self) -> Vector:
        """Two-sided p-values of the coefficients under normal noise."""
        return np.array([_native.student_two_sided(float(t), self.residual_df) for t in self.t_values])

    @property
    def f_p_value(self) -> float:
        """Upper tail probability of the F statistic under normal noise."""
        return _native.f_upper(self.f_statistic, self.f_df, self.residual_df)

    @property
    def formula(self) -> str:
        """The model as R writes it."""
        right = [term for term in self.terms if term != "(Intercept)"]
        if not self.has_intercept:
            right.append("0")
        return f"{self.response} ~ {' + '.join(right) or '1'}"

    @property
    def is_perfect(self) -> bool:
        """Whether the residuals are rounding noise, so that their statistics mean nothing (R's rule)."""
        return self.residual_df > 0 and self.sigma**2 < self.fitted_square * 1e-30

    def noise(self, *, seed: int = 0) -> NoiseModel:
        """Say which law the deviations from the fitted values follow, if any."""
        curve, values = self.fitted, self.fitted + self.residuals
        if self.is_log:
            curve, values = 10.0**curve, 10.0**values
        return noise_around(curve, values, kind=CurveKind.POWER if self.is_log else CurveKind.LINE, seed=seed)

    def predict(self, x: ArrayLike) -> Vector:
        """Give the model's values for a model of one column.

        Parameters
        ----------
        x : array_like
            Any shape, in the unit of the column (not its logarithm).

        Returns
        -------
        ndarray
            Same shape, in the unit of the response (not its logarithm).
        """
        values = np.asarray(x, dtype=np.float64)
        inner = np.log10(values) if self.is_log else values
        constant = float(self.coefficients[0]) if self.has_intercept else 0.0
        slope = float(self.coefficients[-1]) if len(self.terms) > self.has_intercept else 0.0
        linear = constant + slope * inner
        return np.asarray(10.0**linear if self.is_log else linear)

    def summary(self, call: str | None = None) -> str:
        """Print the model exactly as R's `summary(lm)` does.

        Parameters
        ----------
        call : str or None
            What stands under ``Call:``; the formula by default.
        """
        return summary_text(self, call)


def linear_model(  # noqa: PLR0913 - the options of a regression, keyword-only
    x: ArrayLike | Sequence[ArrayLike] | None,
    y: ArrayLike,
    *,
    log: bool = False,
    names: Sequence[str] = ("x", "y"),
    intercept: bool = True,
    clusters: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
) -> LinearModel:
    """Fit y on one or more columns by ordinary least squares.

    Parameters
    ----------
    x : array_like or None
        Shape (n,) for one column, (n_columns, n) for several; ``None`` fits a constant alone.
        NumPy, Arrow and Polars columns alike. Arrays of doubles are referred to, not copied.
    y : array_like
        Shape (n,), n >= 1, finite.
    log : bool
        Fit log10(y) on log10(x): a power law. Everything must be positive.
    names : sequence of str
        Names of the columns and, last, of the response.
    intercept : bool
        Whether a constant is fitted.
    clusters : array_like or None
        Shape (n,), integers: observations that share a disturbance (a run, a worker); gives
        cluster-robust errors.
    labels : sequence of str or None
        Names of the observations, shown where all residuals are; 1, 2, ... by default.

    Returns
    -------
    LinearModel

    Raises
    ------
    AnalysisError
        If a value is not finite, not positive with ``log``, lengths differ, or numbers overflow.

    References
    ----------
    .. [1] R 4.2, `lm` and `summary.lm`: definitions of every figure. Deviation: a column is left out as
           aliased later than R's tolerance 1e-7 does, because sums carry 106 bits.
    .. [2] MacKinnon & White (1985): HC3. Cameron & Miller (2015), eq. 11-12: cluster-robust errors.

    Examples
    --------
    >>> model = linear_model([1, 2, 3, 4, 5], [2.1, 3.9, 6.2, 7.8, 10.1])
    >>> model.coefficients.round(3).tolist()
    [0.05, 1.99]
    """
    response = _vector(y, names[-1])
    columns = _columns(x, response.size)
    column_names = list(names[:-1])[: len(columns)]
    if len(column_names) != len(columns):
        message = f"{len(columns)} columns are given, but {len(names) - 1} names for them"
        raise AnalysisError(message, hint="give one name per column and one for the response")
    if log:
        columns = [_log10(column, name) for column, name in zip(columns, column_names, strict=True)]
        response = _log10(response, names[-1])
        names = [f"log10({name})" for name in (*column_names, names[-1])]
        column_names = list(names[:-1])
    groups = None if clusters is None else np.ascontiguousarray(clusters, dtype=np.int64)
    found = _native.linear_model(columns, response, intercept=intercept, clusters=groups)
    if not math.isfinite(found["residual_sum"]):
        message = "the numbers are too large for their squares; rescale the columns"
        raise AnalysisError(message, hint="use another unit, e.g. microseconds for nanoseconds")
    f_statistic, f_df = found["f_statistic"] or (math.nan, 0)
    return LinearModel(
        response=names[-1],
        terms=(*(("(Intercept)",) if intercept else ()), *column_names),
        coefficients=found["coefficients"],
        standard_errors=found["standard_errors"],
        hc3_errors=found["hc3_errors"],
        cluster_errors=found["cluster_errors"],
        sigma=found["sigma"],
        residual_df=found["residual_df"],
        rank=found["rank"],
        residual_sum=found["residual_sum"],
        r_squared=found["r_squared"],
        adjusted_r_squared=found["adjusted_r_squared"],
        f_statistic=f_statistic,
        f_df=f_df,
        residual_quartiles=found["residual_quartiles"],
        fitted_square=found["fitted_square"],
        rows=LinearRows(columns, response, intercept=intercept, residual_sum=found["residual_sum"]),
        labels=None if labels is None else tuple(labels),
        has_intercept=intercept,
        is_log=log,
    )


def _vector(values: ArrayLike, name: str) -> Vector:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        message = f"`{name}` has {array.ndim} dimensions; allowed: 1"
        raise AnalysisError(message, hint="give one value per observation")
    return np.ascontiguousarray(array)


def _columns(x: ArrayLike | Sequence[ArrayLike] | None, count: int) -> list[Vector]:
    if x is None:
        return []
    array = np.asarray(x, dtype=np.float64)
    if array.ndim == 1:
        return [_vector(array, "x")]
    if array.ndim != 2 or array.shape[1] != count:  # noqa: PLR2004 - dimensions
        message = f"x has the shape {array.shape}; allowed: ({count},) or (number of columns, {count})"
        raise AnalysisError(message, hint="give one sequence per column")
    return [np.ascontiguousarray(row) for row in array]


def _log10(values: Vector, name: str) -> Vector:
    if values.size and not values.min() > 0:
        place = int(np.argmin(values))
        message = f"`{name}` has the value {values[place]:g} (number {place}, from 0), which has no logarithm"
        raise AnalysisError(message, hint="fit without the logarithm, or leave these rows out")
    return np.log10(values)


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
