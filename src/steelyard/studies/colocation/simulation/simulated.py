"""Trials of colocation that are simulated: same files as measured ones, marked as simulated.

The simulator (``crates/sched``) handles ticks, wake-ups, balancing and switches of many CPUs one by one,
in whole nanoseconds; the same options give the same bits on every machine.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from steelyard._native import ScheduleSimulation
from steelyard.errors import UsageError
from steelyard.studies.colocation.trial import ITERATION, REQUEST, SAMPLE, Trial
from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SimulatedPolicy = Literal["none", "nice", "weights", "idle", "cpu-idle", "be", "fifo"]

POLICIES: Final[dict[str, str]] = {
    "none": "no best-effort jobs",
    "nice": "jobs at nice 19",
    "weights": "control groups with cpu.weight 10000 and 1",
    "idle": "jobs in SCHED_IDLE",
    "cpu-idle": "jobs in a control group with cpu.idle",
    "be": "the best-effort class: local, entry and exit check",
    "fifo": "the service in SCHED_FIFO",
}
"""Policies that are simulated, and what they are."""

CHECKS: Final = ("local", "entry", "exit")
"""Checks of the best-effort class."""

EVENTS_PER_STEP: Final = 1 << 18
"""Between two looks at the clock and at signals: some 30 ms."""

BEGIN_NS: Final = NS_PER_S
"""Stamp of the begin; 0 means in a record that something was not reached."""

SMALL_MACHINE: Final = 8
"""CPUs of a machine of which fewer are used; the slice of Linux is 2.8 ms from here on."""

BASE_SLICE_NS: Final = 700_000
"""SOURCE: kernel/sched/fair.c of Linux 6.14, ``sysctl_sched_base_slice``; times 1 + log2(min(CPUs, 8))."""

CORES_PER_CACHE: Final = 16
"""CPUs behind one last-level cache at most, where the options do not say it: a common server part."""

THREADS_PER_CORE: Final = 4
"""Workers of the pool per CPU, where the options do not say it."""

MOST_CORES: Final = 4096
_DURATIONS: Final = frozenset(("--duration", "--work"))

_WARM_UP, _BASELINE, _BEST_EFFORT, _RECOVERY = 1, 10, 19, 10
"""SOURCE: the source starts its jobs 11 s after the begin and stops them at 30 s; the parts of other
durations are in proportion."""


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated.

    Parameters
    ----------
    policy : str
        One of `POLICIES`.
    off : tuple of str
        Checks of the best-effort class that are switched off; of `CHECKS`.
    cores : int
        CPUs that service and jobs share, 1 to `MOST_CORES`.
    load : float
        Work that arrives over what the CPUs can do, above 0.
    seed : int
        Seed of the arrivals.
    duration_ns : int
        From the begin to the last request: warm-up, baseline, jobs and recovery as 1 : 10 : 19 : 10.
    jobs : int
        Best-effort jobs of one thread each.
    work_ns : int
        Work of a usual request.
    iteration_ns : int
        Work of an iteration of a job.
    arrivals : str
        ``uniform`` (equal distances) or ``poisson``.
    threads : int or None
        Workers of the service's pool; four per CPU if not given.
    machine_cores : int or None
        CPUs of the machine, of which `cores` are used; at least 8 if not given.
    intake : str
        Who reads requests: ``workers``, each its own, or a ``reader``, one thread that wakes workers.
    long_share, long_factor : float
        Share of long requests, and their work over that of a usual one.
    """

    policy: str = "be"
    off: tuple[str, ...] = ()
    cores: int = 4
    load: float = 0.85
    seed: int = 1
    duration_ns: int = 40 * NS_PER_S
    jobs: int = 2
    work_ns: int = 6 * NS_PER_MS
    iteration_ns: int = 5 * NS_PER_MS
    arrivals: str = "uniform"
    threads: int | None = None
    machine_cores: int | None = None
    intake: str = "workers"
    long_share: float = 0.0
    long_factor: float = 50.0

    @property
    def name(self) -> str:
        """Name of the policy, with the checks that are off: ``be-no-exit``."""
        return "-".join((self.policy, *(f"no-{check}" for check in CHECKS if check in self.off)))

    @property
    def rate_per_s(self) -> float:
        """Requests per second."""
        mean_ns = self.work_ns * (1 + self.long_share * (self.long_factor - 1))
        return self.load * self.cores * NS_PER_S / mean_ns

    def phases_ns(self) -> tuple[int, int, int, int]:
        """Give the lengths of warm-up, baseline, jobs and recovery [ns]; all but the last are whole ms."""
        parts = (_WARM_UP, _BASELINE, _BEST_EFFORT, _RECOVERY)
        whole_ms = sum(parts) * NS_PER_MS
        warm_up, baseline, best_effort, _ = (
            self.duration_ns * part // whole_ms * NS_PER_MS for part in parts
        )
        return warm_up, baseline, best_effort, self.duration_ns - warm_up - baseline - best_effort


