"""Whether parallel workers give the same times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from steelyard import _native
from steelyard.analyse.intervals.describe import quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PairDifference:
    """Two workers of one batch against each other.

    Parameters
    ----------
    p_value : float
        Of the two-sample Kolmogorov-Smirnov test, not corrected.
    median_ratio : float
        Larger median over the smaller.
    """

    p_value: float
    median_ratio: float


def compare_workers(workers: Sequence[NDArray[np.float64]]) -> Iterator[PairDifference]:
    """Compare every pair of workers of one batch.

    Parameters
    ----------
    workers : sequence of ndarray
        Positive values of each worker; workers without values are left out.

    Yields
    ------
    PairDifference
        For each pair. P-values are for independent iterations: correct them for their number, and take a
        difference seriously only if the medians differ by a relevant amount.

    Examples
    --------
    >>> import numpy as np
    >>> [pair] = compare_workers([np.arange(1.0, 51.0), np.arange(101.0, 151.0)])
    >>> pair.p_value < 1e-12, round(pair.median_ratio, 2)
    (True, 4.92)
    """
    filled = [values for values in workers if values.size]
    for first, second in combinations(filled, 2):
        _, p_value, _ = _native.kolmogorov_smirnov(first, second)
        low, high = sorted((quantile(first, 0.5), quantile(second, 0.5)))
        yield PairDifference(p_value, high / low if low > 0 else float("inf"))
