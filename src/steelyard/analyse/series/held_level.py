"""How much slower the newest level of a history is than the one it is compared with, and if it is new."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.series.history import SeriesHistory

_SHORTEST_VISIT: Final = 3
"""Fewest results in a row that were at a level: as many as make one."""

_ERRORS: Final = 2.0
"""Standard errors that two visits of a level may differ by: own choice, about 95 %."""

_NORMAL_DIFFERENCE: Final = 0.953_872_6
"""Median absolute difference of two normal values, in units of their standard deviation."""


def slowdown(
    history: SeriesHistory, accepted: Sequence[int] = (), *, is_rate: bool, margin: float
) -> float | None:
    """Give how much slower the newest level is than the one it is compared with.

    That is the level that was accepted last, or the first; each faster level after it takes its place.

    Parameters
    ----------
    history : SeriesHistory
        What the series does.
    accepted : sequence of int
        Results whose level is accepted, from 0. A result that may belong to a level, because the place of the
        change is not sure, counts for it.
    is_rate : bool
        Whether more is better.
    margin : float
        Largest relative difference that counts as none.

    Returns
    -------
    float or None
        Newest level over that level; ``None`` where it is not slower by more than the margin.

    Examples
    --------
    >>> from steelyard.analyse.series.history import Change, SeriesHistory
    >>> changes = (Change(10, 0.9, 0.89, 0.91, 0.01, (10, 10)), Change(20, 1.2, 1.19, 1.21, 0.01, (19, 21)))
    >>> found = SeriesHistory(changes, 0.01, 0.0, False)
    >>> slowdown(found, is_rate=False, margin=0.02), slowdown(found, [19], is_rate=False, margin=0.02)
    (1.2, None)
    """
    newest_accepted = max(accepted, default=0)
    since = [change for change in history.changes if change.places[0] > newest_accepted]
    bound = math.log1p(margin)
    cost = 0.0
    for change in since:
        step = math.log(change.ratio) * (-1 if is_rate else 1)
        # A faster level is the one to hold, so that what is lost of it is seen.
        cost = max(cost + step, 0.0) if step < 0 else cost + step
    if cost <= bound:
        return None
    return math.exp(-cost if is_rate else cost)


def seen_before(
    values: NDArray[np.float64],
    history: SeriesHistory,
    slower: float,
    accepted: Sequence[int] = (),
    *,
    is_rate: bool,
    margin: float,
) -> tuple[int, int] | None:
    """Give the results that were at the newest level before, where it came and went: a mode that recurs.

    It came after results of the level to hold and went before others of it, since the level that was accepted
    last. A level that only the beginning of a history had is none that came: what was gained on it is lost.

    Parameters
    ----------
    values : ndarray
        Shape (n,), positive: one value per result.
    history : SeriesHistory
        What the series does; with a change.
    slower : float
        Newest level over the one to hold, as `slowdown` gives it.
    accepted : sequence of int
        Results whose level is accepted, from 0.
    is_rate : bool
        Whether more is better.
    margin : float
        Largest relative difference that counts as none.

    Returns
    -------
    tuple of int or None
        First and last result of the latest visit, from 0; ``None`` where there was none.

    Examples
    --------
    >>> from steelyard.analyse.series.history import Change, SeriesHistory
    >>> values = np.repeat([1.0, 1.2, 1.0, 1.2], 5)
    >>> changes = (Change(15, 1.2, 1.19, 1.21, 0.01),)
    >>> seen_before(values, SeriesHistory(changes, 0.01, 0.0, False), 1.2, is_rate=False, margin=0.02)
    (5, 9)
    """
    costs = np.log(values) * (-1 if is_rate else 1)
    middle = float(costs[history.changes[-1].position :].mean()) - abs(math.log(slower)) / 2
    visits = _visits(costs, middle, max(accepted, default=0))
    slow = [place for place, (is_slow, _, _) in enumerate(visits) if is_slow]
    # Two long visits in a row are of different sides; but for the first, a slow one comes after a fast one.
    if len(slow) < 2 or slow[-2] == 0:  # noqa: PLR2004 - one visit is the newest
        return None
    noise = float(np.median(np.abs(np.diff(costs)))) / _NORMAL_DIFFERENCE
    _, begin, end = visits[slow[-1]]
    for place in reversed(slow[:-1]):
        _, first, last = visits[place]
        error = noise * math.sqrt(1 / (last - first) + 1 / (end - begin))
        lacking = float(costs[begin:end].mean() - costs[first:last].mean())
        if place > 0 and lacking <= math.log1p(margin) + _ERRORS * error:
            return first, last - 1
    return None


def _visits(costs: NDArray[np.float64], middle: float, start: int) -> list[tuple[bool, int, int]]:
    """Give the stays of three results or more above and below a cost, by turns; shorter ones are none."""
    found: list[tuple[bool, int, int]] = []
    place = start
    for is_slow, group in groupby((costs[start:] > middle).tolist()):
        begin, place = place, place + len(list(group))
        if place - begin < _SHORTEST_VISIT:
            continue
        if found and found[-1][0] == is_slow:
            found[-1] = (is_slow, found[-1][1], place)
        else:
            found.append((is_slow, begin, place))
    return found
