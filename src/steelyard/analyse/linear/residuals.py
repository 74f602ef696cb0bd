"""What the residuals of a model say: order, shape, influence and lack of fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.linear.model import LinearModel, linear_model
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

FOLDS: Final = 5
_FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Figures about the residuals of one model.

    Parameters
    ----------
    lag_1 : float
        Autocorrelation of neighbouring residuals in the order of the data; NaN where they do not vary.
    lag_1_limit : float
        Independent residuals stay within +- this 95 % of the time (2 / sqrt(n)).
    skewness, excess_kurtosis : float
        0 for normal residuals.
    normality_p : float
        Jarque-Bera test; NaN below 3 values. Small: the t and p values above rest on a wrong noise.
    largest_leverage, leverage_limit : float
        Largest influence of one x, and twice the average, above which it deserves a look.
    largest_cook : float
        Largest Cook's distance; above 1 one observation carries the fit.
    """

    lag_1: float
    lag_1_limit: float
    skewness: float
    excess_kurtosis: float
    normality_p: float
    largest_leverage: float
    leverage_limit: float
    largest_cook: float


def diagnose(model: LinearModel) -> Diagnostics:
    """Look at the residuals of a model in the order of its data.

    References
    ----------
    .. [1] Jarque & Bera (1987), eq. 2; it has 2 degrees of freedom, so that p = exp(-statistic / 2).
    """
    residuals = model.residuals
    count = residuals.size
    centred = residuals - residuals.mean()
    second = float(np.mean(centred**2))
    is_flat = count < _FEWEST or second == 0 or model.is_perfect
    skewness = math.nan if is_flat else float(np.mean(centred**3)) / second**1.5
    kurtosis = math.nan if is_flat else float(np.mean(centred**4)) / second**2 - 3.0
    statistic = count / 6.0 * (skewness**2 + kurtosis**2 / 4.0)
    cook = model.cook[np.isfinite(model.cook)]
    return Diagnostics(
        lag_1=math.nan if is_flat else float(_native.autocorrelation(residuals, 1)[1]),
        lag_1_limit=2.0 / math.sqrt(count),
        skewness=skewness,
        excess_kurtosis=kurtosis,
        normality_p=math.exp(-statistic / 2.0) if not math.isnan(statistic) else math.nan,
        largest_leverage=float(model.leverage.max()),
        leverage_limit=2.0 * model.rank / count,
        largest_cook=float(cook.max()) if cook.size else math.nan,
    )


@dataclass(frozen=True, slots=True)
class LackOfFit:
    """Whether the means at repeated x stray from the curve more than repetitions from their means.

    Parameters
    ----------
    f_statistic, p_value : float
        Small p: the curve has the wrong shape, whatever R2 says.
    df : tuple of int
        Of lack of fit, and of pure error.
    """

    f_statistic: float
    p_value: float
    df: tuple[int, int]


def lack_of_fit(x: Vector, model: LinearModel) -> LackOfFit | None:
    """Test the shape of a model against repeated x; ``None`` without repetitions.

    Parameters
    ----------
    x : ndarray
        Shape (n,), in the order of the model's data.
    model : LinearModel
        Of one column.

    References
    ----------
    .. [1] Draper & Smith (1998), Applied Regression Analysis, section 2.1.
    """
    _, inverse = np.unique(x, return_inverse=True)
    counts = np.bincount(inverse)
    pure_df, lack_df = x.size - counts.size, counts.size - model.rank
    if pure_df < 1 or lack_df < 1:
        return None
    means = np.bincount(inverse, weights=model.residuals) / counts
    pure = float(np.sum((model.residuals - means[inverse]) ** 2))
    lack = float(np.sum(counts * means**2))
    statistic = math.inf if pure == 0 else (lack / lack_df) / (pure / pure_df)
    return LackOfFit(statistic, _native.f_upper(statistic, lack_df, pure_df), (lack_df, pure_df))


@dataclass(frozen=True, slots=True)
class Rival:
    """One kind of model on one piece.

    Parameters
    ----------
    kind : str
        ``constant``, ``line`` or ``power``.
    relative_error : float
        Root mean square of prediction over truth minus 1, each fifth of the data predicted from the others.
    bic : float
        Bayesian information criterion of the relative residuals; the smallest wins, differences count.
    """

    kind: str
    relative_error: float
    bic: float


def rivals(x: Vector, y: Vector) -> tuple[Rival, ...]:
    """Compare constant, line and power law on positive data, out of sample and by a criterion.

    Every fifth row (0, 5, 10, ...; then 1, 6, 11, ...) is left out in turn, which needs no random
    numbers. Each model is judged on shares of the truth, so that plain and logarithmic fits are
    comparable; lines and constants are fitted with weights 1 / y^2 for the same reason.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), positive, n >= 10.

    Returns
    -------
    tuple of Rival
        The best out of sample first; empty for fewer values, values that are not positive, or one distinct x.
    """
    if x.size < 2 * FOLDS or min(x.min(), y.min()) <= 0 or np.unique(x).size < _FEWEST:
        return ()
    found = []
    for kind, parameters in (("constant", 1), ("line", 2), ("power", 2)):
        errors = np.empty_like(y)
        try:
            for fold in range(FOLDS):
                out = np.arange(y.size) % FOLDS == fold
                errors[out] = _predict(kind, x[~out], y[~out], x[out]) / y[out] - 1.0
            inside = float(np.sum((_predict(kind, x, y, x) / y - 1.0) ** 2))
        except AnalysisError:
            continue
        bic = y.size * math.log(max(inside, 1e-300) / y.size) + parameters * math.log(y.size)
        found.append(Rival(kind, float(np.sqrt(np.mean(errors**2))), bic))
    return tuple(sorted(found, key=lambda rival: rival.relative_error))


def _predict(kind: str, x: Vector, y: Vector, at: Vector) -> Vector:
    if kind == "power":
        return linear_model(x, y, log=True).predict(at)
    # Rows over y: least squares of shares.
    columns = [1.0 / y] if kind == "constant" else [1.0 / y, x / y]
    model = linear_model(
        np.array(columns), np.ones_like(y), names=(*"ab"[: len(columns)], "y"), intercept=False
    )
    slope = float(model.coefficients[1]) if kind == "line" else 0.0
    return np.asarray(float(model.coefficients[0]) + slope * at)