def named_policy(name: str) -> tuple[str, tuple[str, ...]]:
    """Give the policy and the checks that are off of a name such as ``be-no-exit``.

    Raises
    ------
    UsageError
        If there is no such policy.

    Examples
    --------
    >>> named_policy("be-no-exit-no-entry")
    ('be', ('exit', 'entry'))
    """
    policy, *off = name.split("-no-")
    if policy not in POLICIES or not set(off) <= set(CHECKS) or (off and policy != "be"):
        allowed = ", ".join(f"`{each}`" for each in POLICIES)
        message = f"cannot simulate a policy `{name}`; allowed: {allowed}"
        raise UsageError(message, hint="checks of `be` are switched off as in `be-no-exit`")
    return policy, tuple(off)


def config_of(options: SimulationOptions) -> dict[str, Any]:
    """Give the configuration of the native simulator.

    Raises
    ------
    UsageError
        If an option is out of its range.
    """
    _require_ranges(options)
    config: dict[str, Any] = json.loads(ScheduleSimulation.default_config())
    given = options.machine_cores
    machine = max(options.cores, SMALL_MACHINE) if given is None else given
    caches = math.ceil(machine / CORES_PER_CACHE)
    cache_cores = min(options.cores, math.ceil(machine / caches))
    warm_up, baseline, best_effort, _ = options.phases_ns()
    start = warm_up + baseline
    config |= {
        "seed": options.seed,
        "cores": options.cores,
        "cache_cores": cache_cores,
        "unused_cores": machine - options.cores if caches == 1 else 0,
        "policy": options.policy,
        "checks": {check: check not in options.off for check in CHECKS},
        "slice_ns": BASE_SLICE_NS * min(machine, SMALL_MACHINE).bit_length(),
    }
    config["service"] |= {
        "threads": THREADS_PER_CORE * options.cores if options.threads is None else options.threads,
        "work_ns": options.work_ns,
        "rate_per_s": options.rate_per_s,
        "is_poisson": options.arrivals == "poisson",
        "has_reader": options.intake == "reader",
        "long_share": options.long_share,
        "long_factor": options.long_factor,
    }
    config["best_effort"] = {"jobs": options.jobs, "threads": 1, "iteration_ns": options.iteration_ns}
    config["phases"] = {
        "best_effort_start_ns": start,
        "best_effort_stop_ns": start + best_effort,
        "client_end_ns": options.duration_ns,
        "limit_ns": 2 * options.duration_ns,
    }
    return config


