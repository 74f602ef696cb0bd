"""What a pipeline loses of its workers' time, and to what, from how long each part of it waited."""

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
class Losses:
    """By how much a pipeline would be faster without each of three causes; their product is `possible`.

    Parameters
    ----------
    queues, imbalance, dispatcher : ndarray
        Factors from 1, shape (trials,).
    demand : ndarray
        Threads that wanted a core at a time, on average; shape (trials,).
    """

    queues: Vector
    imbalance: Vector
    dispatcher: Vector
    demand: Vector

    @property
    def possible(self) -> Vector:
        """By how much it would be faster if every worker were busy all the time."""
        return self.queues * self.imbalance * self.dispatcher


def pipeline_losses(dispatcher_idle: ArrayLike, worker_idle: ArrayLike) -> Losses:
    """Split the time that workers of a pipeline lose among its queues, their imbalance and the dispatcher.

    With busy shares d of the dispatcher and u of each worker, throughput can rise until the busiest part is
    busy all the time: by 1 / max(d, max u) with queues that never make either side wait, then by
    max(d, max u) / max(d, mean u) with the work spread evenly, then by max(d, mean u) / mean u with a
    dispatcher that takes no time. The product is 1 / mean u.

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
    >>> found = pipeline_losses([0.02], [[0.6, 0.58]])  # the dispatcher is busy, workers wait
    >>> [round(float(each[0]), 2) for each in (found.queues, found.imbalance, found.dispatcher)]
    [1.02, 1.0, 2.39]
    """
    dispatcher = np.clip(1 - np.asarray(dispatcher_idle, dtype=np.float64), 0, 1)
    workers = np.clip(1 - np.asarray(worker_idle, dtype=np.float64), LEAST_BUSY, 1)
    mean, most = workers.mean(axis=-1), workers.max(axis=-1)
    busiest, even = np.maximum(dispatcher, most), np.maximum(dispatcher, mean)
    return Losses(1 / busiest, busiest / even, even / mean, dispatcher + workers.sum(axis=-1))
