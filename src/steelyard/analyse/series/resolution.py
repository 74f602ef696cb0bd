"""Few exact values: what a series was rounded to, and what it may have been before."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_TIED: Final = 0.5
"""Distinct values at most, as a share of all, where values are taken for rounded: own choice."""

_GOLDEN: Final = 0.618_033_988_749_894_9


def resolution(values: Array) -> float:
    """Give the step that the values of a series lie on; 0 where most of them differ.

    Two distinct values do not show a step, only that it is no larger than their difference: then it is also
    no larger than the last digit that is not zero in both.

    Examples
    --------
    >>> resolution(np.array([10.0, 10.0, 11.0, 10.0, 12.0, 10.0])), resolution(np.array([1.0, 1.1, 1.2]))
    (1.0, 0.0)
    >>> resolution(np.repeat([104857600.0, 209715200.0], 5))
    100.0
    """
    distinct = np.unique(values)
    if not 1 < distinct.size <= _TIED * values.size:
        return 0.0
    step = float(np.diff(distinct).min())
    if distinct.size > 2:  # noqa: PLR2004 - two show no step
        return step
    places = [Decimal(repr(value)).normalize().as_tuple().exponent for value in distinct.tolist()]
    return min(step, 10.0 ** min(int(place) for place in places))


def spread(values: Array) -> Array:
    """Give values that these may be rounded from: evenly over half a step around each, the same each time.

    Without it equal results would have no noise at all, and three of the next value would be a new level.

    References
    ----------
    .. [1] Weyl (1916), Math. Ann. 77: multiples of the golden ratio lie evenly in each stretch.
    """
    step = resolution(values)
    if step == 0:
        return values
    places = np.arange(1, values.size + 1) * _GOLDEN % 1 - 0.5
    # No value of a positive quantity is rounded from one below zero.
    return np.maximum(values + step * places, values / 2)
