"""Whether a number differs between two sets of runs by more than a margin, judged by how much runs differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

Verdict = Literal["same", "different", "undecided"]

ERROR: Final = 0.05
"""Share of sets without a difference beyond the margin in which one may be claimed anywhere."""


@dataclass(frozen=True, slots=True)
class RunValues:
    """One number of every run of a set.

    Parameters
    ----------
    values, errors : ndarray
        Shape (n,), n >= 1: estimates and their standard errors within the run.
    """

    values: Vector
    errors: Vector


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of means, second less first.

    Parameters
    ----------
    value, low, high : float
        With its 90 % interval, which lies within the margin where a test for equivalence at 5 % succeeds.
    p_beyond : float
        p-value that the difference is within the margin.
    freedom : int
        Degrees of freedom of the scatter between runs; 0 where each set has one run. Then interval and
        p-value rest on errors within the runs alone, and nothing is claimed: how much launches differ is not
        known.
    """

    value: float
    low: float
    high: float
    p_beyond: float
    freedom: int


def replicated_difference(first: RunValues, second: RunValues, margin: float) -> Difference:
    """Compare the means of two sets of runs.

    The variance of a run is the pooled variance between runs of a set, but at least the mean square of the
    errors within: runs that agree by chance do not make a result sure.

    Parameters
    ----------
    margin : float
        Largest difference that counts as none, positive, in the unit of the values.

    Examples
    --------
    >>> ones, errors = np.array([1.0, 1.01, 0.99]), np.full(3, 0.004)
    >>> found = replicated_difference(RunValues(ones, errors), RunValues(ones + 0.1, errors), 0.02)
    >>> round(found.value, 3), found.p_beyond < 0.01
    (0.1, True)
    """
    counts = first.values.size, second.values.size
    spread = sum(float(np.sum((side.values - side.values.mean()) ** 2)) for side in (first, second))
    freedom = sum(counts) - 2
    within = float(np.mean(np.concatenate([first.errors, second.errors]) ** 2))
    variance = within
    if freedom > 0 and spread / freedom > within:
        variance = spread / freedom
    degrees = freedom or math.inf
    error = math.sqrt(variance * (1 / counts[0] + 1 / counts[1]))
    value = float(second.values.mean() - first.values.mean())
    reach = float(stats.t.ppf(1 - ERROR, degrees)) * error if error > 0 else 0.0
    beyond = abs(value) - margin
    p_beyond = float(stats.t.sf(beyond / error, degrees)) if error > 0 else float(beyond <= 0)
    # The nearer limit of the margin decides; the farther one adds next to nothing to the p-value.
    return Difference(value, value - reach, value + reach, p_beyond, freedom)


def verdicts(differences: Sequence[Difference], margin: float) -> tuple[Verdict, ...]:
    """Judge several differences together.

    Returns
    -------
    tuple of str
        ``different``: beyond the margin, with p-values corrected by Holm; ``same``: the interval lies
        within the margin; ``undecided`` otherwise, and always where each set has one run.

    References
    ----------
    .. [1] Holm (1979), Scand. J. Statist. 6.
    .. [2] Schuirmann (1987), J. Pharmacokinet. Biopharm. 15: two one-sided tests.
    """
    judged = [number for number, each in enumerate(differences) if each.freedom > 0]
    order = sorted(judged, key=lambda number: differences[number].p_beyond)
    rejected = set()
    for rank, number in enumerate(order):
        if differences[number].p_beyond > ERROR / (len(order) - rank):
            break
        rejected.add(number)
    found: list[Verdict] = []
    for number, each in enumerate(differences):
        is_within = each.freedom > 0 and -margin <= each.low and each.high <= margin
        found.append("different" if number in rejected else "same" if is_within else "undecided")
    return tuple(found)
