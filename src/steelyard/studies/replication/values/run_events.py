"""Events of a run by kind, from what was recorded beside its calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from steelyard.analyse.peaks.event_kinds import Depth, Events

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from steelyard.studies.replication.experiment_record import ExperimentRun

MOST_NAMES: Final = 12
"""Names that are kinds of their own, by the time they took; the rest is one kind."""
NOBODY: Final = "swapper"
MOVER: Final = "migration"
"""Kernel thread of each CPU that stops whatever is there; so a thread that must leave is moved."""
_PAUSES: Final = {"gc": Depth.PAUSE, "safepoint": Depth.SAFEPOINT}
_COUNTERS: Final = {
    "steal_ns": "steal",
    "interrupt_ns": "interrupts",
    "memory_pressure_ns": "memory pressure",
    "io_pressure_ns": "pressure of input and output",
}


def events_of(run: ExperimentRun) -> list[Events]:
    """Give the events of a run by kind.

    ``gc`` and whatever else the log of the run time system calls its pauses; ``off-CPU by NAME`` (the thread
    could have gone on, and NAME had its CPU; without numbers of CPUs and threads); ``migration``
    (from leaving one CPU to coming to another); ``waiting`` (the thread itself left its CPU: for a lock, for
    input, asleep); ``steal``, ``interrupts`` and pressures (what a counter grew by between two samples).

    Parameters
    ----------
    run : ExperimentRun
        A run, watched or not.

    Returns
    -------
    list of Events
        Empty where nothing was recorded beside the calls.
    """
    return [*_pauses(run.table("pauses")), *_switches(run), *_samples(run.table("samples"))]


def plain_name(name: str) -> str:
    """Give the name of a group of threads that do the same.

    Examples
    --------
    >>> [plain_name(name) for name in ("kworker/0:1-events", "GC Thread#3", "opt cgu.07", "C2 Comp")]
    ['kworker', 'GC Thread', 'opt cgu', 'C2 Comp']
    """
    return re.sub(r"[\s#:._-]*\d+$", "", name.partition("/")[0]) or name


def _pauses(table: pa.Table) -> list[Events]:
    starts, lengths = _column(table, "start_ns"), _column(table, "duration_ns")
    kinds = np.asarray(table["kind"].to_pylist(), dtype=object)
    found = []
    for kind in sorted(set(kinds)):
        mine = kinds == kind
        depth = _PAUSES.get(kind, Depth.SAFEPOINT)
        found.append(Events(kind, starts[mine], starts[mine] + lengths[mine], depth=depth))
    return found


def _switches(run: ExperimentRun) -> list[Events]:
    table = run.table("switches")
    if table.num_rows == 0:
        return []
    starts, ends = _column(table, "off_ns"), _column(table, "on_ns")
    preempted = np.asarray(table["is_preempted"].to_numpy(zero_copy_only=False), dtype=bool)
    found = []
    if (~preempted).any():
        found.append(Events("waiting", starts[~preempted], ends[~preempted], depth=Depth.WAITING))
    moved = np.isin(ends, _column(run.table("migrations"), "time_ns"))
    if moved.any():
        found.append(Events("migration", starts[moved], ends[moved]))
    if preempted.any():
        names = pc.dictionary_encode(table["next_name"].combine_chunks())
        plain = np.array([plain_name(name) for name in names.dictionary.to_pylist()], dtype=object)
        who = plain[np.asarray(names.indices)]
        # The kernel's own thread that carries a running one to another CPU is the migration, no cause of it.
        others = preempted & ~(moved & (who == MOVER))
        found += _by_name(who[others], starts[others], ends[others])
    return found


def _by_name(who: NDArray[np.object_], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[Events]:
    distinct, place = np.unique(who.astype(str), return_inverse=True)
    taken = np.bincount(place, weights=(ends - starts).astype(np.float64))
    largest = np.argsort(-taken, kind="stable")[:MOST_NAMES]
    found = []
    for index in largest:
        mine = place == index
        name = "nobody: it waited to be placed" if distinct[index] == NOBODY else str(distinct[index])
        found.append(Events(f"off-CPU by {name}", starts[mine], ends[mine]))
    rest = ~np.isin(place, largest)
    if rest.any():
        found.append(Events("off-CPU by others", starts[rest], ends[rest]))
    return found


def _samples(table: pa.Table) -> list[Events]:
    if table.num_rows < 2:  # noqa: PLR2004 - a counter needs a begin and an end
        return []
    times = _column(table, "time_ns")
    found = []
    for column, kind in _COUNTERS.items():
        counter = _column(table, column)
        if counter.min() < 0:
            continue
        growth = np.diff(counter)
        grew = growth > 0
        if grew.any():
            amounts = growth[grew].astype(np.float64)
            found.append(Events(kind, times[:-1][grew], times[1:][grew], amounts, Depth.HOST))
    return found


def _column(table: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(table[name].to_numpy(), dtype=np.int64)
