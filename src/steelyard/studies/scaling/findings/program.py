"""What a program shows of itself: whether more workers use more cores, whether its runs are too short."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import median_of, ratio_of_medians
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.curves import listed, within_cores
from steelyard.studies.scaling.findings.estimates import (
    BLOCKS,
    median_estimate,
    number,
    of_trials,
    ratio_estimate,
)
from steelyard.studies.scaling.rates import OUTSIDE_CPU, OUTSIDE_WALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.model import Estimate, Finding
    from steelyard.studies.scaling.curves import Curve, Point
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

SMALL_GROWTH: Final = 1.1
"""Factor up to which neither cores used nor the rate count as grown with the workers."""

START_SHARE: Final = 0.05
"""Share of a run that starting a process may take; above it the run says little of the program."""

IGNORED: Final = "more workers use no more cores"
USED: Final = "more workers use more cores"
UNDECIDED: Final = "undecided"
TOO_SHORT: Final = "too short to judge"


def program_findings(found: list[Curve], recorded: Recorded) -> Iterator[Finding]:
    """Say of each curve whether more workers use more cores, and which runs are too short."""
    for curve in found:
        growth = _growth(curve, recorded)
        if growth is not None:
            yield _thread_count(curve, growth, recorded)
        short = tuple(point for point in curve.points if is_short(point, recorded))
        if short:
            yield _short_runs(curve, short, recorded)


def cores_used(cell: CellTrials) -> NDArray[np.float64] | None:
    """Give CPU time over wall time of each trial, seen from outside; nothing where that was not recorded."""
    cpu, wall = cell.metrics.get(OUTSIDE_CPU), cell.metrics.get(OUTSIDE_WALL)
    if cpu is None or wall is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(cpu / wall)


def ignores_workers(curve: Curve, recorded: Recorded) -> bool:
    """Whether more workers certainly use no more cores, and are not certainly faster."""
    growth = _growth(curve, recorded)
    return growth is not None and _judge(curve, growth, recorded) == IGNORED


def is_short(point: Point, recorded: Recorded) -> bool:
    """Whether starting a process takes more than a twentieth of the runs whose wall time is the rate."""
    if not recorded.is_wall_time or recorded.start_ns is None:
        return False
    lengths = [
        median_of(cell.metrics[OUTSIDE_WALL]) for cell in (point.cell, point.baseline) if cell is not None
    ]
    return min(lengths) * START_SHARE < recorded.start_ns


def _growth(curve: Curve, recorded: Recorded) -> Estimate | None:
    """Give the cores used with the most workers up to the cores over those with the fewest."""
    fitting = within_cores(curve, recorded)
    if len(fitting) < 2 or "program" not in curve.subject:  # noqa: PLR2004 - nothing grows
        return None
    first, last = cores_used(fitting[0].cell), cores_used(fitting[-1].cell)
    if first is None or last is None or is_short(fitting[-1], recorded):
        return None
    ratio = ratio_of_medians(last, first, recorded.draws)
    if not math.isfinite(ratio.value):
        return None
    return ratio_estimate(ratio, f"cores used with most over those with fewest workers, {BLOCKS}")


def _judge(curve: Curve, growth: Estimate, recorded: Recorded) -> str:
    if growth.low is None or growth.high is None:
        return UNDECIDED
    if growth.low > SMALL_GROWTH:
        return USED
    # Beside other load the rate is unsteady, and the cores used are not: they decide.
    gain = within_cores(curve, recorded)[-1].ratio
    return IGNORED if growth.high < SMALL_GROWTH and gain.low < SMALL_GROWTH else UNDECIDED


def _thread_count(curve: Curve, growth: Estimate, recorded: Recorded) -> Finding:
    fitting = within_cores(curve, recorded)
    few, most = (
        median_estimate(used, "cores", recorded.draws)
        for used in (cores_used(point.cell) for point in (fitting[0], fitting[-1]))
        if used is not None
    )
    return finding(
        "thread_count",
        curve.subject,
        _judge(curve, growth, recorded),
        estimates={"growth": growth, "fewest": few, "most": most},
        facts={"fewest_workers": fitting[0].workers, "most_workers": fitting[-1].workers},
        evidence=of_trials((fitting[0].cell, fitting[-1].cell), "cores used"),
    )


def _short_runs(curve: Curve, short: tuple[Point, ...], recorded: Recorded) -> Finding:
    shortest = min(median_of(point.cell.metrics[OUTSIDE_WALL]) for point in short)
    return finding(
        "short_runs",
        curve.subject,
        TOO_SHORT,
        estimates={
            "shortest": number(shortest, "ns", "shortest median of the trials"),
            "start": number(
                recorded.start_ns or math.nan, "ns", "what a run of the machine's own cells adds"
            ),
        },
        facts={"workers": listed(short), "start_percent": 100 * START_SHARE},
        evidence=of_trials((point.cell for point in short), "wall time of the runs"),
    )
