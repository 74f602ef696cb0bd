"""What holds a pipeline back, from how long each part of it waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

LEAST_BUSY = 1e-3
"""Share of the time below which a part counts as just measurable: a lower one would make losses infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """By how much a pipeline would be faster without one of three causes, the others left as they are.

    Parameters
    ----------
    queues, imbalance, dispatcher : ndarray
        Factors from 1, shape (trials,).
    possible : ndarray
        Factor with every worker busy all the time; larger than each of the others where they hold together.
    demand : ndarray
        Threads that wanted a core at a time, on average; shape (trials,).
    """

    queues: Vector
    imbalance: Vector
    dispatcher: Vector
    possible: Vector
    demand: Vector


def pipeline_gains(dispatcher_idle: ArrayLike, worker_idle: ArrayLike) -> Gains:
    """Give what a pipeline would gain from deeper queues, from balance, and from a faster dispatcher.

    With busy shares d of the dispatcher and u of each worker, throughput can rise until the busiest part is
    busy all the time: by 1 / max(d, max u) with queues that never make either side wait. Where a part is
    busy all the time, the work spread evenly gives max(d, max u) / max(d, mean u), and a dispatcher that
    takes no time max(d, max u) / max u.

    Parameters
    ----------
    dispatcher_idle : array_like
        Shape (trials,): share of the run in which the dispatcher waited for room, in [0, 1].
    worker_idle : array_like
        Shape (trials, workers): share of the run in which each worker waited for a packet, in [0, 1].

    References
    ----------
    .. [1] Denning & Buzen (1978), Computing Surveys 10(3): throughput is bounded by the utilisation of the
       busiest device, at 1.

    Examples
    --------
    >>> found = pipeline_gains([0.02], [[0.6, 0.58]])  # the dispatcher is busy, workers wait
    >>> [round(float(each[0]), 2) for each in (found.queues, found.imbalance, found.dispatcher)]
    [1.02, 1.0, 2.33]
    """
    dispatcher = np.clip(1 - np.asarray(dispatcher_idle, dtype=np.float64), 0, 1)
    workers = np.clip(1 - np.asarray(worker_idle, dtype=np.float64), LEAST_BUSY, 1)
    mean, most = workers.mean(axis=-1), workers.max(axis=-1)
    busiest = np.maximum(dispatcher, most)
    return Gains(
        queues=1 / busiest,
        imbalance=busiest / np.maximum(dispatcher, mean),
        dispatcher=busiest / most,
        possible=1 / mean,
        demand=dispatcher + workers.sum(axis=-1),
    )
