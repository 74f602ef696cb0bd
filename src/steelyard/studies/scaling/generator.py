"""Means of the sources of the packet generator, and what their imbalance does without balancing.

Under exponential load each source has a mean of its own. A strategy that gives each source one worker
ends when the heaviest source does, so its speed-up cannot exceed the sum of the means over the largest.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

START_TEXT: Final = b"This is going to be my randomization string"
"""SOURCE: the packet generator of CMSC 23010 (University of Chicago) starts at the CRC of this text."""

LARGEST_CRC: Final = 4294967295
MEANS_SEED_BYTE: Final = 1


def draws(seed_byte: int) -> Iterator[int]:
    """Give the draws of a generator: each updates a CRC-32 with the generator's byte.

    Parameters
    ----------
    seed_byte : int
        0 to 255.

    Examples
    --------
    >>> from itertools import islice
    >>> list(islice(draws(1), 2))
    [218086280, 1181363122]
    """
    byte = bytes([seed_byte])
    state = zlib.crc32(START_TEXT)
    while True:
        state = zlib.crc32(byte, state)
        yield state


def exponential_draw(crc: int, mean: int) -> int:
    """Give an exponential draw of a mean: ceil(-mean ln(1 - crc / (2^32 - 1)))."""
    return math.ceil(-mean * math.log(1 - crc / LARGEST_CRC))


def source_means(mean_work: int, sources: int, seed: int) -> tuple[int, ...]:
    """Give the mean work of each source under exponential load.

    A generator with byte 1 is advanced `seed` times; then one draw per source is taken, and all are
    shifted by the truncated mean excess, so that their mean is `mean_work`.

    Parameters
    ----------
    mean_work : int
        W, iterations per packet, at least 1.
    sources : int
        n, at least 1.
    seed : int
        s, the number of the trial, at least 0.

    Returns
    -------
    tuple of int
        Shape (sources,), iterations per packet; one that the shift makes negative sends packets without
        work.

    Examples
    --------
    >>> source_means(1000, 2, 1)
    (813, 1186)
    """
    stream = draws(MEANS_SEED_BYTE)
    for _ in range(seed):
        next(stream)
    drawn = [exponential_draw(next(stream), mean_work) for _ in range(sources)]
    shift = int((sum(drawn) - mean_work * sources) / sources)
    return tuple(each - shift for each in drawn)


def balance_bound(means: Iterable[int]) -> float:
    """Give the speed-up that imbalance allows a strategy without balancing: sum of means / largest mean.

    A source with a negative mean has no work.

    Examples
    --------
    >>> balance_bound((813, 1186)), balance_bound((279, -79))
    (1.6854974704890389, 1.0)
    """
    work = [max(mean, 0) for mean in means]
    return sum(work) / max(work)


def median_balance_bound(mean_work: int, sources: int, seeds: Iterable[int]) -> float:
    """Give the median of `balance_bound` over trials.

    Examples
    --------
    >>> [round(median_balance_bound(8000, n, range(1, 12)), 3) for n in (1, 2, 3, 7, 13)]
    [1.0, 1.585, 2.042, 3.818, 6.791]
    """
    bounds = [balance_bound(source_means(mean_work, sources, seed)) for seed in seeds]
    return float(np.median(bounds))
