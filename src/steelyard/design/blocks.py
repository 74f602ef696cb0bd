"""Randomised complete blocks: each cell once per block, in an order drawn from the seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.design.seeds import Purpose, generator
from steelyard.errors import DesignError
from steelyard.model import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence


def draw_batches(cells: Sequence[int], *, blocks: int, seed: int) -> tuple[Batch, ...]:
    """Draw the order of execution.

    Parameters
    ----------
    cells : sequence of int
        Numbers of the cells that are run, each once.
    blocks : int
        At least 1.
    seed : int
        The study's seed; stream `Purpose.BLOCK_ORDER` with the block's number.

    Returns
    -------
    tuple of Batch
        Shape (blocks * cells,); numbered in order of execution. The order of a block does not
        depend on how many blocks there are.

    Raises
    ------
    DesignError
        If there is no cell, a cell occurs twice, or there is no block.

    References
    ----------
    .. [1] Box, Hunter & Hunter (2005), Statistics for Experimenters, ch. 4: complete blocks
       take drifts of the machine out of every comparison between cells.

    Examples
    --------
    >>> [batch.cell for batch in draw_batches([0, 1, 2], blocks=2, seed=7) if batch.block == 1]
    [0, 1, 2]
    """
    if not cells:
        message = "the design has no cell that can run here"
        hint = "`steelyard doctor` names what this machine lacks; `steelyard plan` lists the reasons"
        raise DesignError(message, hint=hint, code="design.empty")
    if len(set(cells)) != len(cells):
        message = "a cell occurs twice in the list of cells to order"
        raise DesignError(message, code="design.cell-twice")
    if blocks < 1:
        message = f"`blocks` is {blocks}; allowed: 1 or more"
        raise DesignError(message, code="design.blocks")
    batches: list[Batch] = []
    for block in range(blocks):
        order = generator(seed, Purpose.BLOCK_ORDER, block).permutation(len(cells))
        start = block * len(cells)
        batches.extend(Batch(start + at, block, cells[int(index)]) for at, index in enumerate(order))
    return tuple(batches)


def swapped(batches: Sequence[Batch], cells: int) -> tuple[Batch, ...]:
    """Give every second block the reverse order of the block before it.

    Where the order in a block says which place a cell gets, each two blocks are balanced, and which one comes
    first stays a toss.

    Parameters
    ----------
    batches : sequence of Batch
        As `draw_batches` gives them.
    cells : int
        Number of cells in a block.

    Examples
    --------
    >>> [batch.cell for batch in swapped(draw_batches([0, 1], blocks=4, seed=7), 2)]
    [1, 0, 0, 1, 0, 1, 1, 0]
    """
    return tuple(
        replace(batch, cell=batches[2 * batch.block * cells - 1 - batch.number].cell)
        if batch.block % 2
        else batch
        for batch in batches
    )
