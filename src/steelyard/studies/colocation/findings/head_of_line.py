"""Head of line: whether short requests wait behind long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.intervals.describe import mean, quantile
from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.effects import mean_over_trials
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.isolation import CellTrials

BLOCKED_SHARE: Final = 0.5
"""Share of the work of a long request from which the wait of short ones at their 99th percentile counts as
waiting behind a long one: who meets a long request at work waits for half of it on average."""


def head_of_line_finding(cell: CellTrials) -> Finding | None:
    """Give the latency of the short requests where there are long ones; ``None`` where there are none."""
    shorts, p99s, longs, works_s = [], [], [], []
    long_s = 0.0
    for trial in cell.trials:
        if trial.requests is None or trial.trial is None or not trial.requests.is_long.any():
            continue
        chosen = trial.requests.where(trial.phases.beside.holds(trial.requests.intended_s))
        short, long = chosen.latency_s[~chosen.is_long], chosen.latency_s[chosen.is_long]
        if not (short.size and long.size):
            continue
        shorts.append(mean(short))
        p99s.append(quantile(short, 0.99))
        longs.append(mean(long))
        work_s = float(trial.trial.header.get("work_ns") or 0) / NS_PER_S
        works_s.append(work_s)
        long_s = work_s * float(trial.trial.plan["service"].get("long_factor") or 1)
    if not shorts:
        return None
    waits = [p99 - work for p99, work in zip(p99s, works_s, strict=True)]
    is_blocked = mean_over_trials(waits, "s", "").value or 0.0
    return finding(
        "head_of_line",
        cell.subject,
        "blocked" if is_blocked >= BLOCKED_SHARE * long_s else "not blocked",
        estimates={
            "short_mean": mean_over_trials(shorts, "s", "mean of the short requests"),
            "short_p99": mean_over_trials(p99s, "s", "99th percentile of the short requests"),
            "long_mean": mean_over_trials(longs, "s", "mean of the long requests"),
            "work": mean_over_trials(works_s, "s", "work of a short request"),
        },
        facts={"trials": len(shorts), "long_work_ms": 1000 * long_s},
        evidence=cell.evidence(("kind", "intended_ns", "received_ns"), "latency of the short requests"),
    )
