"""Strategies and locks beside each other: what a lock costs, who wins how often, what to use when."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.scaling.speedup import median_of, ratio_of_medians, resampled_medians
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding, finite
from steelyard.studies.scaling.findings.estimates import BLOCKS, NO_TRIALS, of_trials, ratio_estimate
from steelyard.studies.scaling.recorded import SERIAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from steelyard.analyse.scaling.speedup import Ratio
    from steelyard.model import Finding
    from steelyard.studies.scaling.recorded import CellTrials, Recorded

LOCK_FREE: Final = "LockFree"
HOME_QUEUE: Final = "HomeQueue"
HOME_ONLY: Final = frozenset({LOCK_FREE, HOME_QUEUE})
"""Strategies in which a worker takes from its own queue alone."""

WITHOUT_DISPATCHER: Final = "leader/followers"
NO_LOCK: Final = "none"
COSTS: Final = "the lock costs"
NO_COST: Final = "no relevant cost"
FASTER: Final = "faster with the lock"
DESCRIPTIVE: Final = "descriptive"
INCONCLUSIVE: Final = "inconclusive"
SURE: Final = 0.95
"""Share of the resamples a contender must win for its win to count as sure."""

PLACE: Final = ("load", "mean_work", "depth", "workers")
Place = tuple[str, ...]


def contender_of(levels: dict[str, str]) -> str:
    """Name a strategy with its lock.

    Examples
    --------
    >>> contender_of({"strategy": "Awesome", "lock": "MCS"})
    'Awesome (MCS)'
    """
    lock = levels.get("lock", NO_LOCK)
    return levels["strategy"] if lock == NO_LOCK else f"{levels['strategy']} ({lock})"


def places(recorded: Recorded) -> dict[Place, dict[str, CellTrials]]:
    """Give the contenders of each combination of load, work, depth and workers."""
    found: dict[Place, dict[str, CellTrials]] = defaultdict(dict)
    for cell in (*recorded.cells, *recorded.stated):
        strategy = cell.levels.get("strategy", SERIAL)
        if strategy != SERIAL and all(name in cell.levels for name in PLACE):
            found[tuple(cell.levels[name] for name in PLACE)].setdefault(contender_of(cell.levels), cell)
    return dict(found)


def smaller_packets(subject: Mapping[str, str], cells: Iterable[CellTrials]) -> CellTrials | None:
    """Give the cell of the largest rate on smaller packets of the same load and depth."""
    same = [
        cell
        for cell in cells
        if all(cell.levels[name] == subject[name] for name in ("load", "depth"))
        and int(cell.levels["mean_work"]) < int(subject["mean_work"])
    ]
    return max(same, key=lambda cell: median_of(cell.values), default=None)


def overhead_findings(recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Give LockFree over HomeQueue for one worker: what a lock costs that nobody contends for."""
    for place, there in places(recorded).items():
        free = there.get(LOCK_FREE)
        subject = dict(zip(PLACE, place, strict=True))
        if free is None or subject.pop("workers") != "1" or free in recorded.stated:
            continue
        for cell in there.values():
            if cell.levels["strategy"] == HOME_QUEUE:
                yield _overhead({**subject, "lock": cell.levels["lock"]}, free, cell, recorded, margin)


def _overhead(
    subject: dict[str, str], free: CellTrials, held: CellTrials, recorded: Recorded, margin: float
) -> Finding:
    ratio = ratio_of_medians(free.values, held.values, recorded.draws)
    estimate = ratio_estimate(ratio, f"median LockFree rate over median HomeQueue rate, {BLOCKS}")
    if estimate.low is None or estimate.high is None:
        verdict = DESCRIPTIVE
    elif 1 / (1 + margin) <= estimate.low and estimate.high <= 1 + margin:
        verdict = NO_COST
    else:
        verdict = COSTS if estimate.low > 1 else FASTER if estimate.high < 1 else INCONCLUSIVE
    rates = {"lock_free_rate": free, "home_queue_rate": held}
    return finding(
        "overhead",
        subject,
        verdict,
        estimates={
            "overhead": estimate,
            **{
                name: Estimate(
                    finite(median_of(cell.values)),
                    cell.unit,
                    "median of the trials",
                    measurements=cell.trials,
                )
                for name, cell in rates.items()
            },
        },
        facts={"trials": ratio.trials, "has_interval": estimate.low is not None},
        evidence=of_trials((free, held), "overhead of an idle lock"),
        warnings=() if estimate.low is not None else (NO_TRIALS,),
    )


@dataclass(frozen=True, slots=True)
class Family:
    """Contenders that are counted against each other.

    Parameters
    ----------
    name : str
        For people.
    members : tuple of str
        Contenders, as `contender_of` names them.
    """

    name: str
    members: tuple[str, ...]


def families(contenders: dict[str, str]) -> list[Family]:
    """Give the groups worth counting: all, LockFree with each strategy, the locks of each strategy."""
    by_strategy: dict[str, list[str]] = defaultdict(list)
    for name, strategy in contenders.items():
        by_strategy[strategy].append(name)
    found = [Family("all", tuple(contenders))]
    for strategy, members in by_strategy.items():
        if strategy != LOCK_FREE and LOCK_FREE in by_strategy:
            found.append(Family(f"{LOCK_FREE} and {strategy}", (LOCK_FREE, *members)))
        if len(members) > 1:
            found.append(Family(f"locks of {strategy}", tuple(members)))
    distinct = {family.members: family for family in reversed(found) if len(family.members) > 1}
    return list(reversed(distinct.values()))


