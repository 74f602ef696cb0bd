"""What holds a curve back, tested: the dispatcher, the depth of the queues, the imbalance of the sources."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import median_of, ratio_of_medians
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.curves import within_cores
from steelyard.studies.scaling.findings.estimates import (
    BLOCKS,
    NO_TRIALS,
    mapped,
    number,
    of_trials,
    ratio_estimate,
)
from steelyard.studies.scaling.findings.held_back import DEPTH_BINDS, held_back_findings
from steelyard.studies.scaling.findings.strategy import (
    HOME_ONLY,
    INCONCLUSIVE,
    LOCK_FREE,
    judge_rate,
    places,
    smaller_packets,
)
from steelyard.studies.scaling.generator import median_balance_bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.scaling.curves import Curve, Point
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

EXPONENTIAL: Final = "exponential"
PUBLISHED_TRIALS: Final = 11
"""SOURCE: trials of the source's exponential experiments; trial s of them draws its means with seed s."""

AGREEMENT: Final = 0.10
"""Largest relative difference at which a predicted bound counts as met."""

AS_PREDICTED: Final = "as predicted"
BELOW: Final = "below the bound"
BALANCED: Final = "above the bound: balanced"
CONTRADICTS: Final = "contradicts the bound"
ONE_SOURCE: Final = "one source: nothing to balance"
BINDS: Final = "the dispatcher binds"
LEAVES_ROOM: Final = "the dispatcher leaves room"
DEPTHS: Final = {
    "faster": DEPTH_BINDS,
    "slower": "deeper is slower",
    "equivalent": "depth does not matter",
}
"""What a deeper queue's rate says, by its verdict."""

LINE_FROM: Final = 200
"""Mean work from which one worker, not the dispatcher, sets the pace in the source's first experiment."""


