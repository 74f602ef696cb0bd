"""The ratio of one quantile of two sides that were measured in blocks, and its interval.

Two procedures, each exact or nearly so under an assumption of its own; the wider interval of both holds
under either:

- Order statistics: each side has a distribution-free interval of its quantile, and the two are combined
  (MOVER). Shapes may differ; runs of different blocks must be independent.
- Exchange: at the true factor both sides are equally often above a quantile of all values together, so who is
  above alone in its block is a fair coin. Drift and dependence between blocks do no harm; the sides must
  differ by a factor.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy  # `scipy.special` is loaded when it is first used: start-up time

from steelyard.analyse.intervals.dependence import depends_on_order
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Limits = tuple[float, float]
_MEDIAN: Final = 50.0
_LOWEST, _HIGHEST = 1.0, 99.99
_PRECISION: Final = 1e-8
"""Of limits that are searched for, as logarithms."""
_FARTHEST: Final = 2000.0
"""Logarithm of a ratio that no two values of double precision have."""
_UNLIKE: Final = 2.0
_STREAM: Final = 20
"""Of the keys that put equal values into an order: fixed, so that the same values give the same limits."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile that a comparison is about.

    Parameters
    ----------
    percent : float
        Percentage of the runs below it, in [1, 99.99].
    """

    percent: float

    @property
    def share(self) -> float:
        """Share of the runs below it."""
        return self.percent / 100

    def __str__(self) -> str:
        return "median" if self.percent == _MEDIAN else f"p{self.percent:.12g}"

    @classmethod
    def parse(cls, text: str) -> Quantile:
        """Read a name.

        Raises
        ------
        UsageError
            If it names no quantile that can be compared.

        Examples
        --------
        >>> Quantile.parse("p99.9").share, str(Quantile.parse("p50"))
        (0.9990000000000001, 'median')
        """
        found = re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", "p50" if text == "median" else text)
        percent = float(found[1]) if found else math.nan
        if not _LOWEST <= percent <= _HIGHEST:
            message = f"`--statistic {text}`: allowed: `typical`, `mean`, `median`, and `p1` to `p99.99`"
            raise UsageError(message, hint="--statistic p95, or several: --statistic median,p95,p99")
        return cls(percent)


def fewest_blocks(share: float, p_tail: float) -> int:
    """Give the number of blocks from which on a quantile has limits on both sides.

    The largest of n values is above the quantile unless all of them are below: ``share**n <= p_tail``.

    Parameters
    ----------
    share : float
        Share of the runs below the quantile, in (0, 1).
    p_tail : float
        Error on each side, in (0, 1).

    Examples
    --------
    >>> [fewest_blocks(share, 0.025) for share in (0.5, 0.95, 0.99)]
    [6, 72, 368]
    """
    return math.ceil(math.log(p_tail) / math.log(max(share, 1 - share)))


def quantile_of(ascending: NDArray[np.float64], share: float) -> float:
    """Give the order statistic that stands for a quantile: the smallest with that share at or below it."""
    return float(ascending[_rank(ascending.size, share) - 1])


def _rank(size: int, share: float) -> int:
    # A share such as 0.95 is no binary number: 0.95 * 20 must be 19, not the next above.
    return min(max(math.ceil(size * share - 1e-9), 1), size)


def quantile_ratio_interval(pairs: NDArray[np.float64], share: float, p_tail: float) -> Limits:
    """Give the interval of the logarithm of the ratio of a quantile, second over first.

    Parameters
    ----------
    pairs : ndarray
        Shape (n_blocks, 2): values of both sides of each block, positive and finite.
    share : float
        Share of the runs below the quantile, in (0, 1).
    p_tail : float
        Error on each side, in (0, 0.5).

    Returns
    -------
    tuple of float
        Infinite below `fewest_blocks`.

    References
    ----------
    .. [1] David & Nagaraja (2003), Order Statistics, ch. 7.1 (limits of a quantile).
    .. [2] Zou & Donner (2008), Stat. Med. 27 (MOVER, with correlation). Deviation: the correlation is that of
       who is above the quantile, less a standard error of the count, so that chance does not narrow.
    .. [3] McNemar (1947), Psychometrika 12, at a common quantile as Mood (1950) has it; equal values get a
       random order.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> pairs = np.exp(0.1 * rng.standard_normal((200, 2))) * [1.0, 1.5]
    >>> low, high = quantile_ratio_interval(pairs, 0.95, 0.025)
    >>> bool(low < np.log(1.5) < high)
    True
    """
    logs = np.log(pairs)
    by_order = _by_order_statistics(logs, share, p_tail)
    if math.isinf(by_order[0]) or math.isinf(by_order[1]):
        return -math.inf, math.inf
    return _widened_by_exchange(logs, share, by_order, p_tail)


def _by_order_statistics(logs: NDArray[np.float64], share: float, p_tail: float) -> Limits:
    size = logs.shape[0]
    ranks = _limit_ranks(size, share, p_tail)
    if ranks is None:
        return -math.inf, math.inf
    ascending = np.sort(logs, axis=0)
    first, second = (quantile_of(ascending[:, side], share) for side in (0, 1))
    low, high = (ascending[rank - 1] for rank in ranks)
    shared = _correlation(logs > [first, second], share)

    def half(one: float, other: float) -> float:
        return math.sqrt(max(one * one + other * other - 2 * shared * one * other, 0.0))

    place = second - first
    return (
        place - half(second - float(low[1]), float(high[0]) - first),
        place + half(float(high[1]) - second, first - float(low[0])),
    )


def has_unlike_spells(pairs: NDArray[np.float64], share: float, p_tail: float) -> bool:
    """Tell whether neither assumption holds: high values come in spells, and the sides differ in shape.

    Shapes count as different where the interval of the quantile of one side, as logarithms, is twice as
    wide as the other's: own choice.

    Parameters
    ----------
    pairs, share, p_tail
        As for `quantile_ratio_interval`.
    """
    logs = np.log(pairs)
    ranks = _limit_ranks(logs.shape[0], share, p_tail)
    if ranks is None:
        return False
    ascending = np.sort(logs, axis=0)
    widths = sorted(ascending[ranks[1] - 1] - ascending[ranks[0] - 1])
    above = logs > [quantile_of(ascending[:, side], share) for side in (0, 1)]
    return widths[1] > _UNLIKE * widths[0] and depends_on_order(above.sum(axis=1).astype(np.float64))


@lru_cache(maxsize=1024)
def _limit_ranks(size: int, share: float, p_tail: float) -> tuple[int, int] | None:
    """Give the ranks of the limits of a quantile, from 1; nothing where there are too few values."""
    at_most = scipy.special.bdtr(np.arange(size), size, share)
    low = int(np.searchsorted(at_most, p_tail, side="right"))
    is_rare = 1 - at_most <= p_tail
    return (low, int(np.argmax(is_rare)) + 1) if low and is_rare[-1] else None


def _correlation(is_above: NDArray[np.bool_], share: float) -> float:
    """Give the correlation of being above the quantile in the same block, as far as it is no chance."""
    size = is_above.shape[0]
    both = int(is_above.all(axis=1).sum())
    expected = size * (1 - share) ** 2
    sure = max(min(both, expected), both - math.sqrt(both))
    return float(min((sure - expected) / (size * share * (1 - share)), 1.0))


def _widened_by_exchange(logs: NDArray[np.float64], share: float, limits: Limits, p_tail: float) -> Limits:
    """Move limits outwards to where the exchange of both sides rejects the ratio as well."""
    size = logs.shape[0]
    keys = np.random.default_rng(_STREAM).permutation(2 * size)
    above = 2 * size - _rank(2 * size, share)
    values = logs.T.ravel()
    moved = np.concatenate((np.ones(size), np.zeros(size)))

    def is_rejected(shift: float, favoured: int) -> bool:
        """Whether, the first side being moved, one side is so rarely above alone."""
        here = values + shift * moved
        threshold = np.partition(here, 2 * size - above)[2 * size - above]
        is_above = here > threshold
        ties = np.flatnonzero(here == threshold)
        is_above[ties[np.argsort(keys[ties])][: above - int(is_above.sum())]] = True
        sides = is_above[:size], is_above[size:]
        alone = [int((sides[side] & ~sides[1 - side]).sum()) for side in (0, 1)]
        return bool(scipy.special.bdtr(alone[favoured], sum(alone), 0.5) <= p_tail)

    low, high = limits
    step = max(high - low, _PRECISION)
    return (
        -_first_rejected(lambda shift: is_rejected(-shift, 0), -low, step),
        _first_rejected(lambda shift: is_rejected(shift, 1), high, step),
    )


def _first_rejected(is_rejected: Callable[[float], bool], start: float, step: float) -> float:
    """Give the first place from a start on that is rejected; all beyond it are."""
    if is_rejected(start):
        return start
    low, high = start, start + step
    while not is_rejected(high):
        low, high, step = high, high + 2 * step, 2 * step
        if step > _FARTHEST:
            return math.inf
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if is_rejected(middle) else (middle, high)
    return high
