"""What a message still owes to the one before it: costs by the size of the previous message."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Whole = NDArray[np.int64]

PREVIOUS: Final = (-1.0, 4000.0, 100_000.0, 1_000_000.0, np.inf)
"""Ends of the classes of the previous size [bytes]."""

SIZES: Final = (-1.0, 256.0, 4000.0, 60_000.0, 1_000_000.0, np.inf)
"""Ends of the classes of the size [bytes]."""

FEWEST: Final = 20
"""Messages of a class that a ratio needs."""

CUT: Final = 0.005
"""Share of log residuals at either end that are cut to the ones before, for what is explained."""


@dataclass(frozen=True, slots=True)
class AfterSize:
    """Messages after ones of (low, high] bytes.

    Parameters
    ----------
    low, high : float
        Bytes.
    count : int
        Messages.
    ratio, ratio_low, ratio_high : float
        Median of measured over the curve, with its 95 % interval.
    """

    low: float
    high: float
    count: int
    ratio: float
    ratio_low: float
    ratio_high: float


@dataclass(frozen=True, slots=True)
class CarryOver:
    """What the previous size explains for messages of (low, high] bytes.

    Parameters
    ----------
    low, high : float
        Bytes.
    count : int
        Messages.
    explained : float
        Share of the variance of the log residual that the class of the previous size explains, adjusted for
        its number of classes; 0 where it explains nothing.
    after : tuple of AfterSize
        By previous size, ascending; classes with fewer than 20 messages are left out.
    """

    low: float
    high: float
    count: int
    explained: float
    after: tuple[AfterSize, ...]


def carry_over(size: Whole, previous: Whole, ratio: Vector) -> tuple[CarryOver, ...]:
    """Compare messages after small and after large ones.

    Parameters
    ----------
    size, previous, ratio : ndarray
        Shape (n,): bytes, bytes of the message before (-1: none), measured over the curve.

    Returns
    -------
    tuple of CarryOver
        By size, ascending; without classes in which fewer than two previous sizes can be compared.
    """
    found = []
    for low, high in pairwise(SIZES):
        here = (size > low) & (size <= high) & (previous >= 0)
        place = np.searchsorted(np.array(PREVIOUS), previous[here], side="left") - 1
        logs = np.log(ratio[here])
        kept = [number for number in range(len(PREVIOUS) - 1) if np.sum(place == number) >= FEWEST]
        if len(kept) < 2:  # noqa: PLR2004 - nothing to compare
            continue
        after = tuple(_after(number, np.exp(logs[place == number])) for number in kept)
        inside = np.isin(place, kept)
        explained = _explained(logs[inside], place[inside])
        found.append(CarryOver(low, high, int(here.sum()), explained, after))
    return tuple(found)


def _after(number: int, ratio: Vector) -> AfterSize:
    low, high, _ = _native.order_interval(np.sort(ratio), 0.5, level=0.95)
    return AfterSize(PREVIOUS[number], PREVIOUS[number + 1], ratio.size, float(np.median(ratio)), low, high)


def _explained(logs: Vector, place: Whole) -> float:
    low, high = np.quantile(logs, [CUT, 1 - CUT])
    values = np.clip(logs, low, high)
    total = float(np.sum((values - values.mean()) ** 2))
    groups, at = np.unique(place, return_inverse=True)
    freedom = values.size - groups.size
    if total <= 0 or freedom <= 0:
        return 0.0
    means = np.bincount(at, weights=values) / np.bincount(at)
    rest = float(np.sum((values - means[at]) ** 2))
    return max(0.0, 1.0 - (rest / freedom) / (total / (values.size - 1)))
