"""Speed-up at each number of workers, how far from ideal, where it peaks, what too many workers cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.scalability import serial_fraction
from steelyard.analyse.scaling.speedup import median_of, ratio_of_medians
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.curves import within_cores
from steelyard.studies.scaling.findings.estimates import (
    BLOCKS,
    mapped,
    median_estimate,
    number,
    of_runs,
    of_trials,
    ratio_estimate,
)
from steelyard.studies.scaling.findings.program import TOO_SHORT, cores_used, is_short
from steelyard.studies.scaling.findings.strategy import contender_of
from steelyard.studies.scaling.recorded import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.scaling.curves import Curve, Point
    from steelyard.studies.scaling.lost_cells import LostCell
    from steelyard.studies.scaling.recorded import Recorded

STATED_METHOD: Final = "speed-up as the file states it"
IDEAL: Final = "ideal"
SHY: Final = "shy of ideal"
ABOVE: Final = "above ideal"
INCONCLUSIVE: Final = "inconclusive"
DESCRIPTIVE: Final = "descriptive"
BASELINE: Final = "baseline"
KEPT: Final = "kept"
LOST: Final = "lost"


def speedup_findings(found: list[Curve], recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Give the speed-up of every point, then the peak of every curve, then what oversubscription costs."""
    for curve in found:
        for point in curve.points:
            yield _speedup(curve, point, recorded, margin)
    for cell in recorded.lost:
        yield _lost(cell, recorded)
    for curve in found:
        if len(curve.points) > 1:
            yield _peak(curve, recorded)
    for curve in found:
        yield from _oversubscription(curve, recorded, margin)


def _speedup(curve: Curve, point: Point, recorded: Recorded, margin: float) -> Finding:
    method = STATED_METHOD if point.baseline is None else f"ratio of medians, {BLOCKS}"
    speedup = ratio_estimate(point.ratio, method, measurements=2 * point.ratio.trials)
    workers = point.workers
    verdict = BASELINE if point.baseline is point.cell else against_ideal(speedup, workers, margin)
    if is_short(point, recorded):
        verdict = TOO_SHORT
    used = cores_used(point.cell) if "program" in curve.subject else None
    estimates = {
        "speedup": speedup,
        "shy": mapped(speedup, -100 / workers, 100.0, "percent"),
        "efficiency": mapped(speedup, 1 / workers, 0.0, "ratio"),
    }
    if used is None:
        used = np.full(point.cell.values.size, np.nan)
    estimates["cores_used"] = median_estimate(used, "cores", recorded.draws)
    estimates["serial_fraction"] = _serial_fraction(point)
    estimates["machine"] = _machine(point)
    if point.baseline is not None:
        estimates["rate"] = Estimate(
            finite(point.rate), point.cell.unit, "median of the trials", measurements=point.cell.trials
        )
        estimates["baseline_rate"] = Estimate(
            finite(median_of(point.baseline.values)),
            point.cell.unit,
            "median of the trials",
            measurements=point.baseline.trials,
        )
    return finding(
        "speedup",
        {**curve.subject, "workers": str(workers)},
        verdict,
        estimates=estimates,
        facts={
            "workers": workers,
            "against": curve.against,
            "oversubscribed": recorded.is_oversubscribed(workers),
            "cores": recorded.cores,
            "trials": point.ratio.trials,
            "has_interval": speedup.low is not None,
        },
        evidence=of_trials((point.cell, point.baseline), "speed-up"),
    )


def _lost(cell: LostCell, recorded: Recorded) -> Finding:
    """Keep the row of a number of workers with which no run was completed."""
    identity: dict[str, str] = {name: cell.levels[name] for name in IDENTITY if name in cell.levels}
    workers = int(cell.levels["workers"])
    missing = {"shy": "percent", "rate": "", "cores_used": "cores"}
    ratios = dict.fromkeys(("speedup", "efficiency", "machine", "serial_fraction"), "ratio")
    return finding(
        "speedup",
        {**identity, "workers": str(workers)},
        cell.ending,
        estimates={
            role: number(math.nan, unit, "no run was completed") for role, unit in (ratios | missing).items()
        },
        facts={
            "workers": workers,
            "against": "",
            "oversubscribed": recorded.is_oversubscribed(workers),
            "cores": recorded.cores,
            "trials": 0,
            "runs": cell.runs,
            "has_interval": False,
        },
        evidence=of_runs(cell.number),
    )


