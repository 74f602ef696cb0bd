"""Whether values have more than one mode: the dip test, as a hint."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEWEST: Final = 20
"""Fewer values show two modes too often by chance to be worth a hint."""

MOST: Final = 400
"""Of more values, so many quantiles are tested: modes worth a hint show in them."""

CRITICAL: Final = 0.605
"""99 % quantile of sqrt(n) times the dip of uniform values, the unimodal law with the largest dips.

SOURCE: own simulation, n = 200 and 400; smaller n have smaller quantiles (a test repeats it).
"""


def has_several_modes(values: Array) -> bool | None:
    """Tell whether values have more than one mode, with an error of at most 1 %.

    Values of a clock that moves in steps are spread evenly over their step first.

    Parameters
    ----------
    values : ndarray
        Shape (n,), finite, any order.

    Returns
    -------
    bool or None
        ``None`` for fewer than 20 values.

    Examples
    --------
    >>> halves = np.concatenate([np.linspace(1.0, 1.1, 50), np.linspace(1.3, 1.4, 50)])
    >>> has_several_modes(halves), has_several_modes(halves[:50])
    (True, False)
    """
    return has_several_modes_sorted(np.sort(values))


def has_several_modes_sorted(ascending: Array) -> bool | None:
    """Tell the same of values in ascending order, shape (n,)."""
    if ascending.size < FEWEST:
        return None
    spread = _spread_ties(ascending)
    if spread.size > MOST:
        spread = _quantiles(spread, (np.arange(MOST) + 0.5) / MOST)
    if spread[0] == spread[-1]:
        return False
    return math.sqrt(spread.size) * dip(spread) > CRITICAL


def _quantiles(ascending: Array, probabilities: Array) -> Array:
    """Give the quantiles of sorted values as `numpy.quantile` does, which would partition them again."""
    places = (ascending.size - 1) * probabilities
    below = np.floor(places).astype(np.int64)
    share = places - below
    low, high = ascending[below], ascending[below + 1]
    step = high - low
    found: Array = np.where(share >= 0.5, high - step * (1 - share), low + step * share)  # noqa: PLR2004
    return found


def _spread_ties(ascending: Array) -> Array:
    """Move equal values apart, evenly over the smallest step between different ones."""
    first = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
    if first.size in (1, ascending.size):
        return ascending
    step = float(np.diff(ascending[first]).min())
    counts = np.diff(first, append=ascending.size)
    is_tied = counts > 1
    first, counts = first[is_tied], counts[is_tied]
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = ascending.copy()
    spread[np.repeat(first, counts) + place] += ((place + 0.5) / np.repeat(counts, counts) - 0.5) * step
    # No value passes another one, but for the rounding of large ones.
    return spread if (spread[1:] >= spread[:-1]).all() else np.sort(spread)


def dip(ascending: Array) -> float:
    """Give the dip: the largest distance of the empirical distribution from the nearest unimodal one.

    Parameters
    ----------
    ascending : ndarray
        Shape (n,), n >= 2, finite, strictly ascending.

    Returns
    -------
    float
        From 1 / (2 n), below 1 / 4.

    References
    ----------
    .. [1] Hartigan & Hartigan (1985), Annals of Statistics 13, section 4: the modal interval shrinks while
       the greatest convex minorant and the least concave majorant inside it are further apart than twice
       the distance found outside.

    Examples
    --------
    >>> dip(np.array([1.0, 2.0, 3.0, 4.0]))
    0.125
    """
    count = ascending.size
    above = np.arange(1, count + 1) / count
    below = above - 1 / count
    low, high, found = 0, count - 1, 0.5 / count
    while high > low:
        inside = slice(low, high + 1)
        minorant = _native.convex_corners(ascending[inside], below[inside]) + low
        majorant = _native.convex_corners(ascending[inside], -above[inside]) + low
        under = np.interp(ascending[inside], ascending[minorant], below[minorant])
        over = np.interp(ascending[inside], ascending[majorant], above[majorant])
        corners = np.union1d(minorant, majorant)
        gaps = (over - under)[corners - low]
        if gaps.max() <= 2 * found + 1e-15:
            break
        widest = corners[int(gaps.argmax())]
        begin, end = int(minorant[minorant <= widest].max()), int(majorant[majorant >= widest].min())
        left = above[low : begin + 1] - under[: begin + 1 - low]
        right = over[end - low :] - below[end : high + 1]
        found = max(found, float(left.max()) / 2, float(right.max()) / 2)
        if (begin, end) == (low, high):
            break
        low, high = begin, end
    return found
