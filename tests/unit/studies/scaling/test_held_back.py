"""Planted causes are named: a pipeline is simulated whose dispatcher, workers and queues are known."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.scaling.bottleneck import pipeline_gains
from steelyard.analyse.scaling.speedup import draw_blocks
from steelyard.model import Plan
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.curves import curves
from steelyard.studies.scaling.findings.held_back import (
    CORES,
    DISPATCHER,
    HAND_OVER,
    IMBALANCE,
    QUEUES,
    SEVERAL,
    SLOW_WORKER,
    UNDECIDED,
    WORKERS,
    held_back_findings,
)
from steelyard.studies.scaling.recorded import CellTrials, Recorded

TRIALS = 5
ROUNDS = 400


def pipeline(
    stream: np.random.Generator, deal: float, service: tuple[float, ...], depth: int, scatter: float
) -> tuple[float, float, list[float]]:
    """Give wall time, idle time of the dispatcher and of each worker; one queue per worker, dealt in turn.

    `deal` and `service` are mean times per packet, `scatter` the shape of their gamma distributions'
    variation (0 is none, 1 exponential).
    """
    count = len(service)

    def times(mean: float) -> np.ndarray:
        if scatter == 0:
            return np.full(ROUNDS, mean)
        return stream.gamma(1 / scatter**2, mean * scatter**2, ROUNDS)

    work = [times(mean) for mean in service]
    drawn = [times(deal) for _ in range(count)]
    begun = [np.zeros(ROUNDS) for _ in range(count)]
    free = [0.0] * count
    idle = [0.0] * count
    now = waited = 0.0
    for turn in range(ROUNDS):
        for worker in range(count):
            now += drawn[worker][turn]
            # The place of the packet that was taken `depth` packets ago.
            room = begun[worker][turn - depth] if turn >= depth else 0.0
            waited += max(room - now, 0.0)
            now = max(now, room)
            idle[worker] += max(now - free[worker], 0.0)
            begun[worker][turn] = max(now, free[worker])
            free[worker] = begun[worker][turn] + work[worker][turn]
    # The end of a run finds packets in the queues: nobody waits for those.
    return now, waited, [each + max(now - end, 0.0) for each, end in zip(idle, free, strict=True)]


def cell(
    deal: float,
    service: tuple[float, ...],
    depth: int,
    *,
    scatter: float = 0.3,
    work: tuple[float, ...] | None = None,
    mean_work: int = 1000,
) -> CellTrials:
    """Give the cell of a simulated pipeline; `work` is what each worker had to do, by default its time."""
    stream = np.random.default_rng([depth, mean_work, len(service), int(1000 * deal)])
    runs = [pipeline(stream, deal, service, depth, scatter) for _ in range(TRIALS)]
    wall = np.array([each[0] for each in runs])
    workers = len(service)
    levels = {"load": "uniform", "mean_work": str(mean_work), "depth": str(depth), "strategy": "LockFree"}
    levels |= {"lock": "none", "workers": str(workers), "duration_ms": "100"}
    return CellTrials(
        depth,
        levels,
        workers,
        ROUNDS * workers / wall,
        "packets/ms",
        {"dispatcher_idle": np.array([each[1] for each in runs]), "wall": wall},
        {
            "worker_idle": np.array([each[2] for each in runs]),
            "worker_iterations": np.array([ROUNDS * np.array(work or service)] * TRIALS),
        },
    )


def verdicts(*cells: CellTrials, cores: int | None = 64, depths: tuple[str, ...] = ()) -> list[str]:
    serial = CellTrials(
        99,
        {**cells[0].levels, "strategy": "serial", "depth": "none"},
        cells[0].workers,
        np.full(TRIALS, 1.0),
        "packets/ms",
        {},
        {},
    )
    draws = draw_blocks(TRIALS, resamples=200, seed=1)
    plan = Plan("scaling", 1, {}, (), (), TRIALS, {})
    data = Recorded(plan, (serial, *cells), (), (), (), (), cores, draws, frozenset(), None)
    contrasts = [
        finding(
            "depth",
            {name: each.levels[name] for name in ("load", "mean_work", "depth", "workers")}
            | {"contender": "LockFree"},
            verdict,
            facts={"deep": 512, "shallow": 1},
        )
        for each, verdict in zip(cells, depths, strict=False)
    ]
    return [each.verdict for each in held_back_findings(curves(data), data, contrasts)]


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("depth", [8, 32, 512])
@pytest.mark.parametrize("scatter", [0.0, 0.3, 1.0])
def test_a_dispatcher_that_is_too_slow_is_named_whatever_the_workers_and_the_depth(
    workers: int, depth: int, scatter: float
) -> None:
    # Each worker needs half of the time in which the dispatcher comes round.
    slow = cell(1.0, (workers / 2,) * workers, depth, scatter=scatter)
    assert verdicts(slow) == [DISPATCHER]


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("depth", [8, 32, 512])
@pytest.mark.parametrize("scatter", [0.0, 0.3])
def test_workers_that_are_busy_set_the_pace(workers: int, depth: int, scatter: float) -> None:
    assert verdicts(cell(1.0, (4.0 * workers,) * workers, depth, scatter=scatter)) == [WORKERS]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_queue_that_is_too_shallow_is_named(workers: int) -> None:
    both = [cell(0.8, (1.0 * workers,) * workers, depth, scatter=1.0) for depth in (1, 512)]
    assert verdicts(both[0])[0] == QUEUES
    # With deep queues and a dispatcher that is ahead nothing is lost.
    assert verdicts(both[1])[0] == WORKERS


@pytest.mark.parametrize("workers", [2, 3, 7])
@pytest.mark.parametrize("depth", [8, 32])
def test_the_heaviest_source_and_a_slow_worker_are_told_apart(workers: int, depth: int) -> None:
    service = (20.0 * workers, *((8.0 * workers,) * (workers - 1)))
    assert verdicts(cell(1.0, service, depth)) == [IMBALANCE]
    assert verdicts(cell(1.0, service, depth, work=(1.0,) * workers)) == [SLOW_WORKER]


def test_more_threads_than_cores_that_all_want_one_are_held_back_by_the_cores() -> None:
    busy = cell(1.0, (4.0,) * 4, 32)
    assert verdicts(busy, cores=4) == [CORES]
    assert verdicts(busy, cores=5) == [WORKERS]
    # A dispatcher that needs next to no core leaves the workers theirs.
    assert verdicts(cell(0.05, (4.0,) * 4, 32), cores=4) == [WORKERS]
    assert verdicts(cell(0.05, (4.0,) * 4, 32), cores=3) == [CORES]
    waiting = cell(4.0, (4.0,) * 4, 32)
    assert verdicts(waiting, cores=4) == [DISPATCHER]
    assert verdicts(busy, cores=None) == [WORKERS]


def test_a_dispatcher_that_deals_faster_elsewhere_is_busy_with_handing_over() -> None:
    slow = cell(1.0, (1.0, 1.0), 32)
    fast = cell(0.3, (0.2, 0.2), 32, mean_work=100)
    assert verdicts(slow, fast)[0] == HAND_OVER
    # As fast as it ever was: nothing but dealing.
    same = cell(1.0, (0.2, 0.2), 32, mean_work=100)
    assert verdicts(slow, same)[0] == DISPATCHER


def test_a_depth_that_changed_nothing_is_no_cause() -> None:
    shallow = cell(1.0, (2.0, 2.0), 1, scatter=1.0)
    assert verdicts(shallow, depths=("depth binds",)) == [QUEUES]
    assert verdicts(shallow, depths=("depth does not matter",)) == [HAND_OVER]


@pytest.mark.parametrize("workers", [1, 3])
def test_waits_that_contradict_each_other_are_no_shallow_queue(workers: int) -> None:
    busy = cell(0.1, (1.0 * workers,) * workers, 32)
    # Others use the cores: whoever is woken gets one much later, whatever the queues hold.
    wall = busy.metrics["wall"]
    busy.metrics["dispatcher_idle"][:] = 0.95 * wall
    busy.parts["worker_idle"][:] = 0.9 * wall[:, None]
    assert verdicts(busy) == [UNDECIDED]
    assert verdicts(busy, depths=("depth binds",)) == [QUEUES]
    assert verdicts(busy, depths=("depth does not matter",)) == [HAND_OVER]


def test_a_cause_is_what_gains_alone_and_not_what_would_bind_next() -> None:
    # Two workers, one of them the bottleneck; a dispatcher that would be the next one.
    heavy = cell(1.75, (4.5, 0.8), 8)
    assert verdicts(heavy) == [IMBALANCE]
    found = pipeline_gains([0.22], [[0.0, 0.82]])
    assert found.dispatcher == pytest.approx(1)
    assert found.imbalance == pytest.approx(1 / 0.78)
    # Both at once: neither alone would change anything.
    assert verdicts(cell(2.25, (4.5, 0.8), 32, scatter=0.05)) == [SEVERAL]


def test_one_trial_decides_nothing_and_counts_of_waits_alone_say_nothing() -> None:
    slow = cell(1.0, (1.0, 1.0), 32)
    slow.metrics["dispatcher_idle"][1:] = np.nan
    assert verdicts(slow) == [UNDECIDED]
    del slow.metrics["dispatcher_idle"]
    slow.metrics["full_waits"] = np.full(TRIALS, 500.0)
    slow.metrics["dispatched"] = np.full(TRIALS, 1000.0)
    assert verdicts(slow) == []
