"""What the scheduler of a policy counted: its checks, what they cost, and how strictly it kept the rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

CHECKS: Final = {
    "entry": ("entry_runs", "entry_successes"),
    "exit": ("exit_runs", "exit_successes"),
    "local": ("local_lc_picks", None),
}
"""Counters of each check: how often it ran, and how often it found something; the local one counts picks."""

TICK_NS: Final = 4 * NS_PER_MS
"""SOURCE: ticks of 250 Hz, as the source's kernel and the simulator have them."""


BY_CLASSES: Final = "by powers of two"
"""How a duration is known: by the limits of the class of the histogram that holds it."""


def check_findings(cell: CellTrials, clock_shift: int | None = None) -> Iterator[Finding]:
    """Give the counts of each check, the cost of the exit check, and the strictness, where they were counted.

    An instruction takes ``2**clock_shift`` ns where time is counted in instructions.
    """
    counted = [trial.trial.scheduler for trial in cell.trials if trial.trial and trial.trial.scheduler]
    if not counted:
        return
    if any(_number(each.get("counters"), "scheduling_events") for each in counted):
        for check in CHECKS:
            yield _check_finding(cell, check, counted)
    timed = [trial for trial in cell.trials if sum(_exit_times(trial))]
    if timed:
        yield _exit_cost_finding(cell, timed, clock_shift)
    if any(isinstance(each.get("strictness"), dict) for each in counted):
        yield _strictness_finding(cell, counted)


def _check_finding(cell: CellTrials, check: str, counted: Sequence[Mapping[str, Any]]) -> Finding:
    runs_name, successes_name = CHECKS[check]
    counters = [each.get("counters") for each in counted]
    runs = sum(_number(each, runs_name) for each in counters)
    successes = None if successes_name is None else sum(_number(each, successes_name) for each in counters)
    events = sum(_number(each, "scheduling_events") for each in counters)
    is_on = all((each.get("switches") or {}).get(check, True) for each in counted)
    estimates = {"per_event": Estimate(100 * runs / events, "percent", "runs over scheduling events")}
    if successes is not None:
        share = 100 * successes / runs if runs else None
        estimates["success"] = Estimate(share, "percent", "successes over runs", measurements=runs)
    cost_ns = median_ns([(each.get("histograms_ns") or {}).get(check) or [] for each in counted])
    if cost_ns is not None:
        estimates["cost"] = Estimate(cost_ns / NS_PER_S, "s", "median, by powers of two", measurements=runs)
    return finding(
        "check",
        {**cell.subject, "check": check},
        "on" if is_on else "off",
        estimates=estimates,
        facts={"trials": len(counted), "events": events, "runs": runs, "successes": successes},
        evidence=cell.evidence((runs_name,), "sum over the trials", "scheduler.json"),
    )


def median_ns(histograms: Sequence[Sequence[int]]) -> float | None:
    """Give the geometric middle of the class of the median; class k holds 2^k up to 2^(k+1)."""
    found = _quantile(_summed(histograms), 0.5)
    return None if found.value is None else found.value * NS_PER_S


def _summed(histograms: Sequence[Sequence[int]]) -> list[int]:
    longest = max(map(len, histograms), default=0)
    return [sum(each[at] for each in histograms if at < len(each)) for at in range(longest)]


def _quantile(counts: Sequence[int], share: float) -> Estimate:
    """Give the geometric middle and the limits of the class that holds a quantile."""
    left = share * sum(counts)
    for power, count in enumerate(counts):
        left -= count
        if left <= 0 < count:
            return _within(2.0**power / NS_PER_S, "s", sum(counts))
    return Estimate(None, "s", BY_CLASSES)


def _within(least: float, unit: str, measurements: int) -> Estimate:
    """Give what lies between a number and twice that number."""
    middle = math.sqrt(2) * least
    return Estimate(middle, unit, BY_CLASSES, low=least, high=2 * least, measurements=measurements)


