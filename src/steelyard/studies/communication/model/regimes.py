"""States of the host: where they switch, what they are called, and which stretches were disturbed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.median_line import binned_medians
from steelyard.studies.communication.model.state_levels import grouped, split_run
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.studies.communication.model.state_levels import Level
    from steelyard.studies.communication.operations import Operations
    from steelyard.studies.communication.trace import Trace

    Vector = NDArray[np.float64]
    Mask = NDArray[np.bool_]

SLOW_CANARY_NS: Final = 140.0
"""Round trip of a cache line from which CPUs are far apart.

SOURCE: own measurement on a guest with 2 CPUs, by both rank programs: 62 to 82 ns between near cores, 295 to
315 between far ones; this is the geometric middle."""

DELAYED: Final = 0.05
"""A block is disturbed if an endpoint waited for a CPU for a larger share of it."""

LATE: Final = 0.025
"""Share of all operations that count as late, for a block that has too many of them."""

MOST_LEFT_OUT: Final = 0.5
"""If more of a state was disturbed, disturbances are its rule, and nothing is left out."""

_FEWEST: Final = 50
_SURE: Final = 5.0
_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Stretch:
    """Operations of one run in one state.

    Parameters
    ----------
    run, first, last : int
        Run, first operation and the one after the last.
    ratio, small_ratio, large_ratio : float
        Median of measured over the curve of all operations; of messages up to 4096 B, and beyond (NaN where
        there are too few).
    state : str
        Name of the state.
    canary_ns : float
        Median round trip of a cache line at its blocks; NaN where none was measured.
    delayed : float
        Share of its time that an endpoint, the one that waited more, waited for a CPU.
    """

    run: int
    first: int
    last: int
    ratio: float
    small_ratio: float
    large_ratio: float
    state: str
    canary_ns: float
    delayed: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Neighbouring blocks in which something else ran.

    Parameters
    ----------
    run, first, last : int
        Run, first operation and the one after the last.
    begin_s, end_s : float
        Since the first operation of the run.
    delayed : float
        Largest share of a block that an endpoint waited for a CPU.
    late : float
        Largest share of late operations of a block; `LATE` of all are.
    """

    run: int
    first: int
    last: int
    begin_s: float
    end_s: float
    delayed: float
    late: float


@dataclass(frozen=True, slots=True, eq=False)
class Regimes:
    """States and disturbances of some runs.

    Parameters
    ----------
    stretches, disturbances : tuple
        In the order of runs and time.
    state : ndarray of str
        Shape (n,): state of each operation.
    is_disturbed : ndarray of bool
        Shape (n,).
    """

    stretches: tuple[Stretch, ...]
    disturbances: tuple[Disturbance, ...]
    state: NDArray[np.str_]
    is_disturbed: Mask

    def usable(self, state: str) -> Mask:
        """Mark the operations of a state that nothing disturbed; all of the state if most were disturbed."""
        here = self.state == state
        calm = here & ~self.is_disturbed
        is_rule = bool(calm.sum() < (1 - MOST_LEFT_OUT) * here.sum())
        return np.asarray(here if is_rule else calm)

    @property
    def states(self) -> dict[str, int]:
        """Operations by state, the most common first."""
        names, counts = np.unique(self.state, return_counts=True)
        ordered = sorted(
            zip(counts.tolist(), names.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1])
        )
        return {name: count for count, name in ordered}


