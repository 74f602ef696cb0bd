"""Which law the noise around a curve follows, if any, and how heavy its tail is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.linear.deviations import CurveKind, Scale, curve_error, deviations
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from steelyard._native import LawValues
    from steelyard.analyse.linear.deviations import CurveError

    Vector = NDArray[np.float64]

FEWEST: Final = 30
"""Below this many values every law fits, so none is named."""

SIGNIFICANT: Final = 0.05
"""A law with a smaller p-value is refuted."""

SIMULATIONS: Final = 99
"""Samples simulated per law at most; the smallest p-value is 1 / 100."""

ENOUGH: Final = 10
"""So many simulated statistics beyond the observed one end the simulation (Besag & Clifford 1991)."""

APART: Final = 2.0
"""Laws whose criteria differ by less cannot be told apart (Burnham & Anderson 2002, section 2.6)."""

_Z_95: Final = 1.959963984540054


class LawKind(StrEnum):
    """Families of laws; all but the normal one start at a shift, the smallest possible value."""

    NORMAL = "normal"
    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    WEIBULL = "weibull"


@dataclass(frozen=True, slots=True)
class LawParameter:
    """One parameter of a law with its 95 % interval.

    Parameters
    ----------
    name : str
        ``shift``, ``shape``, ``scale`` as scipy uses them (lognormal: the shape is the standard deviation of
        the logarithm, the scale the median above the shift); ``mean`` and ``sd`` of the normal law.
    estimate, low, high : float
        ``low`` and ``high`` are not numbers where a bound holds the estimate.
    """

    name: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """A law fitted to deviations.

    Parameters
    ----------
    kind : LawKind
        The family.
    parameters : tuple of LawParameter
        Shift, shape, scale; or mean, sd.
    log_likelihood, aic, bic : float
        At the estimates. They compare laws on the same deviations, nothing else.
    anderson_darling, p_value : float
        Test of the law by parametric bootstrap.
    simulated : int
        Samples behind the p-value.
    distance : float
        Largest distance between the law's and the sample's distribution function, in [0, 1].
    is_regular : bool
        ``False`` for a gamma or Weibull shape of at most 2, where criteria lack their usual justification.
    """

    kind: LawKind
    parameters: tuple[LawParameter, ...]
    log_likelihood: float
    aic: float
    bic: float
    anderson_darling: float
    p_value: float
    simulated: int
    distance: float
    is_regular: bool

    @property
    def fits(self) -> bool:
        """Whether the test does not refute it."""
        return self.p_value >= SIGNIFICANT

    @property
    def values(self) -> tuple[float, float, float]:
        """Shift, shape and scale; of the normal law mean, 0 and standard deviation."""
        numbers = [parameter.estimate for parameter in self.parameters]
        return (numbers[0], 0.0 if self.kind is LawKind.NORMAL else numbers[1], numbers[-1])

    def quantile(self, share: ArrayLike) -> Vector:
        """Give the values below which shares of the law lie, each in [0, 1]."""
        shares = np.asarray(share, dtype=np.float64)
        return _native.law_quantiles(self.kind.value, self.values, shares.ravel()).reshape(shares.shape)

    def share_below(self, value: ArrayLike) -> Vector:
        """Give the shares of the law below values."""
        values = np.asarray(value, dtype=np.float64)
        return _native.law_shares(self.kind.value, self.values, values.ravel()).reshape(values.shape)


@dataclass(frozen=True, slots=True)
class ParetoTail:
    """The law of the largest deviations: P(excess > y) = (1 + shape y / scale)^(-1 / shape).

    Parameters
    ----------
    threshold : float
        Largest deviation that is not in the tail.
    exceedances : int
        Deviations in it.
    share : float
        Their part of all.
    shape, scale : LawParameter
        Limits of the shape hold 90 %, from its likelihood, so that the lower one alone is surely below it at
        95 %. A shape above 0 is heavier than exponential; from 1/2 on the variance is infinite, from 1 on the
        mean.
    anderson_darling, p_value : float
        Test of the tail by parametric bootstrap.
    holds : bool
        Whether the tail is not refuted at 5 %.
    """

    threshold: float
    exceedances: int
    share: float
    shape: LawParameter
    scale: LawParameter
    anderson_darling: float
    p_value: float
    holds: bool

    @property
    def is_heavy(self) -> bool:
        """Whether the tail is surely heavier than exponential."""
        return self.holds and self.shape.low > 0


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """What is known about the law of a sample of deviations.

    Parameters
    ----------
    scale : Scale
        Whether deviations are factors of the curve or differences from it.
    count, distinct : int
        Deviations, and how many of them differ by more than rounding.
    laws : tuple of NoiseLaw
        The smallest BIC first; empty where ``reason`` says why.
    tail : ParetoTail or None
        ``None`` where too few values are there for one.
    reason : str
        Why no law can be named; empty otherwise.
    """

    scale: Scale
    count: int
    distinct: int
    laws: tuple[NoiseLaw, ...]
    tail: ParetoTail | None
    reason: str

    @property
    def chosen(self) -> NoiseLaw | None:
        """The law with the smallest BIC among those that fit; ``None`` when none does."""
        return next((law for law in self.laws if law.fits), None) if not self.reason else None

    @property
    def nearest(self) -> NoiseLaw | None:
        """The law whose distribution function is nearest, fitting or not."""
        return min(self.laws, key=lambda law: law.distance, default=None)

    @property
    def alike(self) -> tuple[NoiseLaw, ...]:
        """Other laws that fit and whose BIC is as good as the chosen one's."""
        best = self.chosen
        if best is None:
            return ()
        others = (law for law in self.laws if law is not best)
        return tuple(law for law in others if law.fits and law.bic - best.bic < APART)