def winner_findings(recorded: Recorded) -> Iterator[Finding]:
    """Count how often each contender is the fastest of its family; ties are counted apart."""
    groups: dict[tuple[str, str], dict[Place, dict[str, CellTrials]]] = defaultdict(dict)
    for place, there in places(recorded).items():
        load, _, depth, _ = place
        if len(there) > 1:
            groups[load, depth][place] = there
    for (load, depth), members in groups.items():
        contenders = {
            name: cell.levels["strategy"] for there in members.values() for name, cell in there.items()
        }
        # The lock experiment has fewer contenders; its places would count for them alone.
        complete = [there for there in members.values() if len(there) == len(contenders)]
        for family in families(contenders) if complete else []:
            yield from _counted({"load": load, "depth": depth}, family, complete, recorded)


def _counted(
    subject: dict[str, str], family: Family, complete: list[dict[str, CellTrials]], recorded: Recorded
) -> Iterator[Finding]:
    wins: Counter[str] = Counter()
    sure: Counter[str] = Counter()
    ties = 0
    for there in complete:
        chosen = {name: there[name] for name in family.members}
        best = winners(chosen)
        ties += len(best) > 1
        if len(best) == 1:
            wins[best[0]] += 1
            sure[best[0]] += _win_share(best[0], chosen, recorded) >= SURE
    for name in family.members:
        yield finding(
            "winner_count",
            {**subject, "family": family.name, "contender": name},
            "most often" if wins[name] == max(wins.values(), default=0) and wins[name] else "less often",
            facts={
                "wins": wins[name],
                "sure_wins": sure[name] if recorded.has_trials else None,
                "ties": ties,
                "combinations": len(complete),
            },
            evidence=of_trials((there[name] for there in complete), "fastest median"),
        )


def winners(there: dict[str, CellTrials]) -> list[str]:
    """Give the contenders of the largest median; several where medians are equal."""
    medians = {name: median_of(cell.values) for name, cell in there.items()}
    known = {name: value for name, value in medians.items() if math.isfinite(value)}
    largest = max(known.values(), default=math.nan)
    return [name for name, value in known.items() if value == largest]


def _win_share(name: str, there: dict[str, CellTrials], recorded: Recorded) -> float:
    """Give the share of resamples in which a contender has the largest median."""
    own = resampled_medians(there[name].values, recorded.draws)
    others = [
        resampled_medians(cell.values, recorded.draws) for other, cell in there.items() if other != name
    ]
    return float(np.mean(np.all([own > other for other in others], axis=0)))


def choice_findings(recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Say for each combination which contenders may be the best: not slower by more than the margin."""
    for place, there in places(recorded).items():
        if len(there) < 2:  # noqa: PLR2004 - nothing to choose
            continue
        best = winners(there)
        if not best:
            continue
        yield _choice(dict(zip(PLACE, place, strict=True)), best[0], there, recorded, margin)


def _choice(
    subject: dict[str, str], best: str, there: dict[str, CellTrials], recorded: Recorded, margin: float
) -> Finding:
    first = there[best]
    as_good: list[tuple[str, Ratio]] = []
    slower: list[tuple[str, Ratio]] = []
    for name, cell in there.items():
        if name == best:
            continue
        ratio = ratio_of_medians(cell.values, first.values, recorded.draws)
        is_slower = (
            ratio.high < 1 / (1 + margin) if math.isfinite(ratio.high) else ratio.value < 1 / (1 + margin)
        )
        (slower if is_slower else as_good).append((name, ratio))
    runner_up = max((*as_good, *slower), key=lambda entry: entry[1].value)
    return finding(
        "choice",
        subject,
        DESCRIPTIVE
        if not math.isfinite(runner_up[1].high)
        else "several are as fast"
        if as_good
        else "one is fastest",
        estimates={
            "runner_up": ratio_estimate(runner_up[1], f"median rate over that of the fastest, {BLOCKS}"),
        },
        facts={
            "best": best,
            "as_good": json.dumps([name for name, _ in as_good], ensure_ascii=False),
            "runner_up": runner_up[0],
            "slowest": min((*as_good, *slower), key=lambda entry: entry[1].value)[0],
            "contenders": len(there),
            "oversubscribed": recorded.is_oversubscribed(int(subject["workers"])),
        },
        evidence=of_trials(there.values(), "fastest median"),
    )


def gain_findings(recorded: Recorded, margin: float) -> Iterator[Finding]:
    """Compare every contender with LockFree at the same load, work, depth and workers."""
    for place, there in places(recorded).items():
        free = there.get(LOCK_FREE)
        if free is None:
            continue
        for name, cell in there.items():
            if cell is free:
                continue
            ratio = ratio_of_medians(cell.values, free.values, recorded.draws)
            estimate = ratio_estimate(ratio, f"median rate over that of LockFree, {BLOCKS}")
            subject = {**dict(zip(PLACE, place, strict=True)), "contender": name}
            yield finding(
                "gain",
                subject,
                judge_rate(estimate, margin),
                estimates={"gain": estimate},
                facts={
                    "oversubscribed": recorded.is_oversubscribed(cell.workers),
                    "has_interval": estimate.low is not None,
                },
                evidence=of_trials((cell, free), "rate over that of LockFree"),
            )


def judge_rate(estimate: Estimate, margin: float) -> str:
    """Say whether a rate is faster, slower or equivalent to the one it is divided by."""
    if estimate.low is None or estimate.high is None:
        return DESCRIPTIVE
    if 1 / (1 + margin) <= estimate.low and estimate.high <= 1 + margin:
        return "equivalent"
    return "faster" if estimate.low > 1 else "slower" if estimate.high < 1 else INCONCLUSIVE
