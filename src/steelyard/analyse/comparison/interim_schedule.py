"""When a growing comparison is looked at, and how much of the largest experiment is over by then."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

GROWTH: Final = 1.25
"""Blocks at a look over those at the look before: some 20 looks between 10 and 1000 blocks, so that
each is worth its part of the error, and nobody waits for much longer than necessary."""


def next_look(blocks: int) -> int:
    """Give the number of blocks at which to look after a look.

    Examples
    --------
    >>> [next_look(blocks) for blocks in (1, 10, 100)]
    [2, 13, 125]
    """
    return max(math.ceil(blocks * GROWTH), blocks + 1)


@dataclass(frozen=True, slots=True)
class Extent:
    """The largest experiment.

    Parameters
    ----------
    blocks_min, blocks_max : int
        No look before the first number, none after the second.
    budget_s : float
        Time it may take [s].
    is_strict : bool
        Whether the budget ends it even before `blocks_min`.
    """

    blocks_min: int = 10
    blocks_max: int = 1000
    budget_s: float = 60.0
    is_strict: bool = False

    def fraction(self, blocks: int, elapsed_s: float) -> float:
        """Give how much is over, by the limit that is nearer; never depends on which side was slower.

        Examples
        --------
        >>> Extent(10, 100, 60.0).fraction(20, 30.0)
        0.5
        """
        return min(1.0, max(blocks / self.blocks_max, elapsed_s / self.budget_s))

    def is_spent(self, blocks: int, elapsed_s: float, next_block_s: float) -> bool:
        """Whether another block would be too much.

        Parameters
        ----------
        blocks : int
            Blocks run so far.
        elapsed_s : float
            Time since the begin [s].
        next_block_s : float
            Time the next block will take [s].
        """
        if blocks >= self.blocks_max:
            return True
        if not self.is_strict and blocks < self.blocks_min:
            return False
        return elapsed_s + next_block_s > self.budget_s
