"""Parts of large tables, made by a second thread while the first works on the one before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Item = TypeVar("Item")
_END: Final = object()


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Give items in their order; the next one is made in a thread of its own meanwhile.

    An error that making one raises is raised where that one is asked for. At most two items are kept.

    Examples
    --------
    >>> list(ahead(number * 2 for number in range(3)))
    [0, 2, 4]
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, iterator, _END)
            yield item
