"""Laws of scalability fitted to speed-ups: Amdahl's, and the universal one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.design.seeds import Purpose, generator
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
        """Workers at the largest speed-up, sqrt((1 - contention) / coherence): infinity without coherence."""
        with np.errstate(divide="ignore", invalid="ignore"):
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


def spread_of(
    workers: ArrayLike, speedups: ArrayLike, law: str, *, draws: int = 2000, seed: int = 1
) -> Scalability:
    """Draw laws from what trials and deviations from the law leave open.

    Each draw takes one resample of the trials, solves the law's linear form without bounds, and moves its
    coefficients by their standard errors times Student's t with n - k degrees of freedom: so points that
    scatter around the law, or bend away from it, widen the limits as the noise of the trials does. With as
    many points as parameters nothing would be left to estimate that from.

    Parameters
    ----------
    workers : array_like
        Shape (n,), more distinct numbers of workers than the law has parameters.
    speedups : array_like
        Shape (n,) or (resamples, n), positive.
    law : str
        ``amdahl`` or ``usl``.
    draws : int
        Number of laws.
    seed : int
        Seed of the draws.

    Raises
    ------
    AnalysisError
        If there are too few numbers of workers.

    References
    ----------
    .. [1] Davison & Hinkley (1997), section 6.2: prediction needs the error of the coefficients, not only
       that of the points.

    Examples
    --------
    >>> laws = spread_of([1, 2, 3, 4], [1.0, 1.82, 2.5, 3.06], "amdahl")
    >>> [round(float(end), 1) for end in np.quantile(laws.ceiling, [0.025, 0.975])]
    [9.3, 10.4]
    """
    p = np.asarray(workers, dtype=np.float64)
    rows = np.atleast_2d(np.asarray(speedups, dtype=np.float64))
    parameters = FEWEST_LEVELS[law]
    if np.unique(p).size <= parameters:
        message = f"{np.unique(p).size} numbers of workers leave nothing to judge the law by"
        hint = f"measure at least {parameters + 1} numbers of workers"
        raise AnalysisError(message, hint=hint, code="analysis.few-levels")
    rng = generator(seed, Purpose.RESAMPLING)
    inverse = p / rows[rng.integers(0, rows.shape[0], size=draws)]
    columns = np.stack([np.ones_like(p), p, p * (p - 1)][:parameters], axis=-1)
    matrix = columns[None] / inverse[..., None]
    q, r = np.linalg.qr(matrix)
    solution = np.linalg.solve(r, np.einsum("dnk,dn->dk", q, np.ones_like(inverse))[..., None])[..., 0]
    residuals = np.einsum("dnk,dk->dn", matrix, solution) - 1
    freedom = p.size - parameters
    scale = np.sqrt(np.sum(residuals**2, axis=1) / freedom)
    chi = np.sqrt(rng.chisquare(freedom, draws) / freedom)
    normal = rng.standard_normal((draws, parameters))
    moved = np.linalg.solve(r, normal[..., None])[..., 0] * (scale / chi)[:, None]
    coefficients = np.where(np.abs(solution) < NOISE, 0.0, solution) + moved
    constant, linear, *rest = np.maximum(coefficients, 0.0).T
    square = rest[0] if rest else np.zeros(draws)
    a = np.maximum(constant + linear, NOISE)
    return Scalability(1 / a, linear / a, square / a)


def serial_fraction(speedup: ArrayLike, workers: float) -> Matrix:
    """Give the share of the work that would be serial if nothing else kept a speed-up from being ideal.

    It describes the point it is computed from and predicts no other: where it grows with the workers,
    something else than a serial share costs time.

    Parameters
    ----------
    speedup : array_like
        Above 0.
    workers : float
        Above 1.

    References
    ----------
    .. [1] Karp & Flatt (1990), Communications of the ACM 33(5): the experimentally determined serial
       fraction.

    Examples
    --------
    >>> round(float(serial_fraction(1 / (0.1 + 0.9 / 4), 4)), 6)
    0.1
    """
    return np.asarray((1 / np.asarray(speedup, dtype=np.float64) - 1 / workers) / (1 - 1 / workers))


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
