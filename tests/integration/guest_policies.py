"""One service under several policies in a guest: the plans of its trials, and what each did to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.run.guest.virtual_time import INSTRUCTION_NS
from steelyard.studies.colocation.guest.trials import (
    GUEST_GROUPS,
    PLACE,
    SCHEDULER,
    WATCH_FILE,
    GuestTrial,
    guest_places,
    is_counted,
    trial_work_iterations,
)
from steelyard.studies.colocation.trial import FORMAT, read_trial

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

WORK_US: Final = 4000
LOAD: Final = 0.7
"""Of the requests alone; what the kernel does for them comes on top."""
THREADS_PER_CPU: Final = 8


def _class(*switches: str) -> dict[str, Any]:
    command = [f"{PLACE}/{SCHEDULER}", "start", "--foreground", *switches, "--counters", "{counters}"]
    return {"best_effort_class": "idle", "scheduler": command}


POLICIES: Final[dict[str, Mapping[str, Any]]] = {
    "fifo": {"service_class": "fifo", "service_priority": 1},
    "nice": {"best_effort_nice": 19},
    "weights": {"service_weight": 10_000, "best_effort_weight": 1},
    "cpu-idle": {"best_effort_cpu_idle": True},
    "idle": {"best_effort_class": "idle"},
    "be": _class(),
    "be-no-local": _class("--no-local"),
    "be-no-entry": _class("--no-entry"),
    "be-no-exit": _class("--no-exit"),
}


def peer(program: str) -> dict[str, Any]:
    """Give the policy of another scheduler of sched_ext: best-effort jobs have the least weight it knows."""
    return {"best_effort_class": "idle", "scheduler": [f"{PLACE}/{program}"]}


def trial(
    name: str,
    policy: Mapping[str, Any],
    cpus: int,
    seed: int,
    *,
    best_effort_ms: int = 8000,
    instruction_ns: int = INSTRUCTION_NS,
    sockets: int = 1,
) -> GuestTrial:
    """Give the trial of a policy: a service of `LOAD` and twice as many best-effort threads as CPUs.

    The guest has the CPUs of `guest_places`. The meter of strictness is active under every policy: that of
    the class itself, or from beside.
    """
    places = guest_places(cpus, sockets)
    uses_groups = any(key.endswith(("_weight", "_cpu_idle")) for key in policy)
    plan = {
        "format": FORMAT,
        "seed": seed,
        "cpus": list(places.cpus),
        "client_cpus": list(places.client_cpus),
        "service": {
            "kind": "pool",
            "threads": THREADS_PER_CPU * cpus,
            "work_iterations": trial_work_iterations(WORK_US, cpus, instruction_ns),
            "work_us": WORK_US,
            "long_share": 0.0,
            "long_factor": 1.0,
        },
        "client": {
            "rate_per_s": LOAD * cpus * 1e6 / WORK_US,
            "arrivals": "poisson",
            "connections": 4 * cpus,
            "closed_loop": 0,
        },
        "best_effort": {"kind": "spin", "jobs": 2, "threads": cpus},
        "phases": {
            "warm_up_ms": 1500,
            "baseline_ms": 500,
            "best_effort_ms": best_effort_ms,
            "recovery_ms": 0,
            "drain_limit_ms": 5000,
        },
        "policy": {"name": name, **policy},
        "groups": GUEST_GROUPS if uses_groups else None,
        "groups_version": 2,
    }
    return GuestTrial(name, plan, is_watched=not is_counted(plan))


@dataclass(frozen=True, slots=True)
class Effect:
    """What a service and its best-effort jobs had while both were there.

    Parameters
    ----------
    mean_ms, p99_ms : float
        Latency of the requests that were due while the jobs were there.
    requests, lost : int
        How many, and how many of them were never answered.
    iterations : float
        Iterations of the jobs; of those that had not ended as large a part as of the time that the thread's
        others took.
    scheduler : Mapping
        Counters of the scheduler; its strictness from beside where it counts none, and the jobs are marked.
    """

    mean_ms: float
    p99_ms: float
    requests: int
    lost: int
    iterations: float
    scheduler: Mapping[str, Any]


def effect(folder: Path) -> Effect:
    """Read a trial and give what it shows."""
    found = read_trial(folder)
    header = found.header
    assert header["is_complete"], header
    assert not header["missing"], header["missing"]
    begin, end = header["best_effort_start_ns"], header["best_effort_stop_ns"]
    due = found.requests[(found.requests["intended_ns"] >= begin) & (found.requests["intended_ns"] < end)]
    answered = due[due["received_ns"] > 0]
    latency_ms = (answered["received_ns"].astype(float) - answered["intended_ns"]) / 1e6
    return Effect(
        mean_ms=float(latency_ms.mean()),
        p99_ms=float(np.percentile(latency_ms, 99)),
        requests=len(due),
        lost=len(due) - len(answered),
        iterations=_iterations(found.iterations, begin, end),
        scheduler=found.scheduler or _watched(folder),
    )


def _watched(folder: Path) -> Mapping[str, Any]:
    path = folder / WATCH_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _iterations(records: NDArray[np.void], begin_ns: int, end_ns: int) -> float:
    total = 0.0
    for thread in np.unique(records[["job", "thread"]]):
        mine = (records["job"] == thread["job"]) & (records["thread"] == thread["thread"])
        ends = np.sort(records["end_ns"][mine])
        ends = ends[(ends >= begin_ns) & (ends < end_ns)].astype(float)
        if len(ends):
            length = (ends[-1] - begin_ns) / len(ends)
            total += len(ends) + min((end_ns - ends[-1]) / length, 1.0)
    return total
