"""A noise as a table of quantiles, and how heavy its tail is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

POINTS: Final = 401
"""Quantiles of a table, at equidistant probabilities from 0 to 1."""

TAIL: Final = 0.02
"""Share of the largest values that make the tail."""

_FEWEST: Final = 10


def quantile_table(values: ArrayLike, points: int = POINTS) -> tuple[float, ...]:
    """Give quantiles at equidistant probabilities from 0 to 1 (type 7), ascending.

    Parameters
    ----------
    values : array_like
        Shape (n,), n >= 1, finite.

    Examples
    --------
    >>> quantile_table([3.0, 1.0, 2.0], 5)
    (1.0, 1.5, 2.0, 2.5, 3.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    return tuple(np.quantile(sample, np.linspace(0.0, 1.0, points)).tolist())


def hill_index(values: ArrayLike, share: float = TAIL) -> float | None:
    """Estimate the exponent of the tail P(X > x) ~ x^-index; smaller is heavier.

    Parameters
    ----------
    values : array_like
        Shape (n,), positive.
    share : float
        Part of the values in the tail, in (0, 1).

    Returns
    -------
    float or None
        ``None`` where the tail has fewer than 10 values, or they are all the same.

    References
    ----------
    .. [1] Hill (1975), Ann. Statist. 3, eq. 2.3.

    Examples
    --------
    >>> round(hill_index((1 - np.arange(20_000) / 20_000) ** (-1 / 2.5)), 1)
    2.5
    """
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    count = int(share * ascending.size)
    if count < _FEWEST:
        return None
    logs = np.log(ascending[-count - 1 :])
    mean = float(np.mean(logs[1:] - logs[0]))
    return 1.0 / mean if mean > 0 and math.isfinite(mean) else None


def kolmogorov_distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Give the largest distance of two empirical distribution functions, in [0, 1].

    Examples
    --------
    >>> kolmogorov_distance(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.5
    """
    one, two = np.sort(first), np.sort(second)
    at = np.concatenate([one, two])
    shares = [np.searchsorted(each, at, side="right") / each.size for each in (one, two)]
    return float(np.max(np.abs(shares[0] - shares[1])))