def noise_model(
    values: ArrayLike,
    *,
    lowest: float | None = None,
    scale: Scale | str = Scale.DIFFERENCE,
    curve: CurveError | None = None,
    seed: int = 0,
) -> NoiseModel:
    """Fit laws of noise to a sample and say which one it follows, if any.

    Parameters
    ----------
    values : array_like
        Shape (n,), finite: residuals, or times over a fitted curve. Taken as independent.
    lowest : float or None
        No law may allow values below: 0 for times and factors, ``None`` for differences.
    scale : Scale
        What the values are, kept for the report.
    curve : CurveError or None
        Error of the fitted curve that the values are deviations from, which simulated samples get too.
    seed : int
        Of the simulated samples.

    Returns
    -------
    NoiseModel
        Without laws, and with the reason, for fewer than 30 values or where fewer than half of them differ.

    Raises
    ------
    AnalysisError
        If a value is not finite, or not above ``lowest``.

    References
    ----------
    .. [1] Cheng & Amin (1983), J. R. Statist. Soc. B 45: maximum product of spacings, because the likelihood
           of a shifted law has no maximum (Hill 1963). Own deviation: of more than 2048 distinct values the
           spacings between 2048 of them are used, all at both ends; a value that occurs m times
           counts half for each neighbouring spacing.
    .. [2] Stute, Gonzáles Manteiga & Presedo Quindimil (1993): goodness of fit by parametric bootstrap.
    .. [3] Smith (1985), Biometrika 72: below a shape of 2 the shift is not regular. Its interval rests on the
           smallest value for shapes up to 1, where n H(smallest - shift) is exponential with H the law's
           cumulative hazard, and on the information matrix above.
    .. [4] Bader, Yan & Zhang (2018): threshold of the Pareto tail by ordered tests.

    Examples
    --------
    >>> values = 1 + np.random.default_rng(1).lognormal(np.log(0.05), 1, 2000)
    >>> model = noise_model(values, lowest=0)
    >>> model.chosen.kind.value
    'lognormal'
    >>> [round(each.estimate, 2) for each in model.chosen.parameters]
    [1.0, 1.01, 0.05]
    """
    sample = np.ascontiguousarray(np.asarray(values, dtype=np.float64).ravel())
    bad = np.flatnonzero(~np.isfinite(sample))
    if bad.size:
        message = f"value number {bad[0]} (from 0) is {sample[bad[0]]}; every value must be finite"
        raise AnalysisError(message, hint="leave these values out, or find out where they come from")
    if lowest is not None and sample.size and sample.min() <= lowest:
        message = f"the value {sample.min():g} is not above the lowest possible one, {lowest:g}"
        raise AnalysisError(message, hint="leave `lowest` out for differences, which may have any sign")
    empty = NoiseModel(Scale(scale), int(sample.size), int(np.unique(sample).size), (), None, "")
    if sample.size < FEWEST:
        return replace(empty, reason=f"{sample.size} values; at least {FEWEST} are needed to name a law")
    if empty.distinct < sample.size / 2:
        return replace(
            empty, reason=f"only {empty.distinct} of {sample.size} values differ: too coarse for a law"
        )
    options = {"samples": SIMULATIONS, "enough": ENOUGH, "seed": seed}
    found, distinct = _native.fit_noise(sample, lowest_shift=lowest, curve=curve, **options)
    if distinct < sample.size / 2:
        reason = f"only {distinct} of {sample.size} values differ by more than rounding: too coarse for a law"
        return replace(empty, distinct=distinct, reason=reason)
    laws = sorted((_law(each, sample.size) for each in found), key=lambda law: law.bic)
    return replace(empty, distinct=distinct, laws=tuple(laws), tail=_tail(sample, options))


