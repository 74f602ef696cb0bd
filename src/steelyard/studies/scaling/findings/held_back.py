"""What holds each point of a curve back, from how long the dispatcher and the workers waited."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.bottleneck import Gains, pipeline_gains
from steelyard.analyse.scaling.speedup import limits_of, ratio_of_medians, resampled_medians
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.findings.estimates import BLOCKS, median_estimate, number, of_trials
from steelyard.studies.scaling.findings.strategy import HOME_ONLY, SURE, contender_of, smaller_packets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from steelyard.model import Estimate, Finding
    from steelyard.studies.scaling.curves import Curve, Point
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

    Vector = NDArray[np.float64]

WORKERS: Final = "the workers"
DISPATCHER: Final = "the dispatcher"
QUEUES: Final = "the depth of the queues"
IMBALANCE: Final = "the imbalance"
SLOW_WORKER: Final = "one slow worker"
HAND_OVER: Final = "the hand-over"
CORES: Final = "the cores"
SEVERAL: Final = "several causes at once"
UNDECIDED: Final = "undecided"

SMALL_LOSS: Final = 0.10
"""Share of the workers' time that may be lost while the workers count as what sets the pace."""

FULL: Final = 0.95
"""Share of the cores that threads must want, on average, for the cores to count as used up by a crowd."""

