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


def reaches_back(logs: NDArray[np.float64], position: int) -> bool:
    """Tell whether a result before a position reaches the middle of those from there on.

    Examples
    --------
    >>> reaches_back(np.array([1.0, 1.1, 1.0, 1.3, 1.4, 1.3]), 3)
    False
    >>> reaches_back(np.array([1.0, 1.3, 1.0, 1.3, 1.3, 1.3]), 3)
    True
    """
    before, level = logs[:position], float(np.median(logs[position:]))
    return bool((before >= level).any() if level > np.median(before) else (before <= level).any())


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