def _exit_cost_finding(cell: CellTrials, timed: Sequence[Observed], clock_shift: int | None) -> Finding:
    """Say how often the exit check ran, for how long, and how often it took over a waiting thread."""
    counters = [_scheduler(trial)["counters"] for trial in timed]
    runs, steals, events = (
        sum(_number(each, name) for each in counters)
        for name in ("exit_runs", "exit_successes", "scheduling_events")
    )
    # Only where best-effort work is ready is a CPU about to turn to it: the time of the jobs counts.
    cpu_s = sum(_jobs_s(trial) * len(trial.trial.plan["cpus"]) for trial in timed if trial.trial is not None)
    # While instructions are counted on one CPU, the others stand still.
    spent_s = cpu_s if clock_shift is None else sum(map(_jobs_s, timed))
    counts = _summed([_exit_times(trial) for trial in timed])
    median = _quantile(counts, 0.5)
    least_s = sum(count * 2.0**power for power, count in enumerate(counts)) / NS_PER_S
    estimates = {
        "rate": Estimate(finite(runs / cpu_s), "1/s", "runs over CPU time while the jobs are there"),
        "per_event": Estimate(
            100 * runs / events if events else None, "percent", "runs over scheduling events"
        ),
        "steals": Estimate(
            100 * steals / runs, "percent", "threads taken over, over runs", measurements=runs
        ),
        "median": median,
        "p99": _quantile(counts, 0.99),
        "share": _within(100 * least_s / spent_s, "percent", runs),
    }
    # A virtual CPU rarely ends its turn in the middle of the median run: nothing else is in its time.
    estimates["instructions"] = (
        Estimate(None, "instructions", "time is not counted in instructions here")
        if clock_shift is None or median.low is None
        else _within(median.low * NS_PER_S / 2**clock_shift, "instructions", runs)
    )
    return finding(
        "exit_cost",
        cell.subject,
        "descriptive",
        estimates=estimates,
        facts={"trials": len(timed), "events": events, "runs": runs, "steals": steals, "cpu_s": cpu_s},
        evidence=cell.evidence(("exit_runs", "histograms_ns"), "sum over the trials", "scheduler.json"),
    )


def _jobs_s(trial: Observed) -> float:
    return trial.phases.jobs_stop_s - trial.phases.jobs_start_s


def _scheduler(trial: Observed) -> Mapping[str, Any]:
    return trial.trial.scheduler if trial.trial is not None else {}


def _exit_times(trial: Observed) -> Sequence[int]:
    """Give how many runs of the exit check took 2^k up to 2^(k+1) ns; empty where none was timed."""
    scheduler = _scheduler(trial)
    counts: Sequence[int] = (scheduler.get("histograms_ns") or {}).get("exit") or ()
    return counts if _number(scheduler.get("counters"), "exit_runs") else ()


def _strictness_finding(cell: CellTrials, counted: Sequence[Mapping[str, Any]]) -> Finding:
    """Judge the rule: no best-effort thread runs while one of the service waits for a core it may use."""
    kept = [each["strictness"] for each in counted if isinstance(each.get("strictness"), dict)]
    total_ns = sum(_number(each, "violation_ns") for each in kept)
    violations = sum(_number(each, "violations") for each in kept)
    longest_ns = max(_number(each, "longest_ns") for each in kept)
    mean_ns = total_ns / violations if violations else 0.0
    ejections = sum(int(each.get("ejections") or 0) for each in counted)
    return finding(
        "strictness",
        cell.subject,
        "within a tick" if longest_ns <= TICK_NS else "violated",
        estimates={
            "total": Estimate(
                total_ns / NS_PER_S, "s", "service waits while jobs run, summed", units=len(kept)
            ),
            "mean": Estimate(finite(mean_ns / NS_PER_S), "s", "mean of the violations"),
            "longest": Estimate(longest_ns / NS_PER_S, "s", "longest violation"),
        },
        facts={
            "trials": len(kept),
            "violations": violations,
            "tick_ms": TICK_NS / NS_PER_MS,
            "ejections": ejections,
            "last_exit": "; ".join(
                dict.fromkeys(str(each.get("last_exit") or "") for each in counted if ejections)
            ),
        },
        evidence=cell.evidence(("strictness",), "violation_ns over violations", "scheduler.json"),
    )


def _number(mapping: object, name: str) -> int:
    value = mapping.get(name) if isinstance(mapping, dict) else None
    return int(value) if isinstance(value, int | float) else 0
