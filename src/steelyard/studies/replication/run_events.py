"""Events of a run that may lengthen a call: pauses of the run time system, switches, migrations, steal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

    from steelyard.record.experiment import ExperimentRun

Stretches = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Begin and end of each event [ns]."""

COLLECTION: Final = "garbage collection"
PAUSE: Final = "pause of the run time system"
MIGRATION: Final = "migration to another CPU"
PREEMPTION: Final = "CPU taken by "
WAITING: Final = "waiting"
STEAL: Final = "time stolen by the hypervisor"

NAMED_PROCESSES: Final = 8
"""Programs that took the CPU most often; the others are left out."""

MEASURED_THREAD: Final = "steelyard-calls"


def events_of(run: ExperimentRun) -> dict[str, Stretches]:
    """Give the events of a run by the name of what they would be the cause of; only kinds that occurred."""
    found = {
        **_pauses(run.table("pauses")),
        **_switches(run.table("switches")),
        **_migrations(run.table("migrations")),
        **_steal(run.table("samples")),
    }
    return {name: events for name, events in found.items() if events[0].size}


def _pauses(table: pa.Table) -> dict[str, Stretches]:
    begin, length = _whole(table, "start_ns"), _whole(table, "duration_ns")
    is_collection = np.array([kind == "gc" for kind in table.column("kind").to_pylist()], dtype=np.bool_)
    return {
        name: (begin[chosen], (begin + length)[chosen])
        for name, chosen in ((COLLECTION, is_collection), (PAUSE, ~is_collection))
    }


def _switches(table: pa.Table) -> dict[str, Stretches]:
    """Give the times at which the measured thread was off its CPU, by who took it."""
    table = _of_measured(table)
    begin, end = _whole(table, "off_ns"), _whole(table, "on_ns")
    taken = table.column("is_preempted").to_numpy(zero_copy_only=False).astype(np.bool_)
    names = np.array(table.column("next_name").to_pylist(), dtype=object)
    found = {WAITING: (begin[~taken], end[~taken])}
    for name, _ in Counter(names[taken].tolist()).most_common(NAMED_PROCESSES):
        chosen = taken & (names == name)
        found[f"{PREEMPTION}{name}"] = (begin[chosen], end[chosen])
    return found


def _migrations(table: pa.Table) -> dict[str, Stretches]:
    moment = _whole(_of_measured(table), "time_ns")
    return {MIGRATION: (moment, moment)}


def _steal(table: pa.Table) -> dict[str, Stretches]:
    """Give the stretches between samples in which time was stolen."""
    moment, stolen = _whole(table, "time_ns"), _whole(table, "steal_ns")
    grew = np.flatnonzero(np.diff(stolen) > 0)
    return {STEAL: (moment[grew], moment[grew + 1])} if moment.size > 1 else {}


def _of_measured(table: pa.Table) -> pa.Table:
    threads = np.array(table.column("thread").to_pylist(), dtype=object)
    return table.filter(threads == MEASURED_THREAD) if threads.size else table


def _whole(table: pa.Table, name: str) -> NDArray[np.int64]:
    column: NDArray[np.int64] = table.column(name).to_numpy()
    return column
