"""Laws fitted to each curve: a line, Amdahl's law, the universal law; each with the points it rests on.

A law is fitted where there are more numbers of workers than it has parameters; of two, any law is an
extrapolation. What it says beyond the points, a ceiling or a peak, is told only where the law describes the
points and the interval ends within twice the largest that was measured. The interval of a ceiling begins at
the largest speed-up that was measured: no law promises more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.scalability import FEWEST_LEVELS, fit_amdahl, fit_usl, spread_of
from steelyard.analyse.scaling.speedup import FEWEST_POINTS, fit_slope, limits_of
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.curves import listed, within_cores
from steelyard.studies.scaling.findings.estimates import BLOCKS, NO_TRIALS, number, of_trials
from steelyard.studies.scaling.findings.program import ignores_workers, is_short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from steelyard.analyse.scaling.scalability import Scalability
    from steelyard.model import Estimate, Finding
    from steelyard.studies.scaling.curves import Curve, Point
    from steelyard.studies.scaling.recorded import Recorded

LEVEL: Final = 0.95
LINEAR: Final = "slope 1 is not excluded"
NOT_LINEAR: Final = "slope differs from 1"
DESCRIPTIVE: Final = "descriptive"
TOLD: Final = "the limit is in reach of the points"
OPEN: Final = "the points do not tell the limit"
MISFIT: Final = "the law does not describe the points"
REACH: Final = 2.0
"""Largest ratio of the upper limit of a ceiling, or of the workers at a peak, to the largest measured."""


def fit_findings(found: list[Curve], recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Fit the line to stated sets of points, and both laws to every curve.

    `margin` is the largest relative distance of a point from a law that describes it.
    """
    for curve in found:
        yield from _regressions(curve, recorded)
    for curve in found:
        if ignores_workers(curve, recorded):
            continue
        points = tuple(point for point in within_cores(curve, recorded) if not is_short(point, recorded))
        for law, parameters in FEWEST_LEVELS.items():
            if len(points) > parameters:
                yield _law(curve.part(points), law, recorded, margin)
        if 1 < len(points) <= FEWEST_LEVELS["amdahl"]:
            yield _too_few(curve.part(points))


def _regressions(curve: Curve, recorded: Recorded) -> Iterator[Finding]:
    """Fit all points up to the cores, and all of them but the last, which is the first to bend."""
    fitting = within_cores(curve, recorded)
    for points in (fitting, fitting[:-1]):
        if len(points) >= FEWEST_POINTS:
            yield regression(curve.part(points))


def regression(curve: Curve) -> Finding:
    """Give the line through all points of a curve."""
    line = fit_slope(curve.workers, curve.speedups, curve.resampled)
    trials = min(point.ratio.trials for point in curve.points)
    verdict = DESCRIPTIVE
    if math.isfinite(line.low):
        verdict = LINEAR if line.low <= 1 <= line.high else NOT_LINEAR
    return finding(
        "regression",
        {**curve.subject, "points": f"workers {listed(curve.points)}"},
        verdict,
        estimates={
            "slope": number(
                line.slope, "speed-up per worker", f"least squares, {BLOCKS}", (line.low, line.high), trials
            ),
            "intercept": number(line.intercept, "ratio", "least squares"),
            "r_squared": number(line.r_squared, "ratio", "least squares"),
        },
        facts={
            "count": len(curve.points),
            "point_set": listed(curve.points),
            "p_slope_one_hc3": finite(line.p_one),
        },
        evidence=of_trials((point.cell for point in curve.points), "line of speed-up on workers"),
        warnings=() if math.isfinite(line.low) else (NO_TRIALS,),
    )


def _law(curve: Curve, law: str, recorded: Recorded, margin: float) -> Finding:
    """Fit a law to what the program itself loses, where the machine's own share is known."""
    own = curve.of_machine
    speedups = own.speedups
    fit = fit_amdahl if law == "amdahl" else fit_usl
    best, rows = fit(own.workers, speedups), _usable(own)
    laws = spread_of(own.workers, rows, law, seed=recorded.plan.seed)
    trials = min(point.ratio.trials for point in own.points)
    method = "least squares of relative errors; limits from the trials and the points' distance from the law"

    def parameter(name: str, unit: str) -> Estimate:
        return number(float(getattr(best, name)), unit, method, limits_of(getattr(laws, name), LEVEL), trials)

    estimates = {name: parameter(name, "ratio") for name in ("efficiency", "contention")}
    if law == "usl":
        estimates["coherence"] = parameter("coherence", "ratio")
        limit, reach = parameter("peak_workers", "workers"), float(own.workers.max())
    else:
        limit, reach = _from(own.peak, parameter("ceiling", "ratio")), float(speedups.max())
    is_met = _describes(fit, own, rows, margin)
    is_told = is_met and limit.high is not None and limit.high <= REACH * reach
    # Workers that share cores flatten every curve, and without the cores nobody knows which points they are.
    is_told = is_told and recorded.cores is not None
    estimates["peak_workers" if law == "usl" else "ceiling"] = limit if is_told else _open(limit)
    return finding(
        law,
        curve.subject,
        TOLD if is_told else OPEN if is_met else MISFIT,
        estimates=estimates,
        facts={
            "count": len(own.points),
            "point_set": listed(own.points),
            "reach": reach,
            "is_own_share": curve.is_relative_to_machine,
            "r_squared": finite(best.r_squared(own.workers, speedups)),
            "largest_error_percent": 100 * float(np.max(np.abs(best.predict(own.workers) / speedups - 1))),
        },
        evidence=of_trials((point.cell for point in own.points), f"{law} fitted to speed-ups"),
        warnings=() if curve.resampled is not None else (NO_TRIALS,),
    )


def _describes(
    fit: Callable[[ArrayLike, ArrayLike], Scalability], curve: Curve, rows: NDArray[np.float64], margin: float
) -> bool:
    """Whether no point is certainly further from the law than the margin."""
    laws = fit(curve.workers, rows)
    fitted = laws.predict(curve.workers[:, None]).T
    limits = [limits_of(column) for column in (fitted / rows - 1).T]
    return all(low <= margin and high >= -margin for low, high in limits)


def _from(peak: Point, ceiling: Estimate) -> Estimate:
    """Let the interval of a ceiling begin at the largest measured speed-up."""
    least = peak.ratio.low if math.isfinite(peak.ratio.low) else peak.ratio.value
    return replace(ceiling, low=None if ceiling.low is None else min(ceiling.low, least))


def _open(limit: Estimate) -> Estimate:
    """Give a limit that the points do not tell: without a value, since any would be an extrapolation."""
    return number(math.nan, limit.unit, limit.method)


def _usable(curve: Curve) -> NDArray[np.float64]:
    """Give the speed-ups of each resample that has all of them; the measured ones where there are none."""
    rows = curve.speedups[None] if curve.resampled is None else curve.resampled
    usable = rows[np.isfinite(rows).all(axis=1) & (rows > 0).all(axis=1)]
    return usable if usable.size else curve.speedups[None]


def _too_few(curve: Curve) -> Finding:
    return finding(
        "no_law",
        curve.subject,
        "too few numbers of workers",
        facts={
            "count": len(curve.points),
            "point_set": listed(curve.points),
            "needed": FEWEST_LEVELS["amdahl"] + 1,
        },
        evidence=of_trials((point.cell for point in curve.points), "numbers of workers up to the cores"),
    )
