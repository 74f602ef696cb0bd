"""Events that may lengthen a call, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Stamps = NDArray[np.int64]


class Depth(IntEnum):
    """How near to the root an event is: a collection makes threads wait, waiting makes no collection."""

    PAUSE = 0
    SAFEPOINT = 1
    SCHEDULING = 2
    WAITING = 3
    HOST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of one kind.

    Parameters
    ----------
    kind : str
        What they are, as ``off-CPU by kworker``.
    start_ns, end_ns : ndarray
        Shape (n,): when they began and ended [ns]; equal for an instant.
    amount_ns : ndarray or None
        Shape (n,): time that was lost within each, where that is less than its length: a counter that was
        read at both ends [ns].
    depth : Depth
        How near to the root they are.
    """

    kind: str
    start_ns: Stamps
    end_ns: Stamps
    amount_ns: NDArray[np.float64] | None = None
    depth: Depth = Depth.SCHEDULING
