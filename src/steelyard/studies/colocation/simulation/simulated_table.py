"""What simulated trials say: latencies before and after the jobs start, their work, and what checks do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.colocation.trial import Trial

_P99: Final = 99
WITHOUT_JOBS: Final = "none"
_EVEN: Final = 1.05
"""A mean that grows by no more is called even."""

_OWN_ORDER: Final = ("fifo", "be")
"""Policies under which the service itself is scheduled by other rules than without jobs."""

_SEEN_MS: Final = 0.1
"""A wait beyond an interrupt and a switch."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of the requests that were due in a part of a trial, from their intended time.

    Parameters
    ----------
    requests : int
        Requests that were due.
    unanswered : int
        Those without an answer at the end; they are in no other number.
    mean_ms, p50_ms, p99_ms : float
        Mean, median and 99th percentile; NaN if there is no answer.
    """

    requests: int
    unanswered: int
    mean_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated trial says.

    Parameters
    ----------
    policy : str
        Name of the policy, with the checks that are off.
    load : float
        Work that arrived over what the CPUs could do.
    before, after : Latency
        Before the jobs start (without the warm-up), and while they want to run.
    iterations_per_s : float
        Iterations of all jobs, while they want to run.
    best_effort_cpus : float
        CPUs in use by the jobs, on average.
    violation_share : float
        Share of the time of the jobs in which a thread of the service waited while a job ran. Interrupts
        that are under way count, so that it grows with the number of CPUs.
    worst_wait_ms : float
        Longest time one thread of the service waited while a job ran, in one wait.
    counters : mapping
        Counters of the scheduler.
    """

    policy: str
    load: float
    before: Latency
    after: Latency
    iterations_per_s: float
    best_effort_cpus: float
    violation_share: float
    worst_wait_ms: float
    counters: dict[str, int]

    @property
    def mean_ratio(self) -> float:
        """Mean latency with the jobs over that without."""
        return self.after.mean_ms / self.before.mean_ms

    @property
    def p99_ratio(self) -> float:
        """99th percentile with the jobs over that without."""
        return self.after.p99_ms / self.before.p99_ms

    def content(self) -> dict[str, Any]:
        """Give everything as JSON holds it, which has no word for what is not a number but null."""
        before, after = (
            {name: _or_none(value) for name, value in asdict(part).items()}
            for part in (self.before, self.after)
        )
        ratios = {"mean_ratio": _or_none(self.mean_ratio), "p99_ratio": _or_none(self.p99_ratio)}
        return {**asdict(self), "before": before, "after": after, **ratios}


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def latency_between(trial: Trial, first_ns: int, last_ns: int) -> Latency:
    """Describe the latencies of the requests that were due in ``first_ns <= time < last_ns`` [stamps].

    The percentiles are those of numpy's default, linear between the two nearest values.
    """
    intended = trial.requests["intended_ns"]
    due = trial.requests[(intended >= first_ns) & (intended < last_ns)]
    answered = due[due["received_ns"] > 0]
    unanswered = len(due) - len(answered)
    if len(answered) == 0:
        return Latency(len(due), unanswered, np.nan, np.nan, np.nan)
    latency_ms = (answered["received_ns"] - answered["intended_ns"]) / NS_PER_MS
    p50, p99 = np.percentile(latency_ms, (50, _P99))
    return Latency(len(due), unanswered, float(latency_ms.mean()), float(p50), float(p99))


def outcome_of(trial: Trial, load: float) -> Outcome:
    """Summarise a simulated trial."""
    header, phases = trial.header, trial.plan["phases"]
    start, stop = header["best_effort_start_ns"], header["best_effort_stop_ns"]
    warm_ns = header["start_ns"] + phases["warm_up_ms"] * NS_PER_MS
    ends = trial.iterations["end_ns"]
    iterations = int(((ends >= start) & (ends < stop)).sum())
    seconds = (stop - start) / NS_PER_S
    strictness = trial.scheduler["strictness"]
    used_ns = int(trial.samples["best_effort_cpu_ns"][-1])
    return Outcome(
        policy=trial.plan["policy"]["name"],
        load=load,
        before=latency_between(trial, warm_ns, start),
        after=latency_between(trial, start, stop),
        iterations_per_s=iterations / seconds,
        best_effort_cpus=used_ns / (stop - start),
        violation_share=strictness["violation_ns"] / (stop - start),
        worst_wait_ms=strictness["longest_ns"] / NS_PER_MS,
        counters=dict(trial.scheduler["counters"]),
    )


