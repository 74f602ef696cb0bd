"""The recorded runs of each cell together: their operations as one table, and the states of the host.

A model holds in one state of the host only. Where the CPUs of a virtual machine are moved together or
apart, everything between them costs several times more or less. So replications are parted by the canary,
then by the state of costs that most of their operations were measured in. Each group gets a model, and the
last replication of a group is held out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.piece_search import FEWEST_RECORDED
from steelyard.errors import AnalysisError
from steelyard.studies.communication.canary_groups import canary_groups
from steelyard.studies.communication.model.regimes import regimes_of
from steelyard.studies.communication.operations import joined, operations_of
from steelyard.studies.communication.options import HELD_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.studies.communication.model.regimes import Regimes
    from steelyard.studies.communication.operations import Clocks, Operations
    from steelyard.studies.communication.recorded import RecordedRun
    from steelyard.studies.communication.trace import Trace

MOST: Final = 0.5
"""A run belongs to the state of more than this share of its operations."""

FEWEST: Final = 50
"""Round trips a run needs to count: one bin of a prediction's error. Fewer say nothing about a curve, unless
there is nothing else: recordings may have one value per size."""


@dataclass(frozen=True, slots=True, eq=False)
class CellRecord:
    """Runs of one cell that left a trace, with the CPUs in one state.

    Parameters
    ----------
    runs : tuple of RecordedRun
        By replication, with `state` and `is_held_out` set; their place is `operations.run`.
    operations : Operations
        Of all runs.
    clocks : tuple of Clocks
        Of each run.
    regimes : Regimes
        States of costs, and disturbances.
    group : str
        State of the CPUs; empty where there is one.
    """

    runs: tuple[RecordedRun, ...]
    operations: Operations
    clocks: tuple[Clocks, ...]
    regimes: Regimes
    group: str

    @property
    def states(self) -> tuple[str, ...]:
        """States that runs belong to, the most common first."""
        found = {run.state for run in self.runs}
        return tuple(state for state in map(self.named, self.regimes.states) if state in found)

    def named(self, state: str) -> str:
        """Give the name of a state of costs, with that of the state of the CPUs."""
        return _named(self.group, state, len(self.regimes.states))

    def usable(self, state: str) -> NDArray[np.bool_]:
        """Mark the operations in a state that nothing disturbed; shape (n,)."""
        return next(
            np.asarray(self.regimes.usable(each)) for each in self.regimes.states if self.named(each) == state
        )

    def fitted(self, state: str) -> tuple[RecordedRun, ...]:
        """Give the runs that a state's model is fitted to."""
        return tuple(run for run in self.runs if run.state == state and not run.is_held_out)

    def held_out(self, state: str) -> tuple[RecordedRun, ...]:
        """Give the runs of a state that no model is fitted to."""
        return tuple(run for run in self.runs if run.state == state and run.is_held_out)

    def rows_of(self, run: RecordedRun) -> NDArray[np.bool_]:
        """Mark the operations of a run in its state that nothing disturbed; shape (n,)."""
        here = self.operations.run == self.runs.index(run)
        return np.asarray(here & self.usable(run.state))


def cell_records(runs: Sequence[RecordedRun]) -> tuple[CellRecord, ...]:
    """Put the runs of each cell together; cells without a usable trace are left out.

    A group of one replication keeps it for its model: then nothing is predicted there.
    """
    group_of = canary_groups(runs)
    members: dict[tuple[int, str], list[tuple[RecordedRun, Trace]]] = {}
    for run in runs:
        if run.trace is not None and _has_round_trips(run.trace):
            members.setdefault((run.cell, group_of[run.cell, run.block]), []).append((run, run.trace))
    return tuple(_record(members[cell, group], group) for cell, group in sorted(members))


def _has_round_trips(trace: Trace) -> bool:
    try:
        table, _ = operations_of(trace)
    except AnalysisError:
        return False
    return int(np.sum(table.half_s > 0)) >= (FEWEST_RECORDED if trace.is_recording else FEWEST)


def _record(members: Sequence[tuple[RecordedRun, Trace]], group: str) -> CellRecord:
    tables, clocks = zip(
        *(operations_of(trace, run=number) for number, (_, trace) in enumerate(members)), strict=True
    )
    table = joined(tables)
    regimes = regimes_of([trace for _, trace in members], table)
    named = [
        replace(run, state=_state_of(regimes, regimes.state[table.run == number], group))
        for number, (run, _) in enumerate(members)
    ]
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(named):
        groups.setdefault(run.state, []).append(number)
    held_out = {
        number
        for state, numbers in groups.items()
        if state and len(numbers) > HELD_OUT
        for number in numbers[-HELD_OUT:]
    }
    marked = tuple(replace(run, is_held_out=number in held_out) for number, run in enumerate(named))
    return CellRecord(marked, table, tuple(clocks), regimes, group)


def _named(group: str, state: str, count: int) -> str:
    if not group:
        return state
    return group if count == 1 else f"{group}, {state}"


def _state_of(regimes: Regimes, states: NDArray[np.str_], group: str) -> str:
    """Give the state of most operations of a run; empty where none holds for more than half."""
    names, counts = np.unique(states, return_counts=True)
    if counts.max() <= MOST * states.size:
        return ""
    return _named(group, str(names[counts.argmax()]), len(regimes.states))
