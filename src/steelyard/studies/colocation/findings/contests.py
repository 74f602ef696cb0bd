"""The best-effort class against every other policy, and against itself less one of its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.best_effort import PRICE_MARGIN, paired, work_counts
from steelyard.studies.colocation.findings.effects import (
    MEAN,
    P99,
    combined,
    latencies,
    needs_limits,
    ratio_of,
)
from steelyard.studies.colocation.findings.isolation import ONE_TRIAL
from steelyard.studies.colocation.findings.verdicts import contest_verdict, price_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.effects import Ratio
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

    Values = Callable[[Observed], NDArray[np.float64]]

CLASS: Final = "be"
WITHOUT: Final = f"{CLASS}-no-"
"""Begin of the names of the class with a check left out."""

UNKNOWN: Final = Estimate(None, "ratio", "too few values")


def contest_findings(cells: Sequence[CellTrials], *, tolerance: float, seed: int) -> Iterator[Finding]:
    """Compare latency and work beside the jobs, repetition by repetition, at each load.

    All policies of a repetition are sent the same arrivals, so that the trial pairs are compared.
    """
    for load in dict.fromkeys(cell.load for cell in cells):
        named = {cell.policy: cell for cell in cells if cell.load == load and cell.is_loaded}
        own = named.get(CLASS)
        if own is None:
            continue
        for policy, cell in named.items():
            if policy == CLASS:
                continue
            contender, rival = (cell, own) if policy.startswith(WITHOUT) else (own, cell)
            made = _contest(contender, rival, tolerance, seed)
            if made is not None:
                yield made


def _contest(contender: CellTrials, rival: CellTrials, tolerance: float, seed: int) -> Finding | None:
    pairs = paired(contender, rival)
    means = _ratios(pairs, lambda trial: latencies(trial, trial.phases.beside, MEAN), MEAN, seed)
    if not means:
        return None
    is_binned = any(trial.requests is None for pair in pairs for trial in pair)
    tail = MEAN if is_binned else P99
    tails = _ratios(pairs, lambda trial: latencies(trial, trial.phases.beside, P99), tail, seed)
    works = _ratios(pairs, work_counts, MEAN, seed)
    mean, p99, work = (combined(each) if each else UNKNOWN for each in (means, tails, works))
    return finding(
        "contest",
        {"policy": contender.policy, "rival": rival.policy, "load": contender.load},
        contest_verdict(mean, tolerance),
        estimates={"mean": mean, "p99": p99, "work": work},
        facts={
            "trials": len(means),
            "tolerance_percent": 100 * tolerance,
            "p99_verdict": contest_verdict(p99, tolerance),
            "work_verdict": price_verdict(work, PRICE_MARGIN),
        },
        evidence=contender.evidence(
            ("intended_ns", "received_ns"), f"beside the jobs, over the same under {rival.policy}"
        ),
        warnings=(ONE_TRIAL,) if len(means) == 1 else (),
    )


def _ratios(
    pairs: Sequence[tuple[Observed, Observed]], values: Values, statistic: str, seed: int
) -> list[Ratio]:
    has_limits = needs_limits(len(pairs))
    found = [
        ratio_of(values(first), values(second), statistic, seed, has_limits=has_limits)
        for first, second in pairs
    ]
    return [each for each in found if each is not None]
