"""Laws of scalability fitted to speed-ups: Amdahl's, and the universal one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Matrix = NDArray[np.float64]

FEWEST_LEVELS: Final = {"amdahl": 2, "usl": 3}
"""Numbers of workers that determine the parameters of a law; more leave something to judge the fit by."""


SQUARE: Final = 2
"""Position of the coefficient of p (p - 1)."""

NOISE: Final = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Scalability:
    """A fitted law S(p) = efficiency * p / (1 + contention * (p - 1) + coherence * p * (p - 1)).

    Parameters
    ----------
    efficiency : ndarray
        Speed-up of one worker, above 0; shape () or (resamples,), as all others.
    contention : ndarray
        Share of the work that is serial, in [0, 1].
    coherence : ndarray
        Cost of keeping every pair of workers consistent, from 0; 0 in Amdahl's law.
    """

    efficiency: Matrix
    contention: Matrix
    coherence: Matrix

    def predict(self, workers: ArrayLike) -> Matrix:
        """Give the speed-ups of a single fit; same shape as `workers`."""
        p = np.asarray(workers, dtype=np.float64)
        return np.asarray(
            self.efficiency * p / (1 + self.contention * (p - 1) + self.coherence * p * (p - 1))
        )

    def r_squared(self, workers: Matrix, speedups: Matrix) -> float:
        """Give the share of the variation of the speed-ups that a single fit explains; NaN without any."""
        total = float(np.sum((speedups - speedups.mean()) ** 2))
        rest = float(np.sum((speedups - self.predict(workers)) ** 2))
        return 1 - rest / total if total > 0 else math.nan

    @property
    def peak_workers(self) -> Matrix:
        """Workers at the largest speed-up, sqrt((1 - contention) / coherence); infinite without coherence."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.sqrt((1 - self.contention) / self.coherence))

    @property
    def ceiling(self) -> Matrix:
        """Speed-up that no number of workers exceeds under Amdahl's law; infinite without a serial share."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.efficiency / self.contention)


def fit_amdahl(workers: ArrayLike, speedups: ArrayLike) -> Scalability:
    """Fit Amdahl's law with the efficiency of one worker as a parameter.

    Parameters
    ----------
    workers : array_like
        Shape (n,), at least 2 distinct numbers of workers.
    speedups : array_like
        Shape (n,) or (resamples, n), positive.

    Raises
    ------
    AnalysisError
        If there are too few numbers of workers, or a speed-up is not positive.

    References
    ----------
    .. [1] Amdahl (1967), AFIPS Spring Joint Computer Conference.

    Examples
    --------
    >>> found = fit_amdahl([1, 2, 4, 8], [1.0, 1 / 0.55, 1 / 0.325, 1 / 0.2125])
    >>> round(float(found.contention), 6), round(float(found.ceiling), 3)
    (0.1, 10.0)
    """
    return _fit(workers, speedups, "amdahl")


def fit_usl(workers: ArrayLike, speedups: ArrayLike) -> Scalability:
    """Fit the universal scalability law.

    The law is linear in its parameters as p / S = (1 + contention (p - 1) + coherence p (p - 1)) /
    efficiency. That is solved by least squares of relative errors, with contention in [0, 1] and
    coherence from 0. Robustness comes from the medians of the trials that are its points: with a handful
    of numbers of workers, weights that depend on residuals would only delete points.

    Parameters
    ----------
    workers : array_like
        Shape (n,), at least 3 distinct numbers of workers.
    speedups : array_like
        Shape (n,) or (resamples, n), positive.

    Raises
    ------
    AnalysisError
        If there are too few numbers of workers, or a speed-up is not positive.

    References
    ----------
    .. [1] Gunther (2007), Guerrilla Capacity Planning, eq. 4.31; Gunther, Puglia & Tomasette (2015),
       ACM Queue 13, with the efficiency of one worker as third parameter.

    Examples
    --------
    >>> p = np.array([1.0, 2, 4, 8, 16])
    >>> found = fit_usl(p, 0.9 * p / (1 + 0.05 * (p - 1) + 0.002 * p * (p - 1)))
    >>> [round(float(each), 6) for each in (found.efficiency, found.contention, found.coherence)]
    [0.9, 0.05, 0.002]
    """
    return _fit(workers, speedups, "usl")


def _fit(workers: ArrayLike, speedups: ArrayLike, law: str) -> Scalability:
    p = np.asarray(workers, dtype=np.float64)
    s = np.asarray(speedups, dtype=np.float64)
    rows = np.atleast_2d(s)
    if np.unique(p).size < FEWEST_LEVELS[law]:
        message = f"{np.unique(p).size} numbers of workers do not determine the law; {FEWEST_LEVELS[law]} do"
        raise AnalysisError(message, hint="measure more numbers of workers", code="analysis.few-levels")
    if not (np.isfinite(rows).all() and (rows > 0).all() and (p > 0).all()):
        message = "a speed-up or a number of workers is not positive"
        raise AnalysisError(message, code="analysis.speedup")
    inverse = p / rows
    best = np.full((3, rows.shape[0]), np.nan)
    least = np.full(rows.shape[0], np.inf)
    for coefficients, error in _candidates(p, inverse, law):
        better = error < least * (1 - 1e-12)
        best[:, better] = coefficients[:, better]
        least[better] = error[better]
    constant, linear, square = best
    a = constant + linear
    shape = s.shape[:-1]
    return Scalability((1 / a).reshape(shape), (linear / a).reshape(shape), (square / a).reshape(shape))


def _candidates(p: Matrix, inverse: Matrix, law: str) -> Iterator[tuple[Matrix, Matrix]]:
    """Give the solution of each way in which bounds may hold.

    With a = 1 / efficiency, a (1 + contention (p - 1) + coherence p (p - 1)) is a sum of 1, p and p (p - 1)
    with coefficients from 0: contention 0 is the first alone, contention 1 the second. That is least
    squares with coefficients from 0, solved exactly by trying every set of them that may be above 0.
    """
    rays = [np.ones_like(p), p, p * (p - 1)][: 3 if law == "usl" else 2]
    for count in range(len(rays), 0, -1):
        for chosen in combinations(range(len(rays)), count):
            if chosen == (SQUARE,):
                continue  # an efficiency without bound
            matrix = np.stack([rays[at] for at in chosen], axis=-1)[None] / inverse[..., None]
            q, r = np.linalg.qr(matrix)
            right = np.einsum("rnk,rn->rk", q, np.ones_like(inverse))
            solution = np.linalg.solve(r, right[..., None])[..., 0]
            # Rounding noise is no coefficient: it would give a finite ceiling to a perfect program.
            solution = np.where(np.abs(solution) < NOISE, 0.0, solution)
            error = np.sum((np.einsum("rnk,rk->rn", matrix, solution) - 1) ** 2, axis=1)
            coefficients = np.zeros((3, inverse.shape[0]))
            coefficients[list(chosen)] = solution.T
            feasible = (coefficients >= 0).all(axis=0) & (coefficients[:SQUARE].sum(axis=0) > 0)
            yield coefficients, np.where(feasible, error, np.inf)
