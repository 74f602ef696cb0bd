"""How many repetitions each level of an experiment deserves, given its variances and costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from steelyard.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class RepetitionLevel:
    """One level of repetition of an experiment (iteration, worker, run, boot ...).

    Parameters
    ----------
    name : str
        Name of the level.
    variance : float
        Unbiased variance component T^2 of this level, in squared units of the metric. A negative
        estimate (possible: it is a difference of mean squares) counts as zero.
    cost_s : float
        Time that one more repetition of this level costs by itself [s], above 0: start-up of a
        run, boot of a machine; for the lowest level the length of an iteration.
    """

    name: str
    variance: float
    cost_s: float


def plan_repetitions(levels: Sequence[RepetitionLevel], *, ceiling: int = 10_000) -> dict[str, int]:
    """Give the number of repetitions below the highest level that makes the interval narrowest per second.

    Parameters
    ----------
    levels : sequence of RepetitionLevel
        From the lowest (iteration) to the highest, at least two.
    ceiling : int
        Upper bound of each number: where the higher level shows no variance the formula
        has no finite answer.

    Returns
    -------
    dict
        Repetitions r_i by name, for all levels but the highest, each from 1 to `ceiling`. The
        highest level is repeated until the interval is narrow enough.

    Raises
    ------
    DesignError
        If there are fewer than two levels or a cost is not positive.

    References
    ----------
    .. [1] Kalibera & Jones (2013), Rigorous benchmarking in reasonable time, ISMM, section 6:
       r_i = ceil(sqrt((c_{i+1} / c_i) (T_i^2 / T_{i+1}^2))). Deviation: the ceiling.

    Examples
    --------
    >>> levels = [RepetitionLevel("iteration", 4.0, 0.1), RepetitionLevel("run", 1.0, 2.5)]
    >>> plan_repetitions(levels)
    {'iteration': 10}
    """
    if len(levels) < 2:  # noqa: PLR2004 - a ratio of two levels
        message = (
            f"{len(levels)} level of repetition given; at least two are needed to weigh one against the other"
        )
        raise DesignError(message, code="design.levels")
    for level in levels:
        if not (math.isfinite(level.cost_s) and level.cost_s > 0):
            message = f"cost of level `{level.name}` is {level.cost_s} s; allowed: above 0"
            raise DesignError(message, code="design.cost")
    repetitions = {}
    for lower, upper in pairwise(levels):
        below, above = max(lower.variance, 0.0), max(upper.variance, 0.0)
        if below == 0:
            count = 1
        elif above == 0:
            count = ceiling
        else:
            exact = math.sqrt(upper.cost_s / lower.cost_s * below / above)
            # The nudge keeps exact integers from being lifted by the last bit of the root.
            count = math.ceil(exact * (1 - 1e-12))
        repetitions[lower.name] = min(max(count, 1), ceiling)
    return repetitions
