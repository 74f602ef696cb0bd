"""Which strategy to use when: contenders scored over all places of a situation."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import FEWEST_TRIALS, limits_of, median_of, resampled_medians
from steelyard.studies.analysis_parts import finding
from steelyard.studies.scaling.findings.estimates import BLOCKS, FEW_TRIALS, NO_TRIALS, number, of_trials
from steelyard.studies.scaling.findings.strategy import LOCK_FREE, WITHOUT_DISPATCHER, Place, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

ALONE: Final = "one worker"
FITTING: Final = "up to one worker per core"
CROWDED: Final = "more workers than cores"
UNDECIDED: Final = "undecided"
"""Where no contender is certainly worse than the best."""

DESCRIPTIVE: Final = "descriptive"
"""Where there are no trials that could make anything certain."""

SITUATION: Final = ("load", "depth", "crowd")

NEEDS: Final = {
    LOCK_FREE: "needs a worker for each source",
    WITHOUT_DISPATCHER: "needs a source that workers may draw from themselves, and sends workers beyond the "
    "cores away at once",
}
"""What a strategy asks of its user beyond a dispatcher, queues and workers."""


def recommendation_findings(recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Recommend a contender for each load, depth and crowd.

    The score of a contender is the geometric mean, over all places of the situation (work, workers), of its
    median rate over the best median rate of the place. A contender counts as good as the best one where the
    interval of the ratio of their scores reaches the margin.
    """
    if recorded.cores is None:
        return
    situations: dict[tuple[str, str, str], dict[Place, dict[str, CellTrials]]] = defaultdict(dict)
    for place, there in places(recorded).items():
        load, _, depth, workers = place
        crowd = CROWDED if recorded.is_oversubscribed(int(workers)) else FITTING if workers != "1" else ALONE
        situations[load, depth, crowd][place] = there
    for situation, members in situations.items():
        most = max(len(there) for there in members.values())
        complete = [there for there in members.values() if len(there) == most]
        names = [name for name in complete[0] if all(name in there for there in complete)]
        if len(names) > 1:
            yield from _recommend(situation, names, complete, recorded, margin)


def _recommend(
    situation: tuple[str, str, str],
    names: list[str],
    complete: list[dict[str, CellTrials]],
    recorded: Recorded,
    margin: float,
) -> Iterator[Finding]:
    medians = np.array([[median_of(there[name].values) for there in complete] for name in names])
    if not (np.isfinite(medians).all() and (medians > 0).all()):
        return
    share = medians / medians.max(axis=0)
    score = np.exp(np.log(share).mean(axis=1))
    order = np.argsort(-score, kind="stable")
    best = int(order[0])
    relative = _relative(names, complete, recorded, best)
    trials = min(cell.trials for there in complete for cell in there.values())
    has_interval = recorded.has_trials and trials > 1
    limits = [limits_of(row) if has_interval else (math.nan, math.nan) for row in relative]
    reach = 1 / (1 + margin)
    good: list[str] = []
    for at in map(int, order[1:]):
        high = limits[at][1] if math.isfinite(limits[at][1]) else score[at] / score[best]
        if high >= reach:
            good.append(names[at])
    free = names.index(LOCK_FREE) if LOCK_FREE in names else best
    over_free = score[best] / score[free] if free != best else math.nan
    last = int(order[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        free_limits = limits_of(1 / relative[free]) if has_interval and free != best else (math.nan,) * 2
    ratio = f"ratio of geometric means of rates over the places, {BLOCKS}"
    yield finding(
        "recommendation",
        dict(zip(SITUATION, situation, strict=True)),
        DESCRIPTIVE if not has_interval else names[best] if len(good) < len(names) - 1 else UNDECIDED,
        estimates={
            "score": number(100 * score[best], "percent", "geometric mean of rate over the best rate"),
            "over_lock_free": number(over_free, "ratio", ratio, (free_limits[0], free_limits[1]), trials),
            "worst_score": number(
                100 * score[last] / score[best],
                "percent",
                ratio,
                (100 * limits[last][0], 100 * limits[last][1]),
                trials,
            ),
        },
        facts={
            "places": len(complete),
            "contenders": len(names),
            "best": names[best],
            "as_good": json.dumps(good, ensure_ascii=False),
            "as_good_text": ", ".join(good),
            "worst": names[last],
            "needs": NEEDS.get(names[best].partition(" (")[0], ""),
            "is_lock_free": free == best,
            "scores": json.dumps({names[at]: float(score[at]) for at in map(int, order)}, ensure_ascii=False),
        },
        evidence=of_trials((there[name] for there in complete for name in names), "score of the medians"),
        warnings=() if trials >= FEWEST_TRIALS else (FEW_TRIALS,) if recorded.has_trials else (NO_TRIALS,),
    )


def _relative(
    names: list[str], complete: list[dict[str, CellTrials]], recorded: Recorded, best: int
) -> NDArray[np.float64]:
    """Give, per contender and resample, its geometric mean rate over that of the best."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.array(
            [
                np.mean(
                    [np.log(resampled_medians(there[name].values, recorded.draws)) for there in complete],
                    axis=0,
                )
                for name in names
            ]
        )
    return np.asarray(np.exp(logs - logs[best]))
