"""Whether positive values come from two modes, as where messages follow either of two protocols."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import inner_product

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

FEWEST: Final = 50
"""Values that two modes are looked for in."""

SMALLEST: Final = 0.05
"""Share of the values that the smaller mode has at least: rarer ones are a tail."""

APART: Final = 2.0
"""Distance of two modes over the root mean square of their spreads (Ashman, Bird & Zepf 1994)."""

RATIO: Final = 1.1
"""Modes whose middles differ by less are one."""

VALLEY: Final = 0.6
"""Values in the valley between two modes over those at the lower one, at most."""

_MOST: Final = 20_000
_STEPS: Final = 200
_SETTLED: Final = 1e-7
_WINDOWS: Final = 9


@dataclass(frozen=True, slots=True)
class Mode:
    """One of two modes, with the normal law of its logarithms.

    Parameters
    ----------
    share : float
        Of the values.
    middle : float
        Median, in the unit of the values.
    spread : float
        Standard deviation of the logarithm.
    """

    share: float
    middle: float
    spread: float


def two_modes(values: ArrayLike) -> tuple[Mode, Mode] | None:
    """Fit two lognormal laws, and say whether they are two modes.

    Parameters
    ----------
    values : array_like
        Shape (n,), positive.

    Returns
    -------
    tuple of Mode or None
        The smaller middle first. ``None`` for fewer than 50 values, and where the two laws describe one hump,
        a tail, or the values no better than one law does.

    References
    ----------
    .. [1] Dempster, Laird & Rubin (1977), J. R. Statist. Soc. B 39: the EM algorithm.
    .. [2] Ashman, Bird & Zepf (1994), Astron. J. 108: separation of two modes, D > 2.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> values = np.where(generator.random(2000) < 0.3, 2.5, 1.0) * generator.lognormal(0, 0.05, 2000)
    >>> [(round(each.share, 1), round(each.middle, 1)) for each in two_modes(values)]
    [(0.7, 1.0), (0.3, 2.5)]
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < FEWEST:
        return None
    logs = np.sort(np.log(sample[:: -(-sample.size // _MOST)]))
    if logs[-1] - logs[0] < math.log(RATIO):
        return None
    found = _fitted(logs)
    if found is None or not _is_apart(logs, *found):
        return None
    one = Mode(1.0, math.exp(float(logs.mean())), float(logs.std()))
    # Three parameters more than one law has.
    gain = 2 * float(np.sum(np.log(_density(logs, found)) - np.log(_density(logs, (one,)))))
    return found if gain > 3 * math.log(logs.size) else None


def _density(logs: Vector, modes: tuple[Mode, ...]) -> Vector:
    total = np.zeros_like(logs)
    for mode in modes:
        scaled = (logs - math.log(mode.middle)) / mode.spread
        total += mode.share * np.exp(-0.5 * scaled**2) / (mode.spread * math.sqrt(2 * math.pi))
    return np.maximum(total, 1e-300)


def _fitted(logs: Vector) -> tuple[Mode, Mode] | None:
    """Fit by EM from the split that leaves the least scatter on either side."""
    least = max((logs[-1] - logs[0]) * 1e-3, 1e-9)
    upper = (np.arange(logs.size) >= _split(logs)).astype(np.float64)
    before = -math.inf
    modes: tuple[Mode, Mode] | None = None
    for _ in range(_STEPS):
        weights = (1 - upper, upper)
        if min(float(each.sum()) for each in weights) < SMALLEST * logs.size:
            return None
        first, second = (_mode(logs, each, least) for each in weights)
        modes = (first, second)
        parts = [_density(logs, (mode,)) for mode in modes]
        total = parts[0] + parts[1]
        upper = parts[1] / total
        score = float(np.mean(np.log(total)))
        if score - before < _SETTLED:
            break
        before = score
    if modes is None or modes[0].middle <= modes[1].middle:
        return modes
    return modes[1], modes[0]


def _mode(logs: Vector, weights: Vector, least: float) -> Mode:
    total = float(weights.sum())
    middle = inner_product(weights, logs) / total
    spread = math.sqrt(inner_product(weights, (logs - middle) ** 2) / total)
    return Mode(total / logs.size, math.exp(middle), max(spread, least))


def _split(logs: Vector) -> int:
    """Give how many of the ascending values belong to the lower of two groups."""
    count = np.arange(1, logs.size)
    below = np.cumsum(logs)[:-1]
    gain = below**2 / count + (logs.sum() - below) ** 2 / (logs.size - count)
    return int(np.argmax(gain)) + 1


def _is_apart(logs: Vector, lower: Mode, upper: Mode) -> bool:
    """Say whether two laws are far from each other, and few values lie in the valley between them."""
    low, high = math.log(lower.middle), math.log(upper.middle)
    spread = math.hypot(lower.spread, upper.spread) / math.sqrt(2)
    if high - low < max(math.log(RATIO), APART * spread):
        return False
    places = np.linspace(low, high, _WINDOWS)
    reach = (high - low) / (_WINDOWS - 1)
    counts = np.searchsorted(logs, places + reach / 2) - np.searchsorted(logs, places - reach / 2)
    return bool(counts[1:-1].min() < VALLEY * min(counts[0], counts[-1]))
