"""The published rule: two samples compared by the position of their bootstrap intervals."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analyse.intervals.bootstrap import Limits


class PublishedClass(StrEnum):
    """Position of the first sample's interval against the second's."""

    HIGHER = "higher"
    LESSER = "lesser"
    SAME = "same"
    OVERLAP = "overlap"
    NA = "NA"


def published_class(first: Limits | None, second: Limits | None) -> PublishedClass:
    """Classify two intervals by the rule of the isolation study.

    `higher` if the first lies wholly above the second, `lesser` if wholly below, `same` if one lies
    strictly inside the other, `overlap` otherwise: touching and equal ends are overlaps. `NA` if a sample
    is empty.

    Parameters
    ----------
    first, second : tuple of float, or None
        Lower and upper limit, same unit; ``None`` for an empty sample.

    Returns
    -------
    PublishedClass
        Of the first against the second. The rule ignores that iterations of one worker belong together, and
        calls a difference "same" without a margin; it is shown, not used, for verdicts.

    References
    ----------
    .. [1] ReCodEx stability measurements, comparison of 0.95 bootstrap intervals (mean, standard deviation).

    Examples
    --------
    >>> published_class((2.0, 3.0), (1.0, 1.5)).value
    'higher'
    >>> published_class((1.0, 2.0), (2.0, 3.0)).value
    'overlap'
    >>> published_class((1.0, 4.0), (2.0, 3.0)).value
    'same'
    """
    if first is None or second is None or any(map(math.isnan, (*first, *second))):
        return PublishedClass.NA
    if first[0] > second[1]:
        return PublishedClass.HIGHER
    if second[0] > first[1]:
        return PublishedClass.LESSER
    if _inside(first, second) or _inside(second, first):
        return PublishedClass.SAME
    return PublishedClass.OVERLAP


def _inside(inner: Limits, outer: Limits) -> bool:
    return outer[0] < inner[0] and inner[1] < outer[1]
