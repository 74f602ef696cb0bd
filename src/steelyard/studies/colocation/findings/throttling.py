"""Whether the kernel throttles a real-time service in favour of the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.stats import hypergeom

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.colocation.findings.effects import mean_over_trials
from steelyard.studies.colocation.findings.usage import counter, is_launched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

    Vector = NDArray[np.float64]

REAL_TIME: Final = "fifo"
WAITING_THREADS: Final = 1.0
"""Threads of the service that wait on average, from which it could use more CPU time."""

TAKEN_SHARE: Final = 0.02
"""CPU time of the jobs over that of the CPUs from which it counts as taken from a service that waits: the
kernel leaves 5 % of the time to others than real-time threads; below this are threads on their way out."""

PERIOD_S: Final = 1.0
"""SOURCE: ``kernel.sched_rt_period_us``; the kernel throttles for the end of each such period."""

FEWEST_BINS: Final = 50
"""Bins beside the jobs, and a tenth of them with and without iterations, that it takes to tell anything."""

CHANCE: Final = 0.001
"""Probability of such a coincidence by chance up to which it counts."""


def throttling_findings(cell: CellTrials, tolerance: float) -> Iterator[Finding]:
    """Say of a real-time service beside jobs whether the kernel throttles it; nothing of others."""
    sampled = [trial for trial in cell.trials if trial.trial is not None and trial.trial.samples.size]
    if any(_is_real_time(trial) for trial in sampled):
        yield _of_samples(cell, sampled)
    elif not sampled and cell.policy == REAL_TIME:
        made = _of_series(cell, tolerance)
        if made is not None:
            yield made


def _is_real_time(trial: Observed) -> bool:
    if trial.trial is None or is_launched(trial):
        return False
    return bool(trial.trial.plan["policy"].get("service_class") == REAL_TIME)


def throttled_share(trial: Observed) -> float:
    """Give the share of the stretches between samples, beside the jobs, in which they took CPU time from a
    service that waited for it.
    """  # noqa: D205 - one sentence
    times_s, waited_s = counter(trial, "service_wait_ns")
    _, taken_s = counter(trial, "best_effort_cpu_ns")
    if trial.trial is None or times_s.size < 2:  # noqa: PLR2004 - no stretch between
        return float("nan")
    lengths_s, cpus = np.diff(times_s), len(trial.trial.plan["cpus"])
    window = trial.phases.beside
    inside = (times_s[:-1] >= window.low) & (times_s[1:] <= window.high) & (lengths_s > 0)
    if not inside.any():
        return float("nan")
    waiting = np.diff(waited_s)[inside] >= WAITING_THREADS * lengths_s[inside]
    taken = np.diff(taken_s)[inside] >= TAKEN_SHARE * lengths_s[inside] * cpus
    return float(np.mean(waiting & taken))


def _of_samples(cell: CellTrials, sampled: Sequence[Observed]) -> Finding:
    shares = [100 * throttled_share(trial) for trial in sampled]
    share = mean_over_trials(shares, "percent", "stretches between samples")
    first = sampled[0].trial
    runtime = None if first is None else first.header.get("rt_runtime_us")
    return finding(
        "throttled",
        cell.subject,
        "throttled" if any(each > 0 for each in shares) else "not throttled",
        estimates={"share": share},
        facts={
            "trials": len(sampled),
            "rt_runtime_us": None if runtime is None else str(runtime),
            "origin": sampled[0].origin.value,
        },
        evidence=cell.evidence(
            ("service_wait_ns", "best_effort_cpu_ns"),
            "stretches in which the jobs get CPU time while the service waits",
            "samples.bin",
        ),
    )


def _of_series(cell: CellTrials, tolerance: float) -> Finding | None:
    """Tell from bins: jobs that get CPU time only while the service is throttled work where latency rises."""
    found = [each for each in (_coincidence(trial, tolerance) for trial in cell.trials) if each is not None]
    if not found:
        return None
    rise = float(np.median([rise for rise, _ in found]))
    is_seen = rise > tolerance and max(chance for _, chance in found) <= CHANCE
    return finding(
        "throttled",
        cell.subject,
        "seems throttled" if is_seen else "no sign of throttling",
        estimates={"rise": Estimate(finite(1 + rise), "ratio", "latency over its running median")},
        facts={
            "trials": len(found),
            "chance_percent": 100 * max(chance for _, chance in found),
            "rise_percent": finite(100 * rise),
            "origin": cell.trials[0].origin.value,
        },
        evidence=cell.evidence(
            ("value",), "latency where iterations end over its running median; hypergeometric test"
        ),
    )


def _coincidence(trial: Observed, tolerance: float) -> tuple[float, float] | None:
    """Give how far latency rises where iterations end, and the probability that as many of them meet rises.

    A bin counts with its neighbours: a request that was due just before the service stopped waits too.
    """
    bins, window = trial.bins, trial.phases.beside
    inside = window.holds(bins.start_s, bins.width_s) & np.isfinite(bins.mean_s)
    latency, is_work = bins.mean_s[inside], bins.iterations[inside] > 0
    count, works = int(latency.size), int(is_work.sum())
    if count < FEWEST_BINS or not FEWEST_BINS // 10 <= works <= count - FEWEST_BINS // 10:
        return None
    half = max(round(PERIOD_S / bins.width_s / 2), 1)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(latency, half, mode="edge"), 2 * half + 1)
    excess = latency / np.median(windows, axis=1) - 1
    near = np.lib.stride_tricks.sliding_window_view(np.pad(excess, 1, mode="edge"), 3).max(axis=1)
    is_high = near > tolerance
    chance = hypergeom.sf(int((is_high & is_work).sum()) - 1, count, int(is_high.sum()), works)
    return float(np.median(near[is_work])), float(chance)