_HEADINGS: Final = (
    "policy",
    "mean ms",
    "p50 ms",
    "p99 ms",
    "factor",
    "jobs/s",
    "worst wait ms",
    "entry",
    "exit",
)


def table_of(outcomes: Sequence[Outcome]) -> str:
    """Write a table of outcomes of one load, as plain text with aligned columns."""
    rows = [_HEADINGS, *(_row(each) for each in outcomes)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _row(outcome: Outcome) -> tuple[str, ...]:
    before, after, counters = outcome.before, outcome.after, outcome.counters
    pairs = ((before.mean_ms, after.mean_ms), (before.p50_ms, after.p50_ms), (before.p99_ms, after.p99_ms))
    return (
        outcome.policy,
        *(f"{_shown(old)} -> {_shown(new)}" for old, new in pairs),
        "-" if np.isnan(outcome.mean_ratio) else f"{outcome.mean_ratio:.2f}",
        f"{outcome.iterations_per_s:.1f}",
        f"{outcome.worst_wait_ms:.3f}",
        *(_successes(counters, check) for check in ("entry", "exit")),
    )


def _shown(value_ms: float) -> str:
    return "-" if np.isnan(value_ms) else f"{value_ms:.2f}"


def _successes(counters: dict[str, int], check: str) -> str:
    times = counters[f"{check}_runs"]
    return f"{counters[f'{check}_successes']}/{times}" if times else "-"


def who_suffers(outcomes: Sequence[Outcome]) -> list[str]:
    """Say in a line per outcome of a load who suffers from the jobs, by what factor.

    The reference is the same time without jobs where that was simulated, else the time before the jobs.
    """
    alone = next((each for each in outcomes if each.policy == WITHOUT_JOBS), None)
    return [_sentence(each, alone) for each in sorted(outcomes, key=lambda each: -each.mean_ratio)]


def _sentence(outcome: Outcome, alone: Outcome | None) -> str:
    lost = outcome.after.unanswered
    unanswered = f"; {lost} requests were never answered" if lost else ""
    ratios = outcome.mean_ratio, outcome.p99_ratio
    reference = ""
    if np.isnan(ratios[0]):
        return f"{outcome.policy}: no request was answered in one of the two stretches{unanswered}"
    if outcome is alone:
        changed = f"changes by a factor of {ratios[0]:.2f}, which is due to the arrivals"
        return f"{outcome.policy}: without any jobs the mean latency {changed}{unanswered}"
    if alone is not None:
        ratios = (
            outcome.after.mean_ms / alone.after.mean_ms,
            outcome.after.p99_ms / alone.after.p99_ms,
        )
        by_other = " under the fair scheduler" if outcome.policy.startswith(_OWN_ORDER) else ""
        reference = f", against the same time without jobs{by_other}"
        if np.isnan(ratios[0]):
            return f"{outcome.policy}: no request was answered in that time without jobs{unanswered}"
    if ratios[0] <= _EVEN:
        wait_ms = outcome.worst_wait_ms
        waited = (
            f"; a thread of it waited up to {wait_ms:.1f} ms while a job ran" if wait_ms > _SEEN_MS else ""
        )
        return (
            f"{outcome.policy}: the service keeps its mean latency "
            f"(factor {ratios[0]:.2f}{reference}){waited}{unanswered}"
        )
    return (
        f"{outcome.policy}: the service's mean latency grows by a factor of {ratios[0]:.2f}, "
        f"its p99 {'by' if ratios[1] >= 1 else 'shrinks to'} {ratios[1]:.2f}{reference}{unanswered}"
    )
