"""Outliers as labels: named predicates, counted, and whether what they catch has anything in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from steelyard import _native
from steelyard.model.cost_model import ROUND_TRIP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.studies.communication.operations import Operations

    Vector = NDArray[np.float64]
    Mask = NDArray[np.bool_]

SHARED: Final = 0.001
"""Outliers have something in common if chance gives as much in fewer than so many cases."""

FEWEST: Final = 5
"""Fewer outliers have nothing in common that could be shown."""

TRIMMED_ROWS: Final = 10
"""SOURCE: A. Legrand's analysis looks at 10 consecutive rows and drops what lies beyond their 10 % and 90 %
quantiles."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A named condition on operations.

    Parameters
    ----------
    name : str
        Says it completely.
    column : str
        Of `Operations`, or ``ratio`` for measured over the curve.
    above, below : float
        Limits of the column, both excluded.
    size_below : float
        Limit of the size [bytes], excluded: larger messages are no part of the question, neither as outliers
        nor as what outliers are compared with.
    """

    name: str
    column: str
    above: float = -math.inf
    below: float = math.inf
    size_below: float = math.inf

    def concerns(self, rows: Operations) -> Mask:
        """Mark the rows it asks about."""
        return np.asarray(rows.size < self.size_below)

    def holds(self, rows: Operations, ratio: Vector) -> Mask:
        """Mark the rows it holds for."""
        values = ratio if self.column == "ratio" else getattr(rows, self.column)
        return np.asarray((values > self.above) & (values < self.below) & self.concerns(rows))


PREDICATES: Final = (
    # SOURCE: the first one is the source's own (A. Legrand, section 3).
    Predicate("size < 100 B and send > 100 us", "send_s", above=1e-4, size_below=100),
    Predicate("size < 100 B and half round trip > 100 us", "half_s", above=1e-4, size_below=100),
    Predicate("cost > 3 times the curve", "ratio", above=3),
    Predicate("cost > 10 times the curve", "ratio", above=10),
    Predicate("cost < half of the curve", "ratio", below=0.5),
)


@dataclass(frozen=True, slots=True)
class Outliers:
    """What one predicate catches, and what that shares.

    Parameters
    ----------
    name : str
        Of the predicate.
    count, of : int
        Operations it holds for, of how many it asks about.
    among : str
        Which those are; empty where all are.
    time_p, order_p, size_p, previous_p : float
        p-values: that outliers are spread over the time of measuring as all operations are, that they follow
        each other no more often than chance lets them, and that their sizes and the sizes before them are
        those of all it asks about. NaN for fewer than 5 outliers.
    following : float
        Share of outliers right after another one.
    """

    name: str
    count: int
    of: int
    among: str
    time_p: float
    order_p: float
    size_p: float
    previous_p: float
    following: float

    @property
    def shared(self) -> tuple[str, ...]:
        """What the outliers have in common: ``time``, ``order``, ``size``, ``previous size``."""
        tests = {
            "time": self.time_p,
            "order": self.order_p,
            "size": self.size_p,
            "previous size": self.previous_p,
        }
        return tuple(name for name, p_value in tests.items() if p_value < SHARED)


def find_outliers(rows: Operations, ratio: Vector, timed: str = ROUND_TRIP) -> tuple[Outliers, ...]:
    """Apply every predicate that asks about some of the operations.

    Parameters
    ----------
    rows : Operations
        In the order of measuring.
    ratio : ndarray
        Shape (n,): measured over the curve; NaN where there is none.
    timed : str
        What the times are.
    """
    found = []
    for each in PREDICATES:
        asked = each.concerns(rows)
        if not asked.any():
            continue
        among = f"below {each.size_below:.0f} B" if math.isfinite(each.size_below) else ""
        caught = each.holds(rows, ratio)[asked]
        name = each.name if timed == ROUND_TRIP else each.name.replace("half round trip", "time")
        found.append(_judged((name, among), caught, rows.where(asked)))
    return tuple(found)


def _judged(names: tuple[str, str], caught: Mask, rows: Operations) -> Outliers:
    """Compare the outliers with the other operations of the same question."""
    count, of = int(caught.sum()), int(caught.size)
    if count < FEWEST or of - count < FEWEST:
        unknown = (math.nan,) * 5
        return Outliers(names[0], count, of, names[1], *unknown)
    after = caught[1:] & (np.diff(rows.run) == 0)
    following = int(np.sum(after & caught[:-1]))
    order_p = float(stats.binom.sf(following - 1, count, count / of))
    position = np.arange(of, dtype=np.float64)
    p_values = [
        _native.kolmogorov_smirnov(np.ascontiguousarray(each[caught]), np.ascontiguousarray(each[~caught]))[1]
        for each in (position, rows.size.astype(np.float64), rows.previous_size.astype(np.float64))
    ]
    tests = (p_values[0], order_p, p_values[1], p_values[2])
    return Outliers(names[0], count, of, names[1], *tests, following / count)


def trimmed(values: Vector, rows: int = TRIMMED_ROWS) -> Mask:
    """Mark values outside the 10 % and 90 % quantiles (type 7) of each so many consecutive rows.

    Parameters
    ----------
    values : ndarray
        Shape (n,), in the order of measuring. The last block may be shorter.

    Examples
    --------
    >>> trimmed(np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 99])).nonzero()[0].tolist()
    [0, 9]
    """
    marked = np.zeros(values.size, dtype=np.bool_)
    for begin in range(0, values.size, rows):
        block = values[begin : begin + rows]
        low, high = np.quantile(block, [0.1, 0.9])
        marked[begin : begin + rows] = (block < low) | (block > high)
    return marked
