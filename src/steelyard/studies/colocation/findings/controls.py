"""Controls: two cells that are alike, and the service without any jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.effects import MEAN, OVER_TRIALS, latencies, over_trials, ratio_of
from steelyard.studies.colocation.findings.verdicts import Isolation, isolation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.observed import Observed


def twin_finding(trials: Sequence[Observed], tolerance: float, seed: int) -> Finding | None:
    """Compare the two cells of the A/A control, repetition by repetition; ``None`` without both.

    What is compared is the mean latency beside the jobs, or at the time at which they would be there.
    """
    twins = {trial.block: trial for trial in trials if trial.is_twin}
    if not twins:
        return None
    first = next(iter(twins.values()))
    firsts = {
        trial.block: trial
        for trial in trials
        if not trial.is_twin and (trial.policy, trial.load) == (first.policy, first.load)
    }
    pairs = [(firsts[block], twins[block]) for block in sorted(twins.keys() & firsts.keys())]
    ratios = [ratio_of(_beside(one), _beside(other), MEAN, seed) for one, other in pairs]
    found = [each for each in ratios if each is not None]
    if len(found) < 2:  # noqa: PLR2004 - one pair has no spread
        return None
    measurements = sum(sum(each.sizes) for each in found)
    ratio = over_trials(np.log([each.ratio for each in found]), measurements)
    return finding(
        "a_a",
        {"policy": first.policy, "load": first.load},
        _verdict(ratio, tolerance),
        estimates={"ratio": ratio},
        facts={"repetitions": len(found), "method": OVER_TRIALS, "tolerance_percent": 100 * tolerance},
        evidence=Evidence(
            "traces/*/requests.bin",
            {"folder": " ".join(each.place for pair in pairs for each in pair)},
            ("intended_ns", "received_ns"),
            "mean latency of the second cell over that of the first, per repetition",
        ),
    )


def _beside(trial: Observed) -> NDArray[np.float64]:
    return latencies(trial, trial.phases.beside, MEAN)


def _verdict(ratio: Estimate, tolerance: float) -> str:
    if ratio.low is None or ratio.high is None:
        return "inconclusive"
    if not ratio.low <= 1 <= ratio.high:
        return "different"
    is_alike = isolation(ratio.low, ratio.high, tolerance) is Isolation.ISOLATED
    return (
        "no difference within the tolerance"
        if is_alike and ratio.low >= 1 / (1 + tolerance)
        else "no sure difference"
    )
