"""What the scheduler of a policy counted: its checks, and how strictly it kept the rule."""

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

CHECKS: Final = {
    "entry": ("entry_runs", "entry_successes"),
    "exit": ("exit_runs", "exit_successes"),
    "local": ("local_lc_picks", None),
}
"""Counters of each check: how often it ran, and how often it found something; the local one counts picks."""

TICK_NS: Final = 4 * NS_PER_MS
"""SOURCE: ticks of 250 Hz, as the source's kernel and the simulator have them."""


def check_findings(cell: CellTrials) -> Iterator[Finding]:
    """Give the counts of each check, and the strictness, of the trials that have counters."""
    counted = [trial.trial.scheduler for trial in cell.trials if trial.trial and trial.trial.scheduler]
    if not counted:
        return
    if any(_number(each.get("counters"), "scheduling_events") for each in counted):
        for check in CHECKS:
            yield _check_finding(cell, check, counted)
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
    longest = max(map(len, histograms), default=0)
    totals = [sum(each[at] for each in histograms if at < len(each)) for at in range(longest)]
    left = sum(totals) / 2
    if not left:
        return None
    for power, count in enumerate(totals):
        left -= count
        if left <= 0:
            return math.sqrt(2.0**power * 2.0 ** (power + 1))
    return None


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
