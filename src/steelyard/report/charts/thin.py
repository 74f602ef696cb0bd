"""Fewer points for a chart, without losing what stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARKS_PER_CHART: Final = 5000
"""More marks are slow to draw and hide each other."""


def envelope(values: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Choose points that keep the lowest and highest value of each stretch.

    Parameters
    ----------
    values : array of float64, shape (n,)
        In the order of the horizontal axis.
    limit : int
        Most points to keep, at least 2.

    Returns
    -------
    array of int64
        Ascending positions, at most `limit`; all of them when they are few enough.

    Examples
    --------
    >>> envelope(np.array([1.0, 9.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), 4)
    array([0, 1, 4, 5])
    """
    if values.size <= limit:
        return np.arange(values.size)
    stretches = np.array_split(np.arange(values.size), max(limit // 2, 1))
    kept = [(s[np.argmin(values[s])], s[np.argmax(values[s])]) for s in stretches if s.size]
    return np.unique(np.asarray(kept).ravel())
