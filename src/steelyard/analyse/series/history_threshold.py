"""What the evidence for a change of a history must exceed, so that looking again costs no error.

Calibrated by simulation for somebody who looks after each new result: of 100 looks at a history without a
change, one or more say *slower* in at most 5 % of histories (`tests/statistical/test_history.py`).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

NOMINAL: Final = 0.05
"""Error that the thresholds are calibrated for."""

# What the logarithm of the evidence of 20 results must exceed, by the autocorrelation allowed for.
_ALLOWED: Final = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)
_THRESHOLDS: Final = (1.1, 1.1, 1.1, 1.0, 1.05, 1.1)

# Longer histories must exceed more, by so much times the logarithm of their length: most of the error is
# spent where changes are hardest to see.
_FROM: Final = 20
_GROWTHS: Final = (3.0, 3.5, 4.0, 4.0, 3.5, 3.0)
_LATE: Final = 100
_LATE_GROWTH: Final = 1.5

# So must shorter ones: a little where dependence can hardly be told from a change, much below 10 results.
_EARLY_GROWTH: Final = 0.5
_HARDLY_TOLD: Final = 0.3
_FEW: Final = 10
_OF_FEW: Final = 3.0


def threshold(size: int, allowed: float, error: float = NOMINAL) -> float:
    """Give what the logarithm of the evidence of a history must exceed.

    Parameters
    ----------
    size : int
        Results of the history.
    allowed : float
        Autocorrelation allowed for, in [0, 0.7].
    error : float
        Largest share of unchanged histories that are called slower at one or more of 100 looks, in (0, 1).

    Returns
    -------
    float
        Own definition: calibrated by simulation.
    """
    base = float(np.interp(allowed, _ALLOWED, _THRESHOLDS))
    base += float(np.interp(allowed, _ALLOWED, _GROWTHS)) * math.log(min(max(size, _FROM), _LATE) / _FROM)
    base += _EARLY_GROWTH * min(allowed / _HARDLY_TOLD, 1.0) * math.log(_FROM / min(max(size, _FEW), _FROM))
    base += _LATE_GROWTH * math.log(max(size, _LATE) / _LATE)
    return base + (_OF_FEW if size < _FEW else 0.0) + math.log(NOMINAL / error)