def log_residuals(table: Operations) -> Vector:
    """Give the logarithm of each operation's cost over the median of its kind and size.

    Returns
    -------
    ndarray
        Shape (n,); NaN for calls without a message, and for kinds with fewer than 50 operations.
    """
    found = np.full(len(table), np.nan)
    for kind in (Operation.PINGPONG, Operation.STREAM, Operation.SEND, Operation.RECV, Operation.ISEND):
        cost = {Operation.PINGPONG: table.half_s, Operation.RECV: table.receive_s}.get(kind, table.send_s)
        rows = np.flatnonzero((table.op == kind) & np.isfinite(cost) & (cost > 0))
        if rows.size < _FEWEST:
            continue
        x, y = np.maximum(table.size[rows].astype(np.float64), 1.0), cost[rows]
        order = np.lexsort((y, x))
        places, medians = binned_medians(x[order], y[order], max(25, rows.size // 200))
        found[rows] = np.log(y) - np.interp(np.log(x), np.log(places), np.log(medians))
    return found


def regimes_of(traces: Sequence[Trace], table: Operations) -> Regimes:
    """Split runs where the state of the host switches, name the states, and find disturbed stretches."""
    residual = log_residuals(table)
    # What changed with time cannot be told from what changed with size.
    ordered = [run for run, trace in enumerate(traces) if trace.endpoints[0].header.get("is_ordered") is True]
    residual[np.isin(table.run, ordered)] = np.nan
    levels, runs = [], []
    for run in np.unique(table.run).tolist():
        found = split_run(np.flatnonzero(table.run == run), table.size, residual)
        levels += found
        runs += [run] * len(found)
    names = _state_names(levels, runs, traces, table)
    state = np.empty(len(table), dtype="U16")
    stretches = []
    for run, level, name in zip(runs, levels, names, strict=True):
        state[level.rows] = name
        first, last = int(table.seq[level.rows[0]]), int(table.seq[level.rows[-1]]) + 1
        canary, delayed = _evidence(traces[run], first, last)
        ratios = [math.exp(each) for each in (level.log_cost, *level.parts)]
        stretches.append(Stretch(run, first, last, ratios[0], ratios[1], ratios[2], name, canary, delayed))
    # States were found around one curve for all; what is late is judged within each.
    for name in np.unique(state):
        here = state == name
        if np.isfinite(residual[here]).any():
            residual[here] -= np.nanmedian(residual[here])
    disturbances = tuple(
        each for run, trace in enumerate(traces) for each in _disturbances(run, trace, table, residual)
    )
    is_disturbed = np.zeros(len(table), dtype=np.bool_)
    for each in disturbances:
        is_disturbed |= (table.run == each.run) & (table.seq >= each.first) & (table.seq < each.last)
    return Regimes(tuple(stretches), disturbances, state, is_disturbed)


def _state_names(
    levels: Sequence[Level], runs: Sequence[int], traces: Sequence[Trace], table: Operations
) -> list[str]:
    """Name groups of similar costs: by the canary where there is one group, else from fast to slow."""
    group = grouped(levels)
    count = max(group) + 1
    if count > 1:
        labels = ["fast", *(["slow"] if count == 2 else [f"slow-{each}" for each in range(1, count)])]  # noqa: PLR2004
        return [labels[each] for each in group]
    canaries = [
        _evidence(traces[run], int(table.seq[level.rows[0]]), int(table.seq[level.rows[-1]]) + 1)[0]
        for run, level in zip(runs, levels, strict=True)
    ]
    known = [each for each in canaries if math.isfinite(each)]
    name = "steady" if not known else "fast" if float(np.median(known)) < SLOW_CANARY_NS else "slow"
    return [name] * len(levels)


def _evidence(trace: Trace, first: int, last: int) -> tuple[float, float]:
    """Give the median canary and the share of waiting of the blocks that touch a stretch."""
    canaries: list[float] = []
    delayed = 0.0
    for endpoint in trace.endpoints:
        blocks = endpoint.blocks
        inside = np.flatnonzero((blocks["seq"] >= first) & (blocks["seq"] <= last))
        canaries += [each for each in blocks["canary_ns"][inside].tolist() if math.isfinite(each)]
        if inside.size > 1:
            ends = blocks[inside[[0, -1]]]
            wall = float(ends["time_ns"][1]) - float(ends["time_ns"][0])
            waited = float(ends["run_delay_ns"][1]) - float(ends["run_delay_ns"][0])
            delayed = max(delayed, waited / wall) if wall > 0 else delayed
    return (float(np.median(canaries)) if canaries else math.nan), delayed


def _disturbances(run: int, trace: Trace, table: Operations, residual: Vector) -> list[Disturbance]:
    """Find blocks in which an endpoint waited for a CPU, or too many operations were late."""
    rows = np.flatnonzero(table.run == run)
    if rows.size == 0:
        return []
    seen = residual[np.isfinite(residual)]
    limit = float(np.quantile(seen, 1 - LATE)) if seen.size else math.inf
    waited = _waiting(trace)
    found: list[Disturbance] = []
    before = -1 - _GAP
    for block in np.unique(table.block[rows]):
        inside = rows[table.block[rows] == block]
        here = residual[inside]
        here = here[np.isfinite(here)]
        late = float(np.mean(here > limit)) if here.size else 0.0
        expected = LATE * here.size
        is_late = late * here.size > expected + _SURE * math.sqrt(expected) + 1
        delayed = waited.get(int(block), 0.0)
        if not (is_late or delayed > DELAYED):
            continue
        ends = (int(table.seq[inside[0]]), int(table.seq[inside[-1]]) + 1)
        # The next operation begins when this block is over.
        after = min(int(inside[-1]) + 1, int(rows[-1]))
        times = (float(table.begin_s[inside[0]]), float(table.begin_s[after]))
        if found and block <= before + _GAP:
            last = found.pop()
            delayed, late = max(delayed, last.delayed), max(late, last.late)
            found.append(Disturbance(run, last.first, ends[1], last.begin_s, times[1], delayed, late))
        else:
            found.append(Disturbance(run, *ends, *times, delayed, late))
        before = int(block)
    return found


def _waiting(trace: Trace) -> dict[int, float]:
    """Give for each block the share of its time that an endpoint waited for a CPU, of the two the larger."""
    found: dict[int, float] = {}
    for endpoint in trace.endpoints:
        blocks = endpoint.blocks
        _, first = np.unique(blocks["seq"], return_index=True)
        wall = np.diff(blocks["time_ns"][first].astype(np.float64))
        delay = np.diff(blocks["run_delay_ns"][first].astype(np.float64))
        for number, (time, wait) in enumerate(zip(wall.tolist(), delay.tolist(), strict=True)):
            if time > 0:
                found[number] = max(found.get(number, 0.0), wait / time)
    return found
