"""The findings as CSV files; those of the packets program also in the source's order of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.finding_tables import rendered, write_claim_tables, write_table
from steelyard.studies.scaling.packet_files import LOADS, LOCKS, OVERHEAD_HEADING, SPEEDUP_HEADING, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.model import Finding, FindingSet, Plan
    from steelyard.studies.finding_tables import Scalar

CLAIMS: Final = {
    "speedup": "speedup_by_workers",
    "peak": "peaks",
    "oversubscription": "oversubscription",
    "regression": "regressions",
    "amdahl": "amdahl",
    "usl": "usl",
}
PACKETS_CLAIMS: Final = {
    "overhead": "overhead_by_lock",
    "gain": "gains",
    "recommendation": "recommendations",
    "choice": "choices",
    "winner_count": "winner_counts",
    "imbalance": "imbalance",
    "dispatcher": "dispatcher",
    "depth": "depth",
}
_OTHERS: Final = {
    "source_claim": "source_claims",
    "hypothesis": "hypotheses",
    "lock_contest": "lock_contests",
    "held_back_by": "held_back_by",
    "identical_cells": "identical_cells",
}
NO_LOCK: Final = "nan"
"""How the source writes that there is no lock."""


def write_tables(result: Path, findings: FindingSet, plan: Plan) -> None:
    """Write one table per kind of claim, and the source's two where there are packets."""
    files = dict(CLAIMS)
    if "load" in plan.factors:
        files |= PACKETS_CLAIMS
        durations = plan.factors.get("duration_ms", ("",))
        write_table(result, "overhead", rendered(OVERHEAD_HEADING, list(_overheads(findings, durations[0]))))
        write_table(result, "speedup", rendered(SPEEDUP_HEADING, list(_speedups(findings, durations[0]))))
    files |= {claim: name for claim, name in _OTHERS.items() if findings.of(claim)}
    write_claim_tables(result, findings, files)


def _overheads(findings: FindingSet, duration: str) -> Iterator[list[Scalar]]:
    for finding in findings.of("overhead"):
        yield [
            *_place(finding, duration, "1"),
            _code(LOCKS, finding.subject["lock"]),
            *(_value(finding, role) for role in ("lock_free_rate", "home_queue_rate", "overhead")),
        ]


def _speedups(findings: FindingSet, duration: str) -> Iterator[list[Scalar]]:
    for finding in sorted(findings.of("speedup"), key=_experiment):
        yield [
            *_place(finding, duration, finding.subject["workers"]),
            _code(LOCKS, finding.subject["lock"]),
            _code(STRATEGIES, finding.subject["strategy"]),
            _value(finding, "speedup"),
        ]


def _experiment(finding: Finding) -> tuple[int, int, int, int]:
    """Give the order of the source: load, work, workers, then strategies as they are."""
    of = finding.subject
    return (
        int(of["depth"]),
        list(LOADS.values()).index(of["load"]),
        int(of["mean_work"]),
        int(of["workers"]),
    )


def _place(finding: Finding, duration: str, workers: str) -> list[Scalar]:
    of = finding.subject
    return [duration, workers, of["mean_work"], _code(LOADS, of["load"]), of["depth"]]


def _code(names: Mapping[str, str], name: str) -> str:
    if name == LOCKS[NO_LOCK]:
        return NO_LOCK
    return next(code for code, each in names.items() if each == name)


def _value(finding: Finding, role: str) -> float | None:
    return finding.estimates[role].value