def noise_around(
    curve: ArrayLike, y: ArrayLike, *, kind: CurveKind = CurveKind.KNOWN, seed: int = 0
) -> NoiseModel:
    """Fit laws of noise to the deviations of values from a curve.

    Parameters
    ----------
    curve, y : array_like
        Shape (n,), finite. Whether factors or differences are taken is decided by `deviations`.
    kind : CurveKind
        How the curve was fitted to these values.
    seed : int
        Of the simulated samples.

    Returns
    -------
    NoiseModel
    """
    scale, values = deviations(curve, y)
    lowest = 0.0 if scale is Scale.FACTOR else None
    return noise_model(values, lowest=lowest, scale=scale, curve=curve_error(curve, scale, kind), seed=seed)


def pareto_tail(values: ArrayLike, *, seed: int = 0) -> ParetoTail | None:
    """Fit the tail alone, which takes far less time than laws of all values.

    Parameters
    ----------
    values : array_like
        Shape (n,), finite.

    Returns
    -------
    ParetoTail or None
        ``None`` where too few values are there for one.
    """
    sample = np.ascontiguousarray(np.asarray(values, dtype=np.float64).ravel())
    return _tail(sample, {"samples": SIMULATIONS, "enough": ENOUGH, "seed": seed})


def _law(found: LawValues, count: int) -> NoiseLaw:
    kind = LawKind(found["kind"])
    parameters = _normal_parameters(found) if kind is LawKind.NORMAL else _shifted_parameters(found, count)
    score = -2.0 * found["log_likelihood"]
    return NoiseLaw(
        kind=kind,
        parameters=parameters,
        log_likelihood=found["log_likelihood"],
        aic=score + 2.0 * len(parameters),
        bic=score + math.log(count) * len(parameters),
        anderson_darling=found["anderson_darling"],
        p_value=found["p_value"],
        simulated=found["simulated"],
        distance=found["distance"],
        is_regular=found["is_regular"],
    )


def _normal_parameters(found: LawValues) -> tuple[LawParameter, ...]:
    mean, _, deviation = found["parameters"]
    mean_error, _, log_error = found["errors"]
    reach = _Z_95 * mean_error
    return (LawParameter("mean", mean, mean - reach, mean + reach), _positive("sd", deviation, log_error))


def _positive(name: str, estimate: float, log_error: float) -> LawParameter:
    factor = math.exp(_Z_95 * log_error)
    return LawParameter(name, estimate, estimate / factor, estimate * factor)


def _shifted_parameters(found: LawValues, count: int) -> tuple[LawParameter, ...]:
    shift, shape, scale = found["parameters"]
    distance_error, shape_error, scale_error = found["errors"]
    smallest = found["lowest"]
    if found["kind"] != LawKind.LOGNORMAL and shape <= 1:
        # n H(smallest - shift) is exponential: its quantiles, brought back to distances.
        risks = -np.log([0.975, 0.025]) / count
        near, far = _native.law_quantiles(found["kind"], (0.0, shape, scale), -np.expm1(-risks))
        place = LawParameter("shift", shift, smallest - float(far), smallest - float(near))
    else:
        reach = _Z_95 * (smallest - shift) * distance_error
        place = LawParameter("shift", shift, shift - reach, min(shift + reach, smallest))
    return (place, _positive("shape", shape, shape_error), _positive("scale", scale, scale_error))


def _tail(sample: Vector, options: dict[str, int]) -> ParetoTail | None:
    found = _native.pareto_tail(sample, **options)
    if found is None:
        return None
    scale_error = found["errors"][1] / found["scale"]
    return ParetoTail(
        threshold=found["threshold"],
        exceedances=found["exceedances"],
        share=found["exceedances"] / sample.size,
        shape=LawParameter("shape", found["shape"], *found["shape_limits"]),
        scale=_positive("scale", found["scale"], scale_error),
        anderson_darling=found["anderson_darling"],
        p_value=found["p_value"],
        holds=found["holds"],
    )