def _require_ranges(options: SimulationOptions) -> None:
    most_load, least_ns, most_ns = 10.0, 100 * NS_PER_MS, 3600 * NS_PER_S
    machine = options.cores if options.machine_cores is None else options.machine_cores
    threads = 1 if options.threads is None else options.threads
    ranges = (
        ("--cores", options.cores, 1, MOST_CORES, f"1 to {MOST_CORES}"),
        ("--load", options.load, 1e-6, most_load, "above 0, up to 10, as in `0.85`"),
        ("--duration", options.duration_ns, least_ns, most_ns, "100 ms to 1 h"),
        ("--work", options.work_ns, 1000, NS_PER_S * 100, "1 us to 100 s"),
        ("--best-effort-jobs", options.jobs, 0, 1 << 16, "0 to 65536"),
        ("--threads", threads, 1, 1 << 16, "1 to 65536"),
        ("--long-share", options.long_share, 0.0, 1 - 1e-9, "0 to less than 1, as in `2%` or `0.02`"),
        ("--long-factor", options.long_factor, 1.0, 10_000.0, "1 to 10000"),
        ("--seed", options.seed, 0, 2**63 - 1, "0 to 2^63 - 1"),
        ("--machine-cores", machine, options.cores, MOST_CORES, f"`--cores` to {MOST_CORES}"),
    )
    for name, value, low, high, allowed in ranges:
        if not low <= value <= high:
            shown = f"{value / NS_PER_S:g}s" if name in _DURATIONS else f"{value:g}"
            message = f"cannot simulate `{name} {shown}`; allowed: {allowed}"
            raise UsageError(message)


def simulate(options: SimulationOptions, tell: Callable[[float], None] | None = None) -> Trial:
    """Simulate one trial; it is read as a measured one, with ``simulated`` in its header.

    `tell` gets the share of the duration that is done, some times per second, and may raise to stop.

    Raises
    ------
    UsageError
        If an option is out of its range.
    """
    config = config_of(options)
    try:
        simulation = ScheduleSimulation(json.dumps(config))
    except ValueError as error:
        message = f"the simulator refuses its input: {error}"
        raise UsageError(message) from error
    while simulation.advance(EVENTS_PER_STEP):
        if tell is not None:
            tell(min(simulation.now_ns / options.duration_ns, 1.0))
    return _trial_of(options, config, simulation)


def _trial_of(options: SimulationOptions, config: Mapping[str, Any], simulation: ScheduleSimulation) -> Trial:
    requests = _requests_of(simulation)
    phases = config["phases"]
    header = {
        "simulated": True,
        "is_complete": True,
        "host": "simulated",
        "kernel": "Linux 6.14, as a model",
        "cpus": list(range(options.cores)),
        "clock": "monotonic",
        "start_ns": BEGIN_NS,
        "best_effort_start_ns": BEGIN_NS + phases["best_effort_start_ns"],
        "best_effort_stop_ns": BEGIN_NS + phases["best_effort_stop_ns"],
        "client_end_ns": BEGIN_NS + phases["client_end_ns"],
        "end_ns": BEGIN_NS + simulation.now_ns,
        "work_iterations": 0,
        "work_ns": options.work_ns,
        "applied": [{"setting": options.name, "place": "simulator"}],
        "missing": [],
        "model": dict(config),
    }
    return Trial(
        plan=_plan_of(options, config),
        header=header,
        requests=requests,
        iterations=_iterations_of(simulation),
        samples=_samples_of(simulation),
        scheduler=_scheduler_of(options, simulation),
    )


