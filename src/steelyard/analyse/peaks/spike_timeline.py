"""The timeline of peaks: when in a run they came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.peaks.peak_search import Episodes

BINS: Final = 60


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Episodes of peaks per part of a run.

    Parameters
    ----------
    edge_ns : ndarray
        Shape (n + 1,): where the parts begin and end [ns].
    episodes : ndarray
        Shape (n,): episodes that began in each.
    excess_ns : ndarray
        Shape (n,): excess time of these episodes [ns].
    worst_ns : ndarray
        Shape (n,): longest call of these episodes; 0: none [ns].
    """

    edge_ns: NDArray[np.int64]
    episodes: NDArray[np.int64]
    excess_ns: NDArray[np.float64]
    worst_ns: NDArray[np.int64]


def spike_timeline(episodes: Episodes, start_ns: int, end_ns: int, *, bins: int = BINS) -> Timeline:
    """Count episodes of peaks in equal parts of a run.

    Parameters
    ----------
    episodes : Episodes
        Of the run.
    start_ns, end_ns : int
        Begin of its first and end of its last call [ns]; the end comes later.
    bins : int
        Number of parts, 1 or more.

    Returns
    -------
    Timeline
        Every episode is in exactly one part.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.analyse.peaks.peak_search import find_episodes
    >>> found = find_episodes(np.array([1, 7]), np.array([10, 90]), np.array([5, 7]), 1.0)
    >>> line = spike_timeline(found, 0, 100, bins=4)
    >>> line.episodes.tolist(), line.worst_ns.tolist()
    ([1, 0, 0, 1], [5, 0, 0, 7])
    """
    edges = np.linspace(start_ns, max(end_ns, start_ns + 1), bins + 1).astype(np.int64)
    place = np.clip(np.searchsorted(edges, episodes.start_ns, side="right") - 1, 0, bins - 1)
    worst = np.zeros(bins, np.int64)
    np.maximum.at(worst, place, episodes.worst_ns)
    return Timeline(
        edge_ns=edges,
        episodes=np.bincount(place, minlength=bins).astype(np.int64),
        excess_ns=np.bincount(place, weights=episodes.excess_ns, minlength=bins).astype(np.float64),
        worst_ns=worst,
    )
