"""Where the time of the CPUs goes, and how long the service drains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.effects import mean_over_trials
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed
    from steelyard.studies.colocation.windows import Window

    Vector = NDArray[np.float64]


def share_of(trial: Observed, window: Window, column: str) -> float:
    """Give what a counter gains in a stretch over the time of the CPUs; NaN without samples."""
    times_s, values_s = counter(trial, column)
    inside = np.flatnonzero((times_s >= window.low) & (times_s <= window.high))
    if trial.trial is None or inside.size < 2:  # noqa: PLR2004 - no stretch between
        return float("nan")
    first, last = inside[0], inside[-1]
    cpus = len(trial.trial.plan["cpus"])
    return float((values_s[last] - values_s[first]) / ((times_s[last] - times_s[first]) * cpus))


def counter(trial: Observed, column: str) -> tuple[Vector, Vector]:
    """Give the times of the samples and a counter of theirs [s], empty where there are none."""
    if trial.trial is None:
        return np.zeros(0), np.zeros(0)
    samples = trial.trial.samples
    times_s = (samples["time_ns"].astype(np.int64) - int(trial.trial.header["start_ns"])) / NS_PER_S
    return times_s, samples[column].astype(np.int64) / NS_PER_S


def is_launched(trial: Observed) -> bool:
    """Whether the load is a command, whose processes come and go: their CPU time is not sampled."""
    return trial.trial is not None and trial.trial.plan["service"].get("kind") == "command"


def usage_findings(cell: CellTrials) -> Iterator[Finding]:
    """Give utilisation and time to drain."""
    sampled = [trial for trial in cell.trials if trial.trial is not None and trial.trial.samples.size]
    if not sampled:
        return
    estimates = {}
    for name, column in (("service", "service_cpu_ns"), ("jobs", "best_effort_cpu_ns"), ("busy", "busy_ns")):
        for stretch in ("before", "beside"):
            if name == "service" and any(map(is_launched, sampled)):
                estimates[f"{name}_{stretch}"] = Estimate(None, "percent", "processes of a command end")
                continue
            shares = [100 * share_of(trial, getattr(trial.phases, stretch), column) for trial in sampled]
            method = (
                f"CPU time of {name} over that of the CPUs" if name != "busy" else "busy time of the CPUs"
            )
            estimates[f"{name}_{stretch}"] = mean_over_trials(shares, "percent", method)
    yield finding(
        "utilisation",
        cell.subject,
        "described",
        estimates=estimates,
        facts={"trials": len(sampled)},
        evidence=cell.evidence(("service_cpu_ns", "best_effort_cpu_ns"), "gain over time", "samples.bin"),
    )
    yield _drain_finding(cell)


def _drain_finding(cell: CellTrials) -> Finding:
    known = [trial for trial in cell.trials if trial.requests is not None]
    times_s, lost = [], 0
    for trial in known:
        if trial.requests is None or not trial.requests.intended_s.size:
            continue
        lost += int((~trial.requests.is_answered).sum())
        ends_s = trial.requests.intended_s + trial.requests.latency_s
        times_s.append(float(ends_s.max() - trial.requests.intended_s.max()))
    return finding(
        "drain",
        cell.subject,
        "not drained" if lost else "drained",
        estimates={"time": mean_over_trials(times_s, "s", "last request due to last answer")},
        facts={"trials": len(times_s), "unanswered": lost},
        evidence=cell.evidence(("intended_ns", "received_ns"), "last answer less last request due"),
    )
