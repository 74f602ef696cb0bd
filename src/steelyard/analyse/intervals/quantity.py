"""Statistics by the names a caller gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.bootstrap import MAD_SCALE
from steelyard.analyse.intervals.describe import harrell_davis, mad, mean, quantile, standard_deviation
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

TRIM_SHARE: Final = 0.2
"""Share cut at each end of a trimmed mean unless another is named (Wilcox, "Introduction to Robust
Estimation", 2017, section 3.3)."""

StatisticName = str | tuple[str, float] | tuple[str, float, float]


class Kind(StrEnum):
    """What a statistic speaks of; procedures are chosen by it."""

    MEAN = "mean"
    TRIMMED = "trimmed mean"
    QUANTILE = "quantile"
    SMOOTH_QUANTILE = "weighted quantile"
    ROBUST_SPREAD = "robust spread"
    MOMENT_SPREAD = "moment spread"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A statistic as the native kernels know it.

    Parameters
    ----------
    name : str
        For texts.
    kind : Kind
        What it speaks of.
    kernel : str
        Its name there.
    parameters : tuple of float
        Probabilities (in (0, 1), ascending) or the trimmed share.
    factor : float
        What the kernel's value is multiplied with.
    """

    name: str
    kind: Kind
    kernel: str
    parameters: tuple[float, ...] = ()
    factor: float = 1.0

    @property
    def is_location(self) -> bool:
        """Whether a mean of its values over runs says where the values lie."""
        return self.kind in {Kind.MEAN, Kind.TRIMMED, Kind.SHIFT} or self.is_median

    @property
    def is_median(self) -> bool:
        """Whether it is the median, plain or weighted."""
        return self.kind in {Kind.QUANTILE, Kind.SMOOTH_QUANTILE} and self.parameters == (0.5,)

    @property
    def is_moment(self) -> bool:
        """Whether a few far values can move it at will."""
        return self.kind in {Kind.MEAN, Kind.MOMENT_SPREAD}

    def of(self, values: NDArray[np.float64]) -> float:
        """Give the statistic of one sample; not a number where it is not defined."""
        return _FUNCTIONS[self.kernel](values, *self.parameters)


_PLAIN: Final = {
    "mean": Quantity("mean", Kind.MEAN, "mean"),
    "sd": Quantity("sd", Kind.MOMENT_SPREAD, "sd"),
    "cv": Quantity("cv", Kind.MOMENT_SPREAD, "cv"),
    "median": Quantity("median", Kind.QUANTILE, "quantile", (0.5,)),
    "iqr": Quantity("iqr", Kind.ROBUST_SPREAD, "range", (0.25, 0.75)),
    "mad": Quantity("mad", Kind.ROBUST_SPREAD, "mad", (), MAD_SCALE),
    "trimmed_mean": Quantity(f"trimmed_mean({TRIM_SHARE})", Kind.TRIMMED, "trimmed_mean", (TRIM_SHARE,)),
    "shift": Quantity("shift", Kind.SHIFT, "mean"),
}
_ALLOWED: Final = (
    ", ".join(f'"{name}"' for name in _PLAIN)
    + ', ("quantile", p), ("harrell_davis", p), ("trimmed_mean", share), ("quantile_ratio", p_over, p_under)'
)


def quantity_of(statistic: object) -> Quantity:
    """Read a statistic as callers write it.

    Parameters
    ----------
    statistic : str or tuple
        A name, or a name with its probability or share.

    Raises
    ------
    UsageError
        If there is no such statistic, or its parameter lies outside its range.

    Examples
    --------
    >>> quantity_of(("quantile", 0.99)).name
    'quantile(0.99)'
    """
    if isinstance(statistic, str) and statistic in _PLAIN:
        return _PLAIN[statistic]
    match statistic:
        case ("quantile", float(p)) if 0 < p < 1:
            return Quantity(f"quantile({p:g})", Kind.QUANTILE, "quantile", (p,))
        case ("harrell_davis", float(p)) if 0 < p < 1:
            return Quantity(f"harrell_davis({p:g})", Kind.SMOOTH_QUANTILE, "harrell_davis", (p,))
        case ("trimmed_mean", (float() | int()) as share) if 0 <= share < 0.5:  # noqa: PLR2004
            return Quantity(f"trimmed_mean({share:g})", Kind.TRIMMED, "trimmed_mean", (float(share),))
        case ("quantile_ratio", float(over), float(under)) if 0 < over < 1 and 0 < under < 1:
            name = f"quantile_ratio({over:g}, {under:g})"
            return Quantity(name, Kind.ROBUST_SPREAD, "quantile_ratio", (under, over))
    message = f"there is no statistic {statistic!r}; allowed: {_ALLOWED}"
    raise UsageError(message, hint="probabilities lie between 0 and 1, shares between 0 and 0.5")


def trimmed_mean(values: NDArray[np.float64], share: float) -> float:
    """Give the mean without a share of the values at each end, rounded down to whole values.

    Examples
    --------
    >>> trimmed_mean(np.array([1.0, 2.0, 4.0, 8.0, 100.0]), 0.2)
    4.666666666666667
    """
    cut = math.floor(values.size * share)
    return mean(np.sort(values)[cut : values.size - cut])


def _over(above: float, below: float) -> float:
    """Give the quotient; not a number over 0."""
    return above / below if below else math.nan


_FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "mean": mean,
    "sd": standard_deviation,
    "cv": lambda values: _over(standard_deviation(values), mean(values)),
    "quantile": quantile,
    "harrell_davis": harrell_davis,
    "range": lambda values, low, high: quantile(values, high) - quantile(values, low),
    "quantile_ratio": lambda values, under, over: _over(quantile(values, over), quantile(values, under)),
    "mad": mad,
    "trimmed_mean": trimmed_mean,
}


def trimmed_error(values: NDArray[np.float64], share: float) -> tuple[float, float]:
    """Give the standard error of a trimmed mean and its degrees of freedom.

    References
    ----------
    .. [1] Yuen (1974), Biometrika 61: squares about the winsorised mean over h (h - 1), h - 1 degrees of
       freedom, for h values left.

    Examples
    --------
    >>> trimmed_error(np.arange(10.0), 0.2)[1]
    5.0
    """
    cut = math.floor(values.size * share)
    ascending = np.sort(values)
    left = values.size - 2 * cut
    winsorised = np.clip(ascending, ascending[cut], ascending[values.size - cut - 1])
    squares = standard_deviation(winsorised) ** 2 * (values.size - 1)
    freedom = max(left - 1, 1)
    return math.sqrt(squares / (left * freedom)), float(freedom)
