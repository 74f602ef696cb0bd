"""Findings about the service: slowed down or not, its tail, and whether a queue grows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import mean
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import FEW_UNITS, finding, finite
from steelyard.studies.colocation.findings.effects import (
    ENOUGH_TRIALS,
    FEWEST_VALUES,
    JUDGED,
    MEAN,
    P50,
    P99,
    P999,
    combined,
    latencies,
    mean_over_trials,
    needs_limits,
    ratios_beside,
    trial_ratio,
)
from steelyard.studies.colocation.findings.trend import trend_of
from steelyard.studies.colocation.findings.verdicts import (
    Isolation,
    isolation,
    overall,
    steadiness,
    tail_verdict,
)
from steelyard.studies.colocation.observed import Origin
from steelyard.studies.colocation.policies import POLICIES
from steelyard.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.effects import Ratio
    from steelyard.studies.colocation.observed import Observed

SLOW_ALONE: Final = 2.0
"""A service alone that takes so many times its work already shares its CPUs, or is asked for too much."""

SLOW_BASELINE: Final = (
    "the service alone already takes more than twice its work: something else slows it down"
)
FASTER: Final = (
    "the service is faster beside the jobs than before them, which is not their doing: it had not warmed up, "
    "or busy CPUs run at a higher frequency"
)
MS_PER_S: Final = 1000.0
BEFORE: Final = "before"
"""What the latency beside the jobs is compared with on the host: the service alone, as a sentence says it."""
UNKNOWN: Final = Estimate(None, "ratio", "too few values")
ONE_TRIAL: Final = "one trial: the interval says nothing about other trials"


@dataclass(frozen=True, slots=True, eq=False)
class CellTrials:
    """The trials of one policy at one load.

    Parameters
    ----------
    policy, load : str
        Levels.
    trials : tuple of Observed
        By block; at least one.
    best : CellTrials or None
        In a virtual machine the policy with the lowest mean latency beside jobs at this load, if it is
        another one: latencies beside the jobs are compared with it.
    is_best : bool
        Whether it is itself that policy.
    """

    policy: str
    load: str
    trials: tuple[Observed, ...]
    best: CellTrials | None = None
    is_best: bool = False

    @property
    def is_in_guest(self) -> bool:
        """Whether a busy processor takes time from the others, so that before the jobs all were faster."""
        return self.trials[0].origin is Origin.GUEST and self.is_loaded

    @property
    def reference(self) -> str:
        """What the latency beside the jobs is compared with, in words."""
        return BEFORE if self.best is None else f"under {self.best.policy}"

    @property
    def subject(self) -> dict[str, str]:
        """What its findings are about."""
        return {"policy": self.policy, "load": self.load}

    @property
    def jobs_time(self) -> dict[str, float]:
        """When the jobs start and stop in its first trial [s]."""
        phases = self.trials[0].phases
        return {"jobs_start_s": round(phases.jobs_start_s, 2), "jobs_stop_s": round(phases.jobs_stop_s, 2)}

    @property
    def is_loaded(self) -> bool:
        """Whether there were best-effort jobs."""
        return any(trial.jobs_count != 0 for trial in self.trials)

    def evidence(self, columns: tuple[str, ...], statistic: str, file: str = "requests.bin") -> Evidence:
        """Give the query behind a finding."""
        first = self.trials[0]
        if first.trial is None:
            return Evidence(first.place, {"cell": str(first.cell), "phase": "measure"}, ("value",), statistic)
        folders = " ".join(trial.place for trial in self.trials)
        return Evidence(f"traces/*/{file}", {"folder": folders}, columns, statistic)


def cells_of(trials: Sequence[Observed]) -> tuple[CellTrials, ...]:
    """Group the trials by load and policy, in the order of the policies; the A/A twin is none of them."""
    order = list(POLICIES)
    groups: dict[tuple[str, str], list[Observed]] = {}
    for trial in trials:
        if not trial.is_twin:
            groups.setdefault((trial.policy, trial.load), []).append(trial)
            if trial.policy not in order:
                order.append(trial.policy)
    keys = sorted(groups, key=lambda key: (len(key[1]), key[1], order.index(key[0])))
    cells = [CellTrials(*key, tuple(groups[key])) for key in keys]
    return tuple(_beside_best(cell, cells) for cell in cells)


def _beside_best(cell: CellTrials, cells: Sequence[CellTrials]) -> CellTrials:
    """Give a cell of a virtual machine the one that others at its load are compared with."""
    if not cell.is_in_guest:
        return cell
    best = min((each for each in cells if each.load == cell.load and each.is_in_guest), key=_mean_beside)
    return replace(cell, is_best=True) if best is cell else replace(cell, best=best)


def _mean_beside(cell: CellTrials) -> float:
    means = [
        mean(values) for each in cell.trials if (values := latencies(each, each.phases.beside, MEAN)).size
    ]
    return mean(np.array(means)) if means else math.inf


def isolation_finding(cell: CellTrials, *, tolerance: float, seed: int) -> Finding | None:
    """Say whether the jobs slow the service down, by mean, median and 99th percentile.

    ``None`` where there is too little to say of the mean.
    """
    found = {statistic: _ratios(cell, statistic, seed) for statistic in JUDGED}
    ratios = found[MEAN]
    if not ratios:
        return None
    combined_ratios = {name: combined(each) if each else UNKNOWN for name, each in found.items()}
    trends = [
        (trend_of(each, each.phases.before), trend_of(each, each.phases.beside)) for each in cell.trials
    ]
    growing = [sum(pair[place].is_growing for pair in trends) for place in (0, 1)]
    lost = [_lost(cell, place) for place in (0, 1)]
    verdict, words, warnings = _judged(cell, found, tolerance, sum(lost))
    before = mean_over_trials([each.before for each in ratios], "s", "mean of the latencies")
    work_ms = None if cell.is_in_guest else _work_ms(cell)
    if 2 * growing[0] > len(trends):
        verdict = Isolation.OVERLOAD.value
    elif verdict == Isolation.NOT_ISOLATED.value and is_unsettled(cell, tolerance, seed):
        verdict = Isolation.UNSETTLED.value
    elif cell.best is None and cell.is_loaded and _is_faster(combined_ratios, tolerance):
        warnings = (*warnings, FASTER)
    elif work_ms is not None and (before.value or 0.0) > SLOW_ALONE * work_ms / MS_PER_S:
        warnings = (*warnings, SLOW_BASELINE)
    slopes = [mean_over_trials([p[at].slope for p in trends], "s/s", "line through fifths") for at in (0, 1)]
    return finding(
        "isolation",
        cell.subject,
        verdict,
        estimates={
            "before": before,
            "beside": mean_over_trials([each.beside for each in ratios], "s", "mean of the latencies"),
            "ratio": combined_ratios[MEAN],
            "ratio_p50": combined_ratios[P50],
            "ratio_p99": combined_ratios[P99],
            "slope_before": slopes[0],
            "slope_beside": slopes[1],
        },
        facts={
            "trials": len(cell.trials),
            "tolerance_percent": 100 * tolerance,
            **{
                role: words.get(of, "")
                for role, of in (("beyond", Isolation.NOT_ISOLATED), ("within", Isolation.ISOLATED))
            },
            "untold": _listed([name for name in JUDGED if cell.is_loaded and not found[name]]),
            "smallest_ratio": min(each.ratio for each in ratios),
            "largest_ratio": max(each.ratio for each in ratios),
            "requests_before": sum(each.sizes[0] for each in ratios),
            "requests_beside": sum(each.sizes[1] for each in ratios),
            "unanswered_before": lost[0],
            "unanswered_beside": lost[1],
            "growing_before": growing[0],
            "growing_beside": growing[1],
            "rise_before_ms": _milliseconds(slopes[0]),
            "rise_beside_ms": _milliseconds(slopes[1]),
            "growth": _growth(growing, len(trends)),
            "few": _few(cell, ratios),
            "work_ms": work_ms,
            "origin": cell.trials[0].origin.value,
            "reference": cell.reference,
            **cell.jobs_time,
        },
        evidence=cell.evidence(
            ("intended_ns", "received_ns"),
            f"mean, p50 and p99 beside the jobs over those {cell.reference}",
        ),
        warnings=warnings,
    )


def is_unsettled(cell: CellTrials, tolerance: float, seed: int) -> bool:
    """Tell whether trials compared with another policy's were surely slower before the jobs than beside them.

    Jobs make no service faster. In a virtual machine the scheduler needs seconds after the boot to spread
    the load; a backlog from then, not the jobs, may be what makes a trial slow.

    Parameters
    ----------
    cell : CellTrials
        Cells that are not compared with another one are settled: they are judged by their own begin.
    tolerance : float
        Relative difference that does not count; above 0.
    seed : int
        Of the resampling.

    Returns
    -------
    bool
        Whether it is so in at least half of the trials.
    """
    if cell.best is None:
        return False
    own = [trial_ratio(each, MEAN, seed + each.block, has_limits=True) for each in cell.trials]
    sure = [each for each in own if each is not None and each.high < 1 / (1 + tolerance)]
    return 2 * len(sure) >= len(cell.trials)


def _is_faster(ratios: Mapping[str, Estimate], tolerance: float) -> bool:
    highs = [ratios[name].high for name in (MEAN, P50)]
    return any(high is not None and high < 1 / (1 + tolerance) for high in highs)


def _few(cell: CellTrials, ratios: Sequence[Ratio]) -> str:
    """Say why a single trial has no interval, where that is why there is none."""
    if len(ratios) != 1 or min(ratios[0].sizes) >= FEWEST_VALUES:
        return ""
    values = "bins" if cell.trials[0].requests is None else "requests"
    before, beside = ratios[0].sizes
    return (
        f"no interval from {before} {values} before and {beside} beside: {FEWEST_VALUES} of each are needed"
    )


def _milliseconds(slope: Estimate) -> float | None:
    return None if slope.value is None else finite(1000 * slope.value)


def _ratios(cell: CellTrials, statistic: str, seed: int) -> list[Ratio]:
    if cell.best is None:
        found = [
            trial_ratio(each, statistic, seed + each.block, has_limits=needs_limits(len(cell.trials)))
            for each in cell.trials
        ]
        return [each for each in found if each is not None]
    by_block = {each.block: each for each in cell.best.trials}
    pairs = [(by_block[each.block], each) for each in cell.trials if each.block in by_block]
    return ratios_beside(pairs, statistic, itertools.count(seed))


def _judged(
    cell: CellTrials, found: Mapping[str, Sequence[Ratio]], tolerance: float, lost: int
) -> tuple[str, Mapping[Isolation, str], tuple[str, ...]]:
    """Give the verdict, the statistics with each verdict of their own, in words, and warnings."""
    count = len(found[MEAN])
    few = f"{FEW_UNITS}: {count} trials, {ENOUGH_TRIALS} are needed for a guaranteed interval"
    warnings = (ONE_TRIAL,) if count == 1 else () if count >= ENOUGH_TRIALS else (few,)
    if not cell.is_loaded:
        ratio = combined(found[MEAN])
        return steadiness(ratio.low, ratio.high, tolerance), {}, warnings
    if cell.is_best:
        return Isolation.BEST.value, {}, ()
    verdicts = {name: _judged_by(each, tolerance, lost) for name, each in found.items() if each}
    words = {of: _listed([name for name in verdicts if verdicts[name] is of]) for of in verdicts.values()}
    return overall(verdicts.values()).value, words, warnings


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _judged_by(ratios: Sequence[Ratio], tolerance: float, lost: int) -> Isolation:
    """Judge by the interval over the trials; with few of them no trial by itself may say the opposite."""
    ratio = combined(ratios)
    verdict = isolation(ratio.low, ratio.high, tolerance, lost=lost)
    if 1 < len(ratios) < ENOUGH_TRIALS:
        alone = {isolation(finite(each.low), finite(each.high), tolerance, lost=lost) for each in ratios}
        if alone - {verdict, Isolation.INCONCLUSIVE}:
            return Isolation.INCONCLUSIVE
    return verdict


def _lost(cell: CellTrials, place: int) -> int:
    total = 0
    for each in cell.trials:
        if each.requests is not None:
            window = (each.phases.before, each.phases.beside)[place]
            total += int((window.holds(each.requests.intended_s) & ~each.requests.is_answered).sum())
    return total


def _growth(growing: Sequence[int], total: int) -> str:
    """Say when a queue grows in most trials; in a few it may seem so by chance."""
    words = ("before the jobs", "beside them")
    return " and ".join(each for count, each in zip(growing, words, strict=True) if 2 * count > total)


def _work_ms(cell: CellTrials) -> float | None:
    """Give the mean work of a request, where the trials say it."""
    trial = cell.trials[0].trial
    if trial is None or not trial.header.get("work_ns"):
        return None
    service = trial.plan["service"]
    more = float(service.get("long_share") or 0) * (float(service.get("long_factor") or 1) - 1)
    return float(trial.header["work_ns"]) / NS_PER_MS * (1 + more)


def tail_findings(cell: CellTrials, *, tolerance: float, seed: int) -> Iterator[Finding]:
    """Say for high quantiles whether they grow beside the jobs."""
    lost = _lost(cell, 0) + _lost(cell, 1)
    growing = sum(trend_of(each, each.phases.before).is_growing for each in cell.trials)
    is_overloaded = 2 * growing > len(cell.trials)
    for statistic in (P99, P999):
        ratios = _ratios(cell, statistic, seed)
        if not ratios:
            continue
        ratio = combined(ratios)
        is_binned = cell.trials[0].requests is None
        method = "mean of the quantiles of bins" if is_binned else "quantile of the latencies"
        yield finding(
            "tail",
            {**cell.subject, "quantile": statistic},
            Isolation.OVERLOAD.value if is_overloaded else tail_verdict(ratio, tolerance, lost),
            estimates={
                "before": mean_over_trials([each.before for each in ratios], "s", method),
                "beside": mean_over_trials([each.beside for each in ratios], "s", method),
                "ratio": ratio,
            },
            facts={
                "trials": len(ratios),
                "tolerance_percent": 100 * tolerance,
                "largest_ratio": finite(max((each.ratio for each in ratios), default=math.nan)),
                "reference": cell.reference,
            },
            evidence=cell.evidence(
                ("intended_ns", "received_ns"),
                f"{statistic} beside the jobs over {statistic} {cell.reference}",
            ),
            warnings=(ONE_TRIAL,) if len(ratios) == 1 else (),
        )
