"""Lock tests: threads that contend for one lock, counting or sleeping under it."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import median_of, ratio_of_medians
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.findings.estimates import (
    BLOCKS,
    median_estimate,
    number,
    of_trials,
    ratio_estimate,
)
from steelyard.studies.scaling.packet_files import LOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.analyse.scaling.speedup import Ratio
    from steelyard.model import Finding
    from steelyard.studies.scaling.options import ScalingOptions
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

COUNTER: Final = "counter"
SLEEPER: Final = "sleeper"
NOT_APPLICABLE: Final = "none"
FASTEST: Final = "fastest"
AS_FAST: Final = "not certainly slower"
SLOWER: Final = "slower"
Group = tuple[str, int]


def contest_levels(options: ScalingOptions, workers: tuple[int, ...], cores: int) -> Iterator[dict[str, str]]:
    """Give the levels of the cells: each lock alone, with one thread per core, and crowded.

    A quick study leaves the crowd out. The sleeper test has one thread per core, at least two: with one,
    nobody waits.
    """
    crowd = () if options.quick else (max(workers),)
    counts = {COUNTER: dict.fromkeys((1, max(cores, 2), *crowd)), SLEEPER: {max(cores, 2): None}}
    for test, threads in counts.items():
        for count in threads:
            for lock in dict.fromkeys(options.lock_tests or ()):
                yield {
                    "load": NOT_APPLICABLE,
                    "mean_work": "0",
                    "depth": NOT_APPLICABLE,
                    "strategy": test,
                    "lock": lock,
                    "workers": str(count),
                    "duration_ms": str(options.duration_ms),
                }


def contest_command(program: str, levels: Mapping[str, str]) -> tuple[str, ...]:
    """Give the command line of a lock test.

    Examples
    --------
    >>> contest_command("packets", {"strategy": "counter", "lock": "MCS", "workers": "2", "duration_ms": "9"})
    ('packets', 'counter', 'm', '2', '9')
    """
    lock = next(code for code, name in LOCKS.items() if name == levels["lock"])
    return (program, levels["strategy"], lock, levels["workers"], levels["duration_ms"])


def contest_findings(recorded: Recorded) -> Iterator[Finding]:
    """Give rate, fairness and use of the cores of every lock, against the fastest of its group.

    Only a lock than which all others are certainly slower is called the fastest.
    """
    groups: dict[Group, list[CellTrials]] = defaultdict(list)
    for cell in recorded.contests:
        groups[cell.levels["strategy"], cell.workers].append(cell)
    alone = {cell.levels["lock"]: cell for cell in groups.get((COUNTER, 1), [])}
    for members in groups.values():
        known = [cell for cell in members if math.isfinite(median_of(cell.values))]
        best = max(known, key=lambda cell: median_of(cell.values), default=None)
        if best is None:
            continue
        ratios = [ratio_of_medians(cell.values, best.values, recorded.draws) for cell in known]
        is_alone = sum(ratio.high < 1 for ratio in ratios) == len(known) - 1
        for cell, ratio in zip(known, ratios, strict=True):
            verdict = SLOWER if ratio.high < 1 else FASTEST if cell is best and is_alone else AS_FAST
            yield _contest(cell, (ratio, verdict), best, alone.get(cell.levels["lock"]), recorded)


def _contest(
    cell: CellTrials,
    judged: tuple[Ratio, str],
    best: CellTrials,
    alone: CellTrials | None,
    recorded: Recorded,
) -> Finding:
    ratio, verdict = judged
    estimates = {
        "rate": median_estimate(cell.values, cell.unit, recorded.draws),
        "of_fastest": ratio_estimate(ratio, f"median rate over that of the fastest lock, {BLOCKS}"),
        "unfairness": number(
            cell.unevenness("thread_sections"),
            "ratio",
            "sd of the sections per thread over their mean, median of the trials",
        ),
        "cores_used": median_estimate(_cores_used(cell), "ratio", recorded.draws),
    }
    if alone is not None and alone is not cell and cell.levels["strategy"] == COUNTER:
        slowdown = ratio_of_medians(alone.values, cell.values, recorded.draws)
        estimates["slowdown"] = ratio_estimate(slowdown, f"median rate of one thread over this, {BLOCKS}")
    return finding(
        "lock_contest",
        {
            "test": cell.levels["strategy"],
            "lock": cell.levels["lock"],
            "workers": str(cell.workers),
        },
        verdict,
        estimates=estimates,
        facts={"oversubscribed": recorded.is_oversubscribed(cell.workers), "fastest": best.levels["lock"]},
        evidence=of_trials((cell, best, alone), "rate of sections under one lock"),
    )


def _cores_used(cell: CellTrials) -> np.ndarray:
    empty = np.full(cell.values.size, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(cell.metrics.get("cpu", empty) / cell.metrics.get("wall", empty))