IRRELEVANT_DEPTH: Final = frozenset({"depth does not matter", "deeper is slower"})
DEPTH_BINDS: Final = "depth binds"
FEWEST: Final = 2
"""Trials without which nothing is judged."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """How long the parts of a pipeline waited, as shares of each trial; NaN where a trial has no record."""

    dispatcher: Vector
    workers: Vector

    @property
    def gains(self) -> Gains:
        return pipeline_gains(self.dispatcher, self.workers)

    def late(self, strategy: str) -> Vector:
        """Give the share of each trial by which waits exceed what they can be with nobody woken late.

        While a queue is full, whoever takes from it does not wait: its own worker, or every worker.
        """
        if strategy in HOME_ONLY:
            return np.asarray(self.dispatcher + self.workers.sum(axis=1) - self.workers.shape[1])
        return np.asarray(self.dispatcher + self.workers.mean(axis=1) - 1)


def held_back_findings(
    found: Iterable[Curve], recorded: Recorded, depths: Iterable[Finding]
) -> Iterator[Finding]:
    """Name for each point what a pipeline's workers lose most of their time to.

    The workers themselves, where they lose less than a tenth of it; the cores, where more threads want one
    than there are; else the cause without which the pipeline gains most by `pipeline_gains`, if it is the
    same in 95 % of the resamples; several, where none gains anything alone. A dispatcher that is busy though
    it has dealt faster elsewhere, and queues whose depth was changed without effect, are no cause: what then
    takes the time is the hand-over.

    A queue is never full and empty at once. Where dispatcher and workers together waited for longer than that
    allows, somebody was woken late, by a busy machine if not by the pipeline; queues are then the cause only
    where deeper ones were measured and are faster.
    """
    by_place: dict[tuple[str, ...], dict[int, Finding]] = defaultdict(dict)
    for each in depths:
        place = tuple(each.subject[name] for name in ("load", "mean_work", "workers", "contender"))
        by_place[place][int(each.subject["depth"])] = each
    for curve in found:
        for point in curve.points:
            waiting = _waiting(point.cell)
            if waiting is not None:
                levels = point.cell.levels
                place = (levels["load"], levels["mean_work"], levels["workers"], contender_of(levels))
                yield _held_back(curve, point, waiting, recorded, by_place[place])


def _waiting(cell: CellTrials) -> _Waiting | None:
    idle, wall = cell.metrics.get("dispatcher_idle"), cell.metrics.get("wall")
    workers = cell.parts.get("worker_idle")
    if idle is None or wall is None or workers is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        # A worker may wait until shortly after the end.
        found = _Waiting(np.clip(idle / wall, 0, 1), np.clip(workers / wall[:, None], 0, 1))
    return found if np.isfinite(found.gains.possible).any() else None


def _held_back(
    curve: Curve, point: Point, waiting: _Waiting, recorded: Recorded, depths: dict[int, Finding]
) -> Finding:
    cell = point.cell
    gains = waiting.gains
    dealt = _of_ceiling(cell, recorded)
    verdict = _cause(gains, recorded, point.workers)
    if verdict == IMBALANCE:
        verdict = _uneven(cell, waiting, recorded)
    if verdict == DISPATCHER and dealt is not None and dealt.high is not None and dealt.high < 1:
        verdict = HAND_OVER
    if verdict == QUEUES:
        verdict = _queues(cell, waiting, recorded, depths)

    def share(values: Vector) -> Estimate:
        return median_estimate(100 * values, "percent", recorded.draws)

    unevenness = finite(cell.unevenness("worker_packets"))
    return finding(
        "held_back_by",
        {**curve.subject, "workers": str(point.workers)},
        verdict,
        estimates={
            "dispatcher_idle": share(waiting.dispatcher),
            "worker_idle": share(waiting.workers.mean(axis=1)),
            "least_idle": share(waiting.workers.min(axis=1)),
            "most_idle": share(waiting.workers.max(axis=1)),
            **{
                role: median_estimate(getattr(gains, role), "ratio", recorded.draws)
                for role in ("queues", "imbalance", "dispatcher")
            },
            "demand": median_estimate(gains.demand, "cores", recorded.draws),
            **({} if dealt is None else {"of_ceiling": dealt}),
        },
        facts={
            "contender": contender_of(cell.levels),
            "workers": point.workers,
            "cores": recorded.cores,
            **({} if unevenness is None else {"worker_packets_cv": unevenness}),
        },
        evidence=of_trials((cell,), "shares of the run in which dispatcher and workers waited"),
    )


def _cause(gains: Gains, recorded: Recorded, workers: int) -> str:
    if int(np.isfinite(gains.possible).sum()) < FEWEST:
        return UNDECIDED
    if recorded.cores is not None and workers + 1 > recorded.cores:
        # A worker per core and a dispatcher that needs next to none are no crowd: the workers set the pace.
        most = FULL * recorded.cores if workers > recorded.cores else recorded.cores + SMALL_LOSS
        low, high = limits_of(resampled_medians(gains.demand, recorded.draws))
        if high >= most:
            return CORES if low >= most else UNDECIDED
    least, most = limits_of(resampled_medians(1 - 1 / gains.possible, recorded.draws))
    if least <= SMALL_LOSS:
        return WORKERS if most <= SMALL_LOSS else UNDECIDED
    return _largest(
        {
            QUEUES: resampled_medians(gains.queues, recorded.draws),
            IMBALANCE: resampled_medians(gains.imbalance, recorded.draws),
            DISPATCHER: resampled_medians(gains.dispatcher, recorded.draws),
        }
    )


def _largest(parts: dict[str, Vector]) -> str:
    """Give the cause of the largest gain, if that is certain and more than a small one."""
    largest = np.max(list(parts.values()), axis=0)
    if limits_of(largest)[1] < 1 / (1 - SMALL_LOSS):
        return SEVERAL
    surest = max(parts, key=lambda name: float(np.mean(parts[name] == largest)))
    return surest if float(np.mean(parts[surest] == largest)) >= SURE else UNDECIDED


def _queues(cell: CellTrials, waiting: _Waiting, recorded: Recorded, depths: dict[int, Finding]) -> str:
    """Say whether queues are too shallow, or what passes through them is handed over late."""
    deeper = depths.get(int(cell.levels["depth"]))
    # The deepest queues are compared with the next shallower ones: these may have been deep enough.
    nearest = deeper or depths.get(max(depths, default=0))
    if nearest is not None and nearest.verdict in IRRELEVANT_DEPTH:
        return HAND_OVER
    is_faster_deeper = deeper is not None and deeper.verdict == DEPTH_BINDS
    _, late = limits_of(resampled_medians(waiting.late(cell.levels["strategy"]), recorded.draws))
    return QUEUES if is_faster_deeper or late <= SMALL_LOSS else UNDECIDED


def _uneven(cell: CellTrials, waiting: _Waiting, recorded: Recorded) -> str:
    """Say whether the busiest worker had more to do than the others, or needed longer for the same."""
    work = cell.parts.get("worker_iterations")
    if work is None:
        return IMBALANCE
    busy = 1 - waiting.workers
    busiest = np.argmax(np.where(np.isfinite(busy), busy, -np.inf), axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        more, longer = (
            np.log(np.take_along_axis(each, busiest, axis=1)[:, 0] / each.mean(axis=1))
            for each in (work, busy)
        )
    # Half of the difference in time is where one explanation outweighs the other.
    low, high = limits_of(resampled_medians(more - longer / 2, recorded.draws))
    return IMBALANCE if low > 0 else SLOW_WORKER if high < 0 else UNDECIDED


def _of_ceiling(cell: CellTrials, recorded: Recorded) -> Estimate | None:
    """Give the rate over the largest that the same workers reach with smaller packets."""
    same = [
        each
        for each in recorded.cells
        if all(each.levels.get(name) == cell.levels[name] for name in ("strategy", "lock", "workers"))
    ]
    ceiling = smaller_packets(cell.levels, same)
    if ceiling is None:
        return None
    ratio = ratio_of_medians(cell.values, ceiling.values, recorded.draws)
    method = f"median rate over the largest on smaller packets, {BLOCKS}"
    return number(ratio.value, "ratio", method, (ratio.low, ratio.high), ratio.trials)
