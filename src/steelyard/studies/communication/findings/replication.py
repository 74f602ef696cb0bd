"""Do replications of one plan agree? One half of them against the other, as if they were two data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.findings.compare import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.communication.model.fitted import Fitted

FEWEST: Final = 4
"""Replications of a state: two on either side, so that scatter between replications is known."""

AGREE: Final = "agree"
DIFFER: Final = "differ"
UNDECIDED: Final = "cannot be told apart"


def replication_findings(fitted: Fitted, margin: float) -> Iterator[Finding]:
    """Compare the odd with the even replications of one model; fewer than four say nothing.

    `margin` is the largest share of a cost that counts as no difference.
    """
    traces = [run.trace for run in fitted.runs if run.trace is not None]
    if len(traces) < FEWEST:
        return
    try:
        found = compare(traces[::2], traces[1::2], margin=margin)
    except AnalysisError:
        return
    verdicts = [each.verdict for each in found.coefficients]
    verdicts += [each.verdict for each in found.levels]
    verdicts += [each.verdict for each in found.boundaries]
    largest = max(found.levels, key=lambda each: abs(each.difference.value))
    counts = {name: verdicts.count(name) for name in ("same", "different", "undecided")}
    verdict = DIFFER if counts["different"] else AGREE if not counts["undecided"] else UNDECIDED
    yield finding(
        "replications",
        fitted.subject,
        verdict,
        estimates={
            "largest": Estimate(
                100 * largest.difference.value,
                "percent",
                "log ratio of a whole regime, even over odd replications",
                100 * largest.difference.low,
                100 * largest.difference.high,
                0.9,
                len(traces),
            )
        },
        facts={
            "margin_percent": 100 * margin,
            "regimes": len(found.levels),
            "compared": len(verdicts),
            **counts,
        },
        evidence=fitted.evidence("odd against even replications, regime by regime"),
    )
