"""What calls without a message cost: a completion test, a look for a message, a reading of the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.communication.operations import Operations
    from steelyard.studies.communication.trace import Trace

NAMES: Final = {Operation.TEST: "test", Operation.IPROBE: "iprobe", Operation.WTIME: "wtime"}
FEWEST: Final = 10
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class CallCost:
    """What one call costs.

    Parameters
    ----------
    name : str
        ``test``, ``iprobe`` or ``wtime``.
    count : int
        Calls.
    cost_s, low_s, high_s : float
        Median less the cost of a stamp, with its 95 % interval.
    reason : str
        Why no cost is claimed; empty where one is.
    """

    name: str
    count: int
    cost_s: float
    low_s: float
    high_s: float
    reason: str


def call_costs(traces: Sequence[Trace], table: Operations) -> tuple[CallCost, ...]:
    """Give the cost of each kind of call that was measured; claimed only above the cost of a stamp."""
    stamps = [trace.endpoints[0].header.get("stamp_cost_ns") for trace in traces]
    known = [float(each) for each in stamps if isinstance(each, (int, float))]
    stamp = max(known, default=0.0) * 1e-9
    found = []
    for kind, name in NAMES.items():
        values = np.sort(table.call_s[table.op == kind])
        if values.size == 0:
            continue
        middle = float(np.median(values)) - stamp
        if values.size < FEWEST:
            reason = f"{values.size} calls; at least {FEWEST} are needed"
            found.append(CallCost(name, values.size, middle, middle, middle, reason))
            continue
        low, high, _ = _native.order_interval(values, 0.5, level=LEVEL)
        is_above = low - stamp > stamp
        reason = "" if is_above else f"not above the cost of a stamp ({stamp * 1e9:.0f} ns)"
        found.append(CallCost(name, values.size, middle, low - stamp, high - stamp, reason))
    return tuple(found)
