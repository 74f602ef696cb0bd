"""The seam at which an analysis is mapped over cells: it makes tasks, and does not know who computes them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Found = TypeVar("Found")
Part = TypeVar("Part")
FoundOfTask_co = TypeVar("FoundOfTask_co", covariant=True)

PARTS_PER_WORKER: Final = 8
"""Parts of the cells for each worker: so many end together, and few cells are lost with a worker."""
_COPIES: Final = 4
"""How often the values of an item are in memory while something is computed of it, sorted or by unit."""


class CellTask(Protocol, Generic[FoundOfTask_co]):
    """What is computed of some cells; it can be sent to other machines, and reads tables there.

    Whatever it draws comes from the seed of the plan and the numbers of its cells, so that neither the place
    nor the order of the work changes a bit.
    """

    @property
    def name(self) -> str:
        """What it computes, for messages: the cells by number."""

    def needed_bytes(self) -> int:
        """Estimate the memory that computing it takes; asked where it is computed."""

    def compute(self) -> FoundOfTask_co:
        """Compute it."""


class OverCells(Protocol):
    """Computes tasks, wherever that is."""

    @property
    def workers(self) -> int:
        """How many tasks are computed at once; 1 says that it is this process that computes."""

    def map(self, tasks: Sequence[CellTask[Found]]) -> list[Found]:
        """Give what each task finds, in the order of the tasks."""


class InTurn:
    """One task after the other, in this process."""

    workers: Final = 1

    def map(self, tasks: Sequence[CellTask[Found]]) -> list[Found]:
        """Give what each task finds, in the order of the tasks."""
        return [task.compute() for task in tasks]


IN_TURN: Final = InTurn()


def split(items: Sequence[Part], over: OverCells) -> list[Sequence[Part]]:
    """Cut items into parts whose sizes differ by one at most: one part where this process does all.

    Examples
    --------
    >>> split([1, 2, 3], InTurn())
    [[1, 2, 3]]
    """
    return equal_parts(items, 1 if over.workers == 1 else PARTS_PER_WORKER * over.workers)


def equal_parts(items: Sequence[Part], count: int) -> list[Sequence[Part]]:
    """Cut items into so many parts at most, whose sizes differ by one at most.

    Examples
    --------
    >>> equal_parts([1, 2, 3], 2)
    [[1], [2, 3]]
    """
    count = min(len(items), count)
    bounds = [len(items) * place // count for place in range(count + 1)] if count else [0]
    return [items[begin:end] for begin, end in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class _Each(Generic[Part, Found]):
    """A function of each of some items, which travel with it."""

    function: Callable[[Part], Found]
    items: Sequence[tuple[str, Part]]

    @property
    def name(self) -> str:
        first, last = self.items[0][0], self.items[-1][0]
        return first if first == last else f"{first} to {last}"

    def needed_bytes(self) -> int:
        arrays: list[pickle.PickleBuffer] = []
        pickle.dumps(self.items, protocol=5, buffer_callback=arrays.append)
        return _COPIES * sum(array.raw().nbytes for array in arrays)

    def compute(self) -> list[Found]:
        return [self.function(item) for _, item in self.items]


def map_each(
    over: OverCells, function: Callable[[Part], Found], items: Sequence[tuple[str, Part]]
) -> list[Found]:
    """Apply a function to each item, wherever that is: the way of a study that holds its cells in memory.

    Parameters
    ----------
    over : OverCells
        Who computes.
    function : callable
        Of a module, or a `functools.partial` of one, so that it can be sent; what it draws comes from the
        seed of the plan and the number of the cell.
    items : sequence of (str, object)
        Names for messages, such as ``cell 3``, and what the function takes.

    Returns
    -------
    list
        What it gave of each, in the order of the items.

    Examples
    --------
    >>> map_each(IN_TURN, abs, [("cell 0", -1), ("cell 1", 2)])
    [1, 2]
    """
    tasks = [_Each(function, part) for part in split(items, over)]
    return [found for part in over.map(tasks) for found in part]