def _plan_of(options: SimulationOptions, config: Mapping[str, Any]) -> dict[str, Any]:
    names = ("warm_up_ms", "baseline_ms", "best_effort_ms", "recovery_ms")
    phases = {name: ns // NS_PER_MS for name, ns in zip(names, options.phases_ns(), strict=True)}
    service = config["service"]
    is_idle = options.policy in {"idle", "be"}
    weights = {"service_weight": config["service_weight"], "best_effort_weight": config["best_effort_weight"]}
    return {
        "seed": options.seed,
        "cpus": list(range(options.cores)),
        "client_cpus": [],
        "service": {
            "kind": "pool",
            "threads": service["threads"],
            "work_iterations": 0,
            "work_us": options.work_ns / 1000,
            "long_share": options.long_share,
            "long_factor": options.long_factor,
        },
        "client": {
            "rate_per_s": options.rate_per_s,
            "arrivals": options.arrivals,
            "connections": 1,
            "closed_loop": 0,
        },
        "best_effort": {
            "kind": "spin",
            "jobs": 0 if options.policy == "none" else options.jobs,
            "threads": 1,
        },
        "phases": {**phases, "drain_limit_ms": options.duration_ns // NS_PER_MS},
        "policy": {
            "name": options.name,
            "service_class": "fifo" if options.policy == "fifo" else None,
            "best_effort_class": "idle" if is_idle else None,
            "best_effort_nice": 19 if options.policy == "nice" else None,
            "best_effort_cpu_idle": True if options.policy == "cpu-idle" else None,
            **(weights if options.policy == "weights" else {}),
        },
        "groups": None,
        "groups_version": 2,
    }


def _stamps(column: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.where(column > 0, column + np.uint64(BEGIN_NS), np.uint64(0))


def _requests_of(simulation: ScheduleSimulation) -> np.ndarray[Any, np.dtype[np.void]]:
    columns = simulation.requests()
    requests = np.zeros(len(columns), dtype=REQUEST)
    requests["seq"] = np.arange(len(columns))
    requests["kind"] = columns[:, 0]
    requests["intended_ns"] = requests["sent_ns"] = columns[:, 1] + np.uint64(BEGIN_NS)
    requests["started_ns"] = _stamps(columns[:, 2])
    requests["finished_ns"] = requests["received_ns"] = _stamps(columns[:, 3])
    return requests


def _iterations_of(simulation: ScheduleSimulation) -> np.ndarray[Any, np.dtype[np.void]]:
    columns = simulation.iterations()
    iterations = np.zeros(len(columns), dtype=ITERATION)
    iterations["job"], iterations["thread"] = columns[:, 0], columns[:, 1]
    iterations["end_ns"] = columns[:, 2] + np.uint64(BEGIN_NS)
    return np.sort(iterations, order=("end_ns", "job", "thread"))


def _samples_of(simulation: ScheduleSimulation) -> np.ndarray[Any, np.dtype[np.void]]:
    columns = simulation.samples()
    samples = np.zeros(len(columns), dtype=SAMPLE)
    names = ("time_ns", "service_cpu_ns", "service_wait_ns", "best_effort_cpu_ns", "best_effort_wait_ns")
    for place, name in enumerate(names):
        samples[name] = columns[:, place]
    samples["time_ns"] += np.uint64(BEGIN_NS)
    samples["busy_ns"] = samples["service_cpu_ns"] + samples["best_effort_cpu_ns"]
    return samples


def _scheduler_of(options: SimulationOptions, simulation: ScheduleSimulation) -> dict[str, Any]:
    counted = json.loads(simulation.counters())
    is_class = options.policy == "be"
    counters = counted["counters"]
    return {
        "format": "steelyard/scheduler-counters/1",
        "simulated": True,
        "active": is_class,
        "ejections": 0,
        "last_exit": "",
        "switches": {check: is_class and check not in options.off for check in CHECKS},
        "counters": {**counters, "heartbeat_blinks": 0, "reenqueues": 0},
        "histograms_ns": {},
        "strictness": {**counted["strictness"], "events": counters["scheduling_events"]},
        "conservation": counted["conservation"],
        "parked_ns": counted["parked_ns"],
    }


def with_policy(options: SimulationOptions, name: str) -> SimulationOptions:
    """Give the same options with another policy, named as `named_policy` reads it."""
    policy, off = named_policy(name)
    return replace(
        options, policy=policy, off=tuple(dict.fromkeys((*options.off, *off))) if policy == "be" else ()
    )
