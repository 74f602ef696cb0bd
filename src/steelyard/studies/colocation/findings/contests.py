"""Loaded schedulers against every other policy, and the best-effort class without one of its checks."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final

from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.best_effort import (
    PRICE_MARGIN,
    has_no_count,
    paired,
    work_ratio,
)
from steelyard.studies.colocation.findings.effects import (
    JUDGED,
    MEAN,
    combined,
    needs_limits,
    ratios_beside,
)
from steelyard.studies.colocation.findings.isolation import ONE_TRIAL, UNKNOWN
from steelyard.studies.colocation.findings.verdicts import contest_overall, contest_verdict, price_verdict
from steelyard.studies.colocation.options import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.effects import Ratio
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

    Pairs = Sequence[tuple[Observed, Observed]]

CLASS: Final = "be"
WITHOUT: Final = f"{CLASS}-no-"
"""Begin of the names of the class with a check left out."""


def contest_findings(cells: Sequence[CellTrials], *, tolerance: float, seed: int) -> Iterator[Finding]:
    """Compare latency and work beside the jobs, repetition by repetition, at each load.

    All policies of a repetition are sent the same arrivals, so that the trial pairs are compared.
    """
    for load in dict.fromkeys(cell.load for cell in cells):
        named = {cell.policy: cell for cell in cells if cell.load == load and cell.is_loaded}
        loaded = [name for name in named if name == CLASS or name.startswith(FOREIGN)]
        for place, own in enumerate(loaded):
            for policy in named:
                if policy in loaded[: place + 1]:
                    continue
                contender, rival = (policy, own) if policy.startswith(WITHOUT) else (own, policy)
                made = _contest(named[contender], named[rival], tolerance, seed)
                if made is not None:
                    yield made


def _contest(contender: CellTrials, rival: CellTrials, tolerance: float, seed: int) -> Finding | None:
    pairs = paired(contender, rival)
    found = {name: ratios_beside(pairs, name, repeat(seed)) for name in JUDGED}
    if not found[MEAN]:
        return None
    works = _work_ratios(pairs, seed)
    mean, p50, p99, work = (combined(each) if each else UNKNOWN for each in (*found.values(), works))
    verdicts = {
        name: contest_verdict(each, tolerance)
        for name, each in zip(JUDGED, (mean, p50, p99), strict=True)
        if each is not UNKNOWN
    }
    return finding(
        "contest",
        {"policy": contender.policy, "rival": rival.policy, "load": contender.load},
        contest_overall(verdicts.values()),
        estimates={"mean": mean, "p50": p50, "p99": p99, "work": work},
        facts={
            "trials": len(found[MEAN]),
            "tolerance_percent": 100 * tolerance,
            **{f"{name}_verdict": verdicts.get(name, "inconclusive") for name in JUDGED},
            "work_verdict": price_verdict(work, PRICE_MARGIN),
        },
        evidence=contender.evidence(
            ("intended_ns", "received_ns"), f"beside the jobs, over the same under {rival.policy}"
        ),
        warnings=(ONE_TRIAL,) if len(found[MEAN]) == 1 else (),
    )


def _work_ratios(pairs: Pairs, seed: int) -> list[Ratio]:
    has_limits = needs_limits(len(pairs))
    found = [
        work_ratio(first, second, seed, has_limits=has_limits)
        for first, second in pairs
        if not (has_no_count(first) or has_no_count(second))
    ]
    return [each for each in found if each is not None]
