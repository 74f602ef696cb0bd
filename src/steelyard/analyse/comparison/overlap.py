"""Whether parallel workers really ran at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERLAP_SHARE: Final = 0.95
"""An iteration ran under full load if at least this share of it lies inside the window in which every
worker was running."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """Start and end of each iteration of one batch, in seconds of one clock.

    Parameters
    ----------
    worker, iteration : ndarray of int64
        Labels, shape (n,); the last iteration of a worker is the one of the largest number.
    start, end : ndarray of float64
        Stamps [s], shape (n,).
    """

    worker: NDArray[np.int64]
    iteration: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def parallel_ratio(stamps: Stamps) -> float | None:
    """Give the share of a batch in which all its workers were running, by the source's formula.

    (min start of the last iteration - max start of the first) / (max start - min start), over all workers.
    "Last" is numeric.

    Returns
    -------
    float or None
        At most 1, below 0 if workers ran one after the other; ``None`` for fewer than 2 workers or a single
        start.

    References
    ----------
    .. [1] ReCodEx stability measurements, validation of parallel worker results.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.array([0.0, 1.0, 2.0, 0.5, 1.5, 2.5])
    >>> stamps = Stamps(np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, 10, 1, 2, 10]), start, start + 1)
    >>> parallel_ratio(stamps)
    0.6
    """
    workers = np.unique(stamps.worker)
    if workers.size < 2:  # noqa: PLR2004 - one worker is parallel to nothing
        return None
    first, last = _edges(stamps)
    whole = float(stamps.start.max() - stamps.start.min())
    if whole <= 0:
        return None
    return float((stamps.start[last].min() - stamps.start[first].max()) / whole)


def overlapping(stamps: Stamps) -> NDArray[np.bool_]:
    """Mark the iterations that ran while every worker of the batch was running.

    The window reaches from the latest first start to the earliest last end. All iterations of a single
    worker are marked.

    Returns
    -------
    ndarray of bool
        Shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> start = np.array([0.0, 1.0, 2.0, 0.0, 1.1, 2.2])
    >>> stamps = Stamps(np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, 3, 1, 2, 3]), start, start + 1)
    >>> overlapping(stamps).tolist()
    [True, True, True, True, True, False]
    """
    first, last = _edges(stamps)
    begin, finish = stamps.start[first].max(), stamps.end[last].min()
    inside = np.minimum(stamps.end, finish) - np.maximum(stamps.start, begin)
    return np.asarray(inside >= OVERLAP_SHARE * (stamps.end - stamps.start), dtype=np.bool_)


def _edges(stamps: Stamps) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the positions of the first and the last iteration of each worker."""
    order = np.lexsort((stamps.iteration, stamps.worker))
    changes = np.flatnonzero(np.diff(stamps.worker[order]))
    first = order[np.concatenate(([0], changes + 1))]
    last = order[np.concatenate((changes, [order.size - 1]))]
    return first.astype(np.int64), last.astype(np.int64)
