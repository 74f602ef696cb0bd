"""How much slower the newest level of a history is than the one it is compared with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.series.history import SeriesHistory


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
