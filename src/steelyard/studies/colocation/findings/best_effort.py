"""The jobs: how much work they get done, what a policy costs them, and when they stand still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import quantile
from steelyard.studies.analysis_parts import finding
from steelyard.studies.colocation.findings.effects import (
    FEWEST_VALUES,
    MEAN,
    combined,
    mean_over_trials,
    ratio_of,
)
from steelyard.studies.colocation.findings.isolation import ONE_TRIAL
from steelyard.studies.colocation.findings.verdicts import price_verdict
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.model import Finding
    from steelyard.studies.colocation.findings.effects import Ratio
    from steelyard.studies.colocation.findings.isolation import CellTrials
    from steelyard.studies.colocation.observed import Observed

    Vector = NDArray[np.float64]

REFERENCES: Final = ("weights", "default", "nice", "idle")
"""Policies that the work of the jobs is compared with: the first of them that was measured at the load."""

PRICE_MARGIN: Final = 0.05
"""Largest difference of work that does not count."""

STARVED_SHARE: Final = 0.01
"""Jobs that get less than this share of the reference's work, or of the CPUs' time, are starved."""

PARKED_S: Final = 1.0
"""Time without an iteration and without CPU time from which jobs count as parked."""

IDLE_SHARE: Final = 0.001
"""CPU time of the jobs over the time of one CPU below which they stand still."""

PAUSE_RATIO: Final = 5.0
USUAL_GAP: Final = 0.9
"""Without CPU time jobs paused where a gap between iterations is so many times their usual one, which is this
quantile: of gaps by chance (exponential) one in 10^5 is."""

RECORDED_SHARE: Final = 0.5
"""Share of a gap in which there must be bins: where a series has none, nobody looked."""

FEWEST_GAPS: Final = 3
"""Other gaps without which no gap is usual."""


@dataclass(frozen=True, slots=True)
class Parked:
    """A stretch in which the jobs stood still [s from the begin of the trial], and whether they went on."""

    low: float
    high: float
    has_resumed: bool


def has_no_count(trial: Observed) -> bool:
    """Tell whether the iterations of the jobs are not known, as in a series without a count."""
    return bool(np.isnan(trial.bins.iterations).all())


def work_of(trial: Observed) -> float:
    """Give the iterations per second while the jobs are there."""
    bins, window = trial.bins, trial.phases.jobs
    chosen = window.holds(bins.start_s, bins.width_s)
    length_s = float(chosen.sum()) * bins.width_s
    return float(bins.iterations[chosen].sum()) / length_s if length_s else float("nan")


def cpu_share(trial: Observed) -> float:
    """Give the CPU time of the jobs over that of the CPUs while they are there; NaN without samples."""
    if trial.trial is None:
        return float("nan")
    samples = trial.trial.samples
    times_s = (samples["time_ns"].astype(np.int64) - int(trial.trial.header["start_ns"])) / NS_PER_S
    inside = np.flatnonzero((times_s >= trial.phases.jobs_start_s) & (times_s <= trial.phases.jobs_stop_s))
    if inside.size < 2:  # noqa: PLR2004 - no stretch between
        return float("nan")
    used = np.diff(samples["best_effort_cpu_ns"][inside[[0, -1]]].astype(np.int64))
    length_s = float(times_s[inside[-1]] - times_s[inside[0]])
    return float(used[0]) / NS_PER_S / (length_s * len(trial.trial.plan["cpus"]))


def parked_of(trial: Observed) -> list[Parked]:
    """Give the stretches in which the jobs stood still.

    Where CPU time is known, those of at least `PARKED_S` without an iteration and without CPU time. Else a
    job may be at work without ending an iteration: the gaps that are much longer than usual (`PAUSE_RATIO`).
    """
    used_s = _cpu_time(trial)
    return _paused_of(trial) if used_s is None else _still_of(trial, used_s)


def _cpu_time(trial: Observed) -> Vector | None:
    """Give the CPU time of the jobs in each bin [s]; ``None`` where it is not known."""
    if trial.trial is None or trial.trial.samples.size < 2:  # noqa: PLR2004 - no stretch between
        return trial.jobs_cpu_s
    samples, starts_s = trial.trial.samples, trial.bins.start_s
    times_s = (samples["time_ns"].astype(np.int64) - int(trial.trial.header["start_ns"])) / NS_PER_S
    used_s = samples["best_effort_cpu_ns"].astype(np.int64) / NS_PER_S
    ends_s = np.interp(starts_s + trial.bins.width_s, times_s, used_s)
    return np.asarray(ends_s - np.interp(starts_s, times_s, used_s))


def _still_of(trial: Observed, used_s: Vector) -> list[Parked]:
    bins, window = trial.bins, trial.phases.jobs
    chosen = np.flatnonzero(window.holds(bins.start_s, bins.width_s))
    still = (bins.iterations[chosen] == 0) & (used_s[chosen] <= IDLE_SHARE * bins.width_s)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], still.astype(np.int8), [0]))))
    found = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        low = float(bins.start_s[chosen[first]])
        high = float(bins.start_s[chosen[last - 1]]) + bins.width_s
        if high - low >= PARKED_S - 1e-9:
            found.append(Parked(low, high, bool(bins.iterations[chosen[last - 1] + 1 :].sum() > 0)))
    return found


def _paused_of(trial: Observed) -> list[Parked]:
    """Look at all that is recorded: jobs may go on after the client has ended."""
    bins = trial.bins
    ends = bins.start_s[bins.iterations > 0]
    if not ends.size:
        return []
    edges = np.concatenate(([min(trial.phases.jobs_start_s, ends[0])], ends))
    gaps = np.diff(edges)
    rows = np.searchsorted(bins.start_s, edges)
    found = []
    for place, gap in enumerate(gaps):
        others = np.delete(gaps, place)
        is_recorded = (rows[place + 1] - rows[place]) * bins.width_s >= RECORDED_SHARE * gap
        if others.size < FEWEST_GAPS or gap < PARKED_S or not is_recorded:
            continue
        if gap > PAUSE_RATIO * max(quantile(others, USUAL_GAP), bins.width_s):
            found.append(Parked(float(edges[place]), float(edges[place + 1]), has_resumed=True))
    return found


def best_effort_findings(cells: Sequence[CellTrials], seed: int) -> Iterator[Finding]:
    """Give the work of the jobs under each policy, and its price against the reference."""
    counted = [cell for cell in cells if cell.is_loaded and not all(map(has_no_count, cell.trials))]
    for cell in counted:
        reference = _reference(counted, cell.load)
        yield _work_finding(cell, reference)
        if reference is not None and reference is not cell:
            price = _price_finding(cell, reference, seed)
            if price is not None:
                yield price


def _reference(cells: Sequence[CellTrials], load: str) -> CellTrials | None:
    named = {cell.policy: cell for cell in cells if cell.load == load}
    return next((named[name] for name in REFERENCES if name in named), None)


def _work_finding(cell: CellTrials, reference: CellTrials | None) -> Finding:
    rates = [work_of(trial) for trial in cell.trials]
    shares = [cpu_share(trial) for trial in cell.trials]
    parked = [each for trial in cell.trials for each in parked_of(trial)]
    most = max((work_of(trial) for trial in reference.trials), default=0.0) if reference else 0.0
    is_starved = max(rates) <= STARVED_SHARE * most or max(rates) == 0
    has_resumed = any(each.has_resumed for each in parked)
    if _cpu_time(cell.trials[0]) is None:
        verdict = "paused" if has_resumed else "starved" if is_starved else "runs"
    else:
        verdict = "starved" if is_starved else "parked" if has_resumed else "runs"
    return finding(
        "best_effort",
        cell.subject,
        verdict,
        estimates={
            "rate": mean_over_trials(rates, "iterations/s", "iterations while the jobs are there"),
            "cpu_share": mean_over_trials(
                [100 * share for share in shares], "percent", "CPU time over that of the CPUs"
            ),
        },
        facts={
            "trials": len(cell.trials),
            "iterations": int(sum(float(trial.bins.iterations.sum()) for trial in cell.trials)),
            "parked": len(parked),
            "parked_s": sum(each.high - each.low for each in parked),
            "longest_parked_s": max((each.high - each.low for each in parked), default=0.0),
            "resumed": sum(each.has_resumed for each in parked),
            "parked_from_s": PARKED_S,
            "origin": cell.trials[0].origin.value,
            **cell.jobs_time,
        },
        evidence=cell.evidence(("end_ns",), "iterations per second", "iterations.bin"),
    )


def _price_finding(cell: CellTrials, reference: CellTrials, seed: int) -> Finding | None:
    """Hold the work of the jobs against that under the reference, block by block."""
    pairs = paired(cell, reference)
    ratios = [work_ratio(first, second, seed) for first, second in pairs]
    found = [each for each in ratios if each is not None]
    if not found:
        return None
    ratio = combined(found)
    totals = [(float(a.bins.iterations.sum()), float(b.bins.iterations.sum())) for a, b in pairs]
    whole = sum(second for _, second in totals) / sum(first for first, _ in totals)
    return finding(
        "price",
        {**cell.subject, "reference": reference.policy},
        price_verdict(ratio, PRICE_MARGIN),
        estimates={"ratio": ratio},
        facts={
            "trials": len(found),
            "lost_percent": 100 * (1 - (ratio.value or 0.0)),
            "lost_in_whole_percent": 100 * (1 - whole),
            "margin_percent": 100 * PRICE_MARGIN,
        },
        evidence=cell.evidence(("end_ns",), "iterations over those of the reference", "iterations.bin"),
        warnings=(ONE_TRIAL,) if len(found) == 1 else (),
    )


def paired(cell: CellTrials, other: CellTrials) -> list[tuple[Observed, Observed]]:
    """Give the trials of the other cell and of this one by repetition; two lone files are a pair."""
    theirs = {trial.block: trial for trial in other.trials}
    own = {trial.block: trial for trial in cell.trials}
    pairs = [(theirs[block], own[block]) for block in sorted(own.keys() & theirs.keys())]
    if not pairs and len(own) == len(theirs) == 1:
        return [(other.trials[0], cell.trials[0])]
    return pairs


def work_ratio(first: Observed, second: Observed, seed: int, *, has_limits: bool = True) -> Ratio | None:
    """Compare the iterations per bin while the jobs are there, the second trial over the first.

    Limits on the logarithm need values above 0: as many neighbouring bins are joined as that takes.
    """
    counts = [
        trial.bins.iterations[trial.phases.jobs.holds(trial.bins.start_s, trial.bins.width_s)]
        for trial in (first, second)
    ]
    most = min(each.size for each in counts) // FEWEST_VALUES
    for joined in range(1, most + 1):
        parts = [each[: each.size // joined * joined].reshape(-1, joined).sum(axis=1) for each in counts]
        if all(float(part.min()) > 0 for part in parts):
            return ratio_of(parts[0], parts[1], MEAN, seed, has_limits=has_limits)
    return ratio_of(counts[0], counts[1], MEAN, seed, has_limits=has_limits)