def explanation_findings(found: list[Curve], recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Test the three explanations, then say what each point is held back by, as far as it is recorded."""
    # Both bounds hold for as many workers as there are cores, and no more.
    if recorded.cores is not None:
        for curve in found:
            yield from _imbalance(curve, recorded)
        yield from _dispatcher(found, recorded)
    depths = list(_depth(recorded, margin))
    yield from depths
    yield from held_back_findings(found, recorded, depths)


def _imbalance(curve: Curve, recorded: Recorded) -> Iterator[Finding]:
    """Compare speed-ups under exponential load with the sum of the source means over the largest."""
    if curve.subject.get("load") != EXPONENTIAL:
        return
    for point in within_cores(curve, recorded):
        work = int(curve.subject["mean_work"])
        bound = median_balance_bound(work, point.workers, _seeds(point))
        speedup = ratio_estimate(point.ratio, f"ratio of medians, {BLOCKS}")
        relative = mapped(speedup, 1 / bound, 0.0, "ratio")
        yield finding(
            "imbalance",
            {**curve.subject, "workers": str(point.workers)},
            judge_bound(curve.subject["strategy"], point.workers, relative),
            estimates={
                "bound": number(bound, "ratio", "median over the trials of sum of means / largest mean"),
                "speedup": speedup,
                "relative": relative,
            },
            facts={
                "workers": point.workers,
                "takes_from_own_queue": curve.subject["strategy"] in HOME_ONLY,
                "agreement_percent": 100 * AGREEMENT,
            },
            evidence=of_trials((point.cell, point.baseline), "speed-up against the balance of the sources"),
        )


def _seeds(point: Point) -> list[int]:
    """Give the seeds of the trials: the number of the block from 1."""
    if point.baseline is None:
        return list(range(1, PUBLISHED_TRIALS + 1))
    return [int(block) + 1 for block in np.flatnonzero(np.isfinite(point.cell.values))]


def judge_bound(strategy: str, workers: int, relative: Estimate) -> str:
    """Say whether a speed-up is the one that the heaviest source allows, by its interval where there is one.

    The bound is a law for strategies whose workers take from their own queue alone; one that balances is
    expected above it, and that it does not reach it confirms nothing.

    Parameters
    ----------
    strategy : str
        Name.
    workers : int
        Workers, as many as sources.
    relative : Estimate
        Speed-up over the bound.

    Examples
    --------
    >>> judge_bound("LockFree", 2, Estimate(0.99, "ratio", "", 0.97, 1.02, 0.95))
    'as predicted'
    >>> judge_bound("work stealing", 2, Estimate(0.99, "ratio", "", 0.97, 1.02, 0.95))
    'inconclusive'
    """
    if workers == 1:
        return ONE_SOURCE
    has_interval = relative.low is not None and relative.high is not None
    low, high = (relative.low, relative.high) if has_interval else (relative.value, relative.value)
    if low is None or high is None:
        return INCONCLUSIVE
    slack = AGREEMENT if strategy in HOME_ONLY or not has_interval else 0.0
    if low > 1 + slack:
        return CONTRADICTS if strategy in HOME_ONLY else BALANCED
    if high < 1 - slack:
        return BELOW
    is_met = strategy in HOME_ONLY and low >= 1 - slack and high <= 1 + slack
    return AS_PREDICTED if is_met else INCONCLUSIVE


def _dispatcher(found: list[Curve], recorded: Recorded) -> Iterator[Finding]:
    """Compare the peak of each LockFree curve with what one dispatcher can deal out.

    The ceiling is the largest rate of any LockFree cell of the same depth and load: small packets, which
    workers finish faster than the dispatcher makes them. A curve cannot exceed the ceiling over its serial
    rate, nor its number of workers.
    """
    cells = [cell for cell in recorded.cells if cell.levels.get("strategy") == LOCK_FREE]
    for curve in found:
        if curve.subject.get("strategy") != LOCK_FREE or curve.subject["load"] == EXPONENTIAL:
            continue
        ceiling = smaller_packets(curve.subject, cells)
        fitting = within_cores(curve, recorded)
        serial = _serial_rate(curve, cells)
        if ceiling is None or len(fitting) < 2 or serial is None:  # noqa: PLR2004 - nothing to distribute
            continue
        yield _dispatcher_finding(curve.part(fitting), ceiling, serial, recorded)


def _serial_rate(curve: Curve, cells: list[CellTrials]) -> float | None:
    """Give the serial rate: measured, else from the line of one worker's time per packet over the work."""
    first = curve.points[0]
    if first.baseline is not None:
        return median_of(first.baseline.values)
    times = [
        (float(cell.levels["mean_work"]), 1 / median_of(cell.values))
        for cell in cells
        if cell.workers == 1 and cell.unit != "ratio" and int(cell.levels["mean_work"]) >= LINE_FROM
    ]
    if len(times) < 2 or first.workers != 1:  # noqa: PLR2004 - two points make a line
        return None
    work, time = np.array(times).T
    slope, intercept = np.polyfit(work, time, 1)
    rate = 1 / (intercept + slope * float(curve.subject["mean_work"]))
    return float(rate / first.ratio.value)


def _dispatcher_finding(curve: Curve, ceiling: CellTrials, serial: float, recorded: Recorded) -> Finding:
    peak = curve.peak
    most = int(curve.workers.max())
    bound = _bound(ceiling, peak, serial, recorded)
    predicted = min(bound.value or math.nan, float(most))
    relative = peak.ratio.value / predicted
    low, high = (bound.value, bound.value) if bound.low is None else (bound.low, bound.high)
    verdict = INCONCLUSIVE
    if low is not None and high is not None:
        verdict = BINDS if high < most else LEAVES_ROOM if low > most else INCONCLUSIVE
    surely = peak.ratio.low if math.isfinite(peak.ratio.low) else peak.ratio.value
    if surely > (1 + AGREEMENT) * min(high or math.inf, float(most)):
        verdict = CONTRADICTS
    return finding(
        "dispatcher",
        curve.subject,
        verdict,
        estimates={
            "bound": bound,
            "predicted": number(predicted, "ratio", "smaller of the bound and the number of workers"),
            "speedup": ratio_estimate(peak.ratio, f"largest ratio of medians, {BLOCKS}"),
            "relative": number(relative, "ratio", "largest speed-up over the predicted one"),
            "ceiling_rate": Estimate(
                finite(median_of(ceiling.values)), ceiling.unit, "median rate on the smaller packets"
            ),
        },
        facts={
            "workers": most,
            "ceiling_work": int(ceiling.levels["mean_work"]),
            "is_serial_measured": peak.baseline is not None,
            "is_met": abs(relative - 1) <= AGREEMENT,
            "agreement_percent": 100 * AGREEMENT,
        },
        evidence=of_trials((ceiling, *(point.cell for point in curve.points)), "peak against the dispatcher"),
        warnings=()
        if peak.baseline is not None
        else ("the serial rate is extrapolated from one worker's time per packet", NO_TRIALS),
    )


def _bound(ceiling: CellTrials, peak: Point, serial: float, recorded: Recorded) -> Estimate:
    method = "largest rate on smaller packets over the serial rate"
    if peak.baseline is None:
        return number(median_of(ceiling.values) / serial, "ratio", method)
    ratio = ratio_of_medians(ceiling.values, peak.baseline.values, recorded.draws)
    return ratio_estimate(ratio, f"{method}, {BLOCKS}")


def _depth(recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Compare the deepest queues with each shallower depth, all else equal."""
    by_rest: dict[tuple[str, ...], dict[int, CellTrials]] = {}
    for place, there in places(recorded).items():
        load, work, depth, workers = place
        for name, cell in there.items():
            by_rest.setdefault((load, work, workers, name), {})[int(depth)] = cell
    for (load, work, workers, name), depths in by_rest.items():
        deep = max(depths)
        for shallow in sorted(depths.keys() - {deep}):
            ratio = ratio_of_medians(depths[deep].values, depths[shallow].values, recorded.draws)
            estimate = ratio_estimate(ratio, f"median rate at the deeper over the shallower queue, {BLOCKS}")
            subject = {"load": load, "mean_work": work, "depth": str(shallow), "workers": workers}
            word = judge_rate(estimate, margin)
            yield finding(
                "depth",
                {**subject, "contender": name},
                DEPTHS.get(word, word),
                estimates={"gain": estimate},
                facts={
                    "shallow": shallow,
                    "deep": deep,
                    "oversubscribed": recorded.is_oversubscribed(int(workers)),
                },
                evidence=of_trials((depths[deep], depths[shallow]), "rate over depth"),
            )
