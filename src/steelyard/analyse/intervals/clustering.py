"""Which values are independent: the level of the recorded labels at which cells are compared."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import statistic_of
from steelyard.analyse.intervals.guarantee import FEWEST_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.intervals.bootstrap import Statistic

HOST: Final = "host"
LEVELS: Final = (HOST, "block", "worker")
"""Levels above the iteration, highest first; `worker` is a worker of one batch."""


@dataclass(frozen=True, slots=True)
class Units:
    """Values of one cell grouped by an independent unit.

    Parameters
    ----------
    level : str
        One of `LEVELS`.
    values : tuple of ndarray
        Iterations of each unit, in order of the unit's label.
    """

    level: str
    values: tuple[NDArray[np.float64], ...]

    def statistics(self, statistic: Statistic) -> NDArray[np.float64]:
        """Give one value per unit; not a number where a unit has too few iterations."""
        return np.array([statistic_of(unit, statistic) for unit in self.values])


def choose_level(labels: Sequence[Mapping[str, NDArray[np.int64]]]) -> str:
    """Give the highest level at which every side of a comparison has enough units.

    Where a side has several hosts these are the units, however few: what one of them does alike in all its
    blocks would not be in an interval over blocks.

    Parameters
    ----------
    labels : sequence of mapping
        One per side: label of each iteration by level, shape (n,). A label names its unit fully
        (a worker's label differs between batches).

    Returns
    -------
    str
        One of `LEVELS`; the lowest, `worker`, if none has enough units.

    References
    ----------
    .. [1] Kalibera & Jones (2013), "Rigorous benchmarking in reasonable time": repeat at the highest random
       level.

    Examples
    --------
    >>> side = {"host": np.zeros(12, int), "block": np.arange(12) // 2, "worker": np.arange(12)}
    >>> choose_level([side, side])
    'block'
    """
    if any(len(np.unique(side[HOST])) > 1 for side in labels):
        return HOST
    for level in LEVELS:
        if all(len(np.unique(side[level])) >= FEWEST_UNITS for side in labels):
            return level
    return LEVELS[-1]


def group_units(level: str, labels: NDArray[np.int64], values: NDArray[np.float64]) -> Units:
    """Group values by their unit, keeping their order inside each.

    Examples
    --------
    >>> units = group_units("block", np.array([1, 0, 1]), np.array([3.0, 1.0, 4.0]))
    >>> [unit.tolist() for unit in units.values]
    [[1.0], [3.0, 4.0]]
    """
    if np.any(labels[1:] < labels[:-1]):
        order = np.argsort(labels, kind="stable")
        labels, values = labels[order], values[order]
    starts = (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()
    # Slices: `numpy.split` takes ten times as long.
    bounds = pairwise([0, *starts, values.size]) if values.size else ()
    return Units(level, tuple(values[begin:end] for begin, end in bounds))


def intraclass_share(units: Units) -> float | None:
    """Give the share of the variance that lies between units (one-way analysis of variance), in [0, 1].

    ``None`` with fewer than 2 units or no spread.

    References
    ----------
    .. [1] Searle, Casella & McCulloch (1992), "Variance Components", ch. 3 (unbalanced one-way layout).
    """
    sizes = np.array([unit.size for unit in units.values], dtype=np.float64)
    count, total = sizes.size, float(sizes.sum())
    if count < 2 or total <= count:  # noqa: PLR2004 - no second unit, or no spread inside
        return None
    means = np.array([float(unit.mean()) for unit in units.values])
    grand = float(np.concatenate(units.values).mean())
    between = float(np.sum(sizes * (means - grand) ** 2)) / (count - 1)
    within = float(sum(np.sum((unit - unit.mean()) ** 2) for unit in units.values)) / (total - count)
    size = (total - float(np.sum(sizes**2)) / total) / (count - 1)
    component = max(0.0, (between - within) / size)
    return component / (component + within) if component + within > 0 else None
