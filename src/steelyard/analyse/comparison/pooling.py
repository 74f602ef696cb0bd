"""One answer from several measurements of one ratio, on one host or on several."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST_HOSTS: Final = 3
"""Two values say nothing of their scatter that an interval could rest on."""
_HALVINGS: Final = 200


@dataclass(frozen=True, slots=True)
class Pooled:
    """A common value.

    Parameters
    ----------
    place : float
        Weighted mean.
    standard_error : float
        Of it.
    degrees : float
        Degrees of freedom of Student's t; infinite where errors are taken for known.
    weights : tuple of float
        Of each value; they add up to 1.
    between_sd : float
        Standard deviation of the true values; 0 where it was not estimated.
    p_disagreement : float
        How often values with one true value would scatter as widely; 1 for a single one.
    """

    place: float
    standard_error: float
    degrees: float
    weights: tuple[float, ...]
    between_sd: float
    p_disagreement: float

    def limits(self, p_tail: float) -> tuple[float, float]:
        """Give the interval with an error on each side, in (0, 0.5)."""
        special = scipy.special
        quantile = (
            special.ndtri(p_tail) if math.isinf(self.degrees) else special.stdtrit(self.degrees, p_tail)
        )
        half = -float(quantile) * self.standard_error
        return self.place - half, self.place + half


def pooled(places: Sequence[float], errors: Sequence[float], *, is_random: bool) -> Pooled:
    """Pool independent estimates of one value.

    Parameters
    ----------
    places : sequence of float
        Estimates, at least one.
    errors : sequence of float
        Standard errors, positive.
    is_random : bool
        Whether the true values may differ, as those of hosts do, and the answer is about their mean. From
        three values on their variance is estimated (Paule and Mandel), and the interval is that of Hartung
        and Knapp, never narrower than with a common true value. Two are pooled as with one true value; look
        at `p_disagreement`.

    Raises
    ------
    AnalysisError
        If there is nothing to pool, or an error is not positive.

    References
    ----------
    .. [1] Cochran (1954), Biometrics 10: weights and the test of disagreement.
    .. [2] Paule & Mandel (1982), J. Res. Natl. Bur. Stand. 87: the variance between.
    .. [3] Hartung & Knapp (2001), Stat. Med. 20; Roever, Knapp & Friede (2015), BMC Med. Res. Methodol. 15:
       the factor is at least 1.

    Examples
    --------
    >>> found = pooled([0.02, 0.03, 0.04], [0.01, 0.01, 0.01], is_random=True)
    >>> round(found.place, 4), found.between_sd, found.degrees
    (0.03, 0.0, 2.0)
    """
    values, variances = np.array(places), np.array(errors) ** 2
    if not values.size or not (np.isfinite(values).all() and (variances > 0).all()):
        message = f"cannot pool {values.size} estimates: each needs a value and an error above 0"
        raise AnalysisError(message)
    count = values.size
    scatter = _scatter(values, variances, 0.0)
    p_disagreement = float(scipy.special.chdtrc(count - 1, scatter)) if count > 1 else 1.0
    between, degrees, factor = 0.0, math.inf, 1.0
    if is_random and count >= FEWEST_HOSTS:
        between = _between_variance(values, variances)
        degrees = float(count - 1)
        factor = max(1.0, _scatter(values, variances, between) / (count - 1))
    weights = 1 / (variances + between)
    return Pooled(
        place=float(weights @ values / weights.sum()),
        standard_error=math.sqrt(factor / float(weights.sum())),
        degrees=degrees,
        weights=tuple(float(weight) for weight in weights / weights.sum()),
        between_sd=math.sqrt(between),
        p_disagreement=p_disagreement,
    )


def mean_of_these(places: Sequence[float], errors: Sequence[float]) -> Pooled:
    """Give the mean of the true values of these estimates, each with the same weight, which may differ.

    Nothing is said of others.

    Parameters
    ----------
    places, errors : sequence of float
        As for `pooled`.

    Raises
    ------
    AnalysisError
        If there is nothing to pool, or an error is not positive.

    References
    ----------
    .. [1] Cochran (1954), Biometrics 10: the unweighted mean where true values differ.

    Examples
    --------
    >>> found = mean_of_these([0.0, 0.1], [0.01, 0.02])
    >>> round(found.place, 4), round(found.standard_error, 4), found.p_disagreement < 0.001
    (0.05, 0.0112, True)
    """
    common = pooled(places, errors, is_random=False)
    count = len(places)
    return replace(
        common,
        place=math.fsum(places) / count,
        standard_error=math.sqrt(math.fsum(error**2 for error in errors)) / count,
        weights=(1 / count,) * count,
    )


def _scatter(values: np.ndarray, variances: np.ndarray, between: float) -> float:
    """Give Cochran's Q: squared distances from the weighted mean, in squared standard errors."""
    weights = 1 / (variances + between)
    return float(weights @ (values - weights @ values / weights.sum()) ** 2)


def _between_variance(values: np.ndarray, variances: np.ndarray) -> float:
    """Find the variance between at which the scatter is what it should be; 0 where it is less without."""
    expected = values.size - 1
    if _scatter(values, variances, 0.0) <= expected:
        return 0.0
    low, high = 0.0, float(np.ptp(values)) ** 2 * values.size
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if _scatter(values, variances, middle) > expected else (low, middle)
    return high