def _machine(point: Point) -> Estimate:
    """Give the speed-up of threads that share nothing: what of a loss is the machine's."""
    method = f"threads that share nothing, ratio of medians, {BLOCKS}"
    if point.machine is None or point.workers == 1:
        return number(math.nan, "ratio", method)
    return ratio_estimate(point.machine, method)


def _serial_fraction(point: Point) -> Estimate:
    """Give the serial share at this point, less the machine's own where that is known."""
    own = point.of_machine or point
    method = f"Karp and Flatt's serial fraction of the median speed-up, {BLOCKS}"
    if point.workers == 1:
        return number(math.nan, "ratio", method)
    # It falls with the speed-up, so that the limits change places.
    value, high, low = (
        float(serial_fraction(end, point.workers)) for end in (own.ratio.value, own.ratio.low, own.ratio.high)
    )
    return number(value, "ratio", method, (low, high), own.ratio.trials)


def against_ideal(speedup: Estimate, workers: int, margin: float) -> str:
    """Say how a speed-up lies to the number of workers.

    Parameters
    ----------
    speedup : Estimate
        With or without interval; without, nothing is judged.
    workers : int
        The ideal.
    margin : float
        Largest relative difference that counts as none.

    Examples
    --------
    >>> against_ideal(Estimate(1.9, "ratio", "", 1.89, 1.91, 0.95), 2, 0.02)
    'shy of ideal'
    """
    if speedup.low is None or speedup.high is None:
        return DESCRIPTIVE
    if workers / (1 + margin) <= speedup.low and speedup.high <= workers * (1 + margin):
        return IDEAL
    if speedup.high < workers:
        return SHY
    return ABOVE if speedup.low > workers else INCONCLUSIVE


def _peak(curve: Curve, recorded: Recorded) -> Finding:
    point = curve.peak
    last = curve.points[-1]
    method = "largest of the medians" if point.baseline is None else f"largest ratio of medians, {BLOCKS}"
    return finding(
        "peak",
        curve.subject,
        "at the largest number" if point is last else "inside",
        estimates={
            "speedup": ratio_estimate(point.ratio, method),
            "workers": Estimate(
                point.workers, "workers", "workers at the largest speed-up", units=len(curve.points)
            ),
        },
        facts={
            "workers": point.workers,
            "of_workers": last.workers,
            "oversubscribed": recorded.is_oversubscribed(point.workers),
            "has_interval": math.isfinite(point.ratio.low),
        },
        evidence=of_trials((each.cell for each in curve.points), "largest speed-up"),
    )


def _oversubscription(curve: Curve, recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Compare each number of workers above the cores with the largest that is not."""
    fitting = within_cores(curve, recorded)
    if not fitting:
        return
    full = fitting[-1]
    for point in curve.points:
        if point.workers <= full.workers:
            continue
        kept = _kept(point, full, recorded)
        share = mapped(kept, 100.0, 0.0, "percent")
        yield finding(
            "oversubscription",
            {**curve.subject, "workers": str(point.workers)},
            _judge_kept(kept, margin),
            estimates={"kept": share, "drop": mapped(kept, -100.0, 100.0, "percent"), "ratio": kept},
            facts={
                "workers": point.workers,
                "who": _who(curve.subject),
                "full_workers": full.workers,
                "cores": recorded.cores,
                "has_interval": kept.low is not None,
            },
            evidence=of_trials((point.cell, full.cell), "rate against that at the cores"),
        )


def _who(subject: dict[str, str]) -> str:
    """Name a curve of the packets program in a sentence; nothing where there is one program."""
    if "strategy" not in subject:
        return ""
    where = f"{subject['load']} load, W = {subject['mean_work']}, depth {subject['depth']}"
    return f"{contender_of(subject)}, {where}: "


def _kept(point: Point, full: Point, recorded: Recorded) -> Estimate:
    if point.baseline is None:
        value = point.ratio.value / full.ratio.value
        return Estimate(value, "ratio", "ratio of the stated speed-ups", units=1, guaranteed=False)
    ratio = ratio_of_medians(point.cell.values, full.cell.values, recorded.draws)
    return ratio_estimate(ratio, f"ratio of median rates, {BLOCKS}")


def _judge_kept(kept: Estimate, margin: float) -> str:
    if kept.low is None or kept.high is None:
        return DESCRIPTIVE
    if kept.low >= 1 / (1 + margin):
        return KEPT
    return LOST if kept.high < 1 else INCONCLUSIVE
