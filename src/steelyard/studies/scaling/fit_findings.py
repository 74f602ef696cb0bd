"""Laws fitted to each curve: a line, Amdahl's law, the universal law; each with the points it rests on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scalability import FEWEST_LEVELS, fit_amdahl, fit_usl
from steelyard.analyse.speedup import FEWEST_POINTS, fit_slope, limits_of
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.curves import listed, within_cores
from steelyard.studies.scaling.estimates import BLOCKS, NO_TRIALS, number, of_trials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.analyse.scalability import Scalability
    from steelyard.model import Estimate, Finding
    from steelyard.studies.scaling.curves import Curve
    from steelyard.studies.scaling.recorded import Recorded

LEVEL: Final = 0.95
LINEAR: Final = "slope 1 is not excluded"
NOT_LINEAR: Final = "slope differs from 1"
DESCRIPTIVE: Final = "descriptive"
EXACT: Final = "determined by as many points as parameters"
FITTED: Final = "fitted"


def fit_findings(found: list[Curve], recorded: Recorded) -> Iterator[Finding]:
    """Fit the line to stated sets of points, and both laws, to every curve."""
    for curve in found:
        yield from _regressions(curve, recorded)
    for curve in found:
        points = within_cores(curve, recorded)
        for law in FEWEST_LEVELS:
            if len(points) >= FEWEST_LEVELS[law]:
                yield _law(curve.part(points), law)


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


def _law(curve: Curve, law: str) -> Finding:
    fit = fit_amdahl if law == "amdahl" else fit_usl
    best = fit(curve.workers, curve.speedups)
    resampled = _resampled(curve, law)
    trials = min(point.ratio.trials for point in curve.points)
    is_exact = len(curve.points) == FEWEST_LEVELS[law]
    method = f"least squares of relative errors, {BLOCKS}"

    def parameter(name: str, unit: str) -> Estimate:
        limits = (math.nan, math.nan) if resampled is None else limits_of(getattr(resampled, name), LEVEL)
        return number(float(getattr(best, name)), unit, method, limits, trials)

    estimates = {
        "efficiency": parameter("efficiency", "ratio"),
        "contention": parameter("contention", "ratio"),
    }
    if law == "usl":
        estimates["coherence"] = parameter("coherence", "ratio")
        estimates["peak_workers"] = parameter("peak_workers", "workers")
    else:
        estimates["ceiling"] = parameter("ceiling", "ratio")
    return finding(
        law,
        curve.subject,
        EXACT if is_exact else FITTED,
        estimates=estimates,
        facts={
            "count": len(curve.points),
            "point_set": listed(curve.points),
            "r_squared": None if is_exact else finite(best.r_squared(curve.workers, curve.speedups)),
            "largest_error_percent": _largest_error(best, curve.workers, curve.speedups),
        },
        evidence=of_trials((point.cell for point in curve.points), f"{law} fitted to speed-ups"),
        warnings=() if resampled is not None else (NO_TRIALS,),
    )


def _resampled(curve: Curve, law: str) -> Scalability | None:
    speedups = curve.resampled
    if speedups is None:
        return None
    usable = speedups[np.isfinite(speedups).all(axis=1) & (speedups > 0).all(axis=1)]
    if usable.shape[0] == 0:
        return None
    return (fit_amdahl if law == "amdahl" else fit_usl)(curve.workers, usable)


def _largest_error(best: Scalability, workers: NDArray[np.float64], speedups: NDArray[np.float64]) -> float:
    return 100 * float(np.max(np.abs(best.predict(workers) / speedups - 1)))
