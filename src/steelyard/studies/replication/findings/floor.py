"""E1: what of an operation is the harness's own, compared with a benchmark that does nothing.

A benchmark of two thousand million operations a second may say how fast the harness is, and nothing of what
it calls. Only what is translated as the empty benchmark is compared with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.configurations import FLOOR
from steelyard.studies.replication.findings.cells import evidence_of
from steelyard.studies.replication.findings.comparisons import ratio_estimate
from steelyard.studies.replication.findings.estimates import over_runs
from steelyard.studies.replication.findings.verdicts import Holding, design_of, differences, judge
from steelyard.studies.replication.run_parts import THROUGHPUT, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.model import Estimate, Finding
    from steelyard.studies.replication.findings.comparisons import Looks
    from steelyard.studies.replication.findings.verdicts import Judged
    from steelyard.studies.replication.values.summaries import CellRuns, Key

EXPERIMENT: Final = "e1"
HELD_AGAINST_IT: Final = ("invocation-c2", "invocation-no-inlining")
"""Configurations that are translated as the empty benchmark is."""

NS_PER_S: Final = 1e9
ABOVE: Final = "above the floor"
AT_FLOOR: Final = "at the floor"
UNDECIDED: Final = "undecided"


def floor_findings(
    cells: Mapping[Key, CellRuns], margins: Mapping[str, Margin], looks: Looks
) -> Iterator[Finding]:
    """Say of every invocation whether it takes longer than nothing at all, by setting."""
    margin = margins[EXPERIMENT]
    for key, cell in cells.items():
        floor = cells.get((EXPERIMENT, FLOOR, key[2]))
        if key[0] != EXPERIMENT or key[1] not in HELD_AGAINST_IT or floor is None:
            continue
        sides = [side.by_block(WHOLE, THROUGHPUT) for side in (floor, cell)]
        judged = judge(differences(*sides), design_of(margin, len(HELD_AGAINST_IT)), looks)
        yield finding(
            "harness_floor",
            {"configuration": key[1], "setting": key[2]},
            _verdict(judged),
            estimates={
                "ratio": ratio_estimate(judged.look, margin.level, len(HELD_AGAINST_IT)),
                "cost": _cost(*sides),
            },
            facts={"margin_percent": 100 * margin.relative, "reason": judged.reason},
            evidence=evidence_of((floor, cell), "throughput over that of the empty benchmark in each block"),
        )


def _verdict(judged: Judged) -> str:
    """Give the verdict; what is as fast as nothing, or seems faster, cannot be told from the harness."""
    if judged.verdict is Holding.UNDECIDED:
        return UNDECIDED
    is_slower = judged.verdict is Holding.DIFFERENT and judged.look.ratio < 1
    return ABOVE if is_slower else AT_FLOOR


def _cost(floor: Mapping[int, float], other: Mapping[int, float]) -> Estimate:
    """Give the time of an operation beyond that of the empty benchmark, pair by pair."""
    both = sorted(floor.keys() & other.keys())
    return over_runs([NS_PER_S / other[block] - NS_PER_S / floor[block] for block in both], "ns")
