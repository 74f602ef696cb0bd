"""Whether a change of level is more than values that came before: modes take turns, and levels do not.

A level that no earlier result reaches is new. Where earlier ones reach it, so that results may jump between
modes, the change must also be one of ranks, which is the same test whatever the distribution of results that
do not depend on each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

RANKS_LOSE: Final = 0.7
"""So much of the logarithm of the evidence ranks may lack where both tests must agree: then hardly a change
of normal results is lost to the second (simulated)."""

_WIDTHS: Final = 2.0
"""So many of its own widths beyond the new level a result belongs to it no longer: own choice."""


def reaches_back(logs: NDArray[np.float64], position: int) -> bool:
    """Tell whether a result before a position lies where those from there on do.

    One far beyond them is an outlier, and no earlier visit to their level: that is as wide as they are, twice
    over on its far side.

    Examples
    --------
    >>> reaches_back(np.array([1.0, 1.1, 1.0, 1.3, 1.4, 1.3]), 3)
    False
    >>> reaches_back(np.array([1.0, 1.3, 1.0, 1.3, 1.3, 1.3]), 3)
    True
    >>> reaches_back(np.array([1.0, 2.9, 1.0, 1.3, 1.31, 1.3]), 3)
    False
    """
    before, after = logs[:position], logs[position:]
    side = 1.0 if np.median(after) > np.median(before) else -1.0
    level, far = float(np.median(side * after)), float((side * after).max())
    beyond = far + _WIDTHS * max(float(np.ptp(after)), float(np.median(np.abs(before - np.median(before)))))
    return bool(((side * before >= level) & (side * before <= beyond)).any())


def rank_evidence(logs: NDArray[np.float64]) -> float:
    """Give the logarithm of the evidence for a change of the normal scores of ranks, none of them dependent.

    References
    ----------
    .. [1] van der Waerden (1952), Indag. Math. 14: normal scores lose nothing where the data are normal.
    """
    _, places, counts = np.unique(logs, return_inverse=True, return_counts=True)
    # Equal results share the mean of their ranks; `scipy.stats` has it, and takes 0.4 s of CPU to import.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    scores = scipy.special.ndtri((ranks - 0.5) / logs.size)
    evidence: float = _native.level_change(scores, np.ones(logs.size), np.zeros(logs.size), 0.0)[0]
    return evidence
