"""Peaks of calls as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from steelyard.analyse.peaks.co_occurrence import VerdictKind
from steelyard.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.peaks.call_times import CallTimes
    from steelyard.analyse.peaks.co_occurrence import Explanation
    from steelyard.analyse.peaks.peak_search import Rate, Threshold
    from steelyard.analyse.peaks.periodicity import Period
    from steelyard.analyse.peaks.run_peaks import CellPeaks, RunPeaks

SCHEMA: Final = "steelyard/peaks/1"
_LEVELS: Final = " ▁▂▃▄▅▆▇█"
_PER: Final = 1_000_000
_HEADINGS: Final = (
    *("runs", "calls", "mean", "sd", "min", "max", "cv", "max/mean", "peaks"),
    "episodes per 10⁶ calls",
)
_MOST_RUNS: Final = 5
"""Runs of a cell that are told one by one."""


def peaks_lines(cells: Sequence[CellPeaks], threshold: Threshold) -> Iterator[str]:
    """Give the lines of the text: a table with a row per cell, then what its runs say."""
    yield f"A peak is a call longer than {threshold.text} of its run; successive peaks are one episode."
    yield ""
    rows = [("", *_HEADINGS), *((_label(cell), *_row(cell)) for cell in cells)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *rest]).rstrip()
    for cell in cells:
        yield ""
        yield _label(cell) or "all calls"
        yield from _told(cell)


def _label(cell: CellPeaks) -> str:
    return ", ".join(level for name, level in cell.cell.items() if level and name != "experiment")


def _time(ns: float) -> str:
    return "-" if math.isnan(ns) else format_seconds(ns * 1e-9)


def _row(cell: CellPeaks) -> tuple[str, ...]:
    times, rate = cell.times, cell.rate
    return (
        str(len(cell.runs)),
        f"{times.count}",
        *(_time(value) for value in (times.mean_ns, times.sd_ns, times.min_ns, times.max_ns)),
        f"{times.cv:.3g}",
        f"{times.max_over_mean:.4g}",
        f"{sum(run.peak_calls for run in cell.runs)}",
        f"{rate.value * _PER:.4g} [{rate.low * _PER:.4g}; {rate.high * _PER:.4g}]",
    )


def _told(cell: CellPeaks) -> Iterator[str]:
    method = (
        "exact Poisson interval"
        if cell.rate.method == "poisson"
        else "negative-binomial interval: in clusters"
    )
    yield f"  {cell.rate.count} episodes in {cell.times.count} calls ({method})"
    half = cell.times.published_ci95_ns
    yield (
        f"  median {_time(cell.times.median_ns)}, MAD {_time(cell.times.mad_ns)}, published rule: mean"
        f" ± {_time(half)} (1.959964 sd / √n, treats calls as independent)"
    )
    for run in cell.runs[:_MOST_RUNS]:
        yield f"  {run.name}: peaks above {_time(run.threshold_ns)}"
        yield f"    when      |{_spark(run)}|"
        yield f"    period    {period_text(run.period)}"
        yield f"    comes with  {_cause_text(run.explanation)}"
    if len(cell.runs) > _MOST_RUNS:
        yield f"  and {len(cell.runs) - _MOST_RUNS} more runs; --json lists all"
    if cell.causes and len(cell.runs) > 1:
        named = ", ".join(f"{cause} in {count}" for cause, count in cell.causes.most_common())
        yield f"  of {sum(cell.causes.values())} watched runs: {named}"


def _spark(run: RunPeaks) -> str:
    counts = run.timeline.episodes
    most = int(counts.max()) if counts.size else 0
    if most == 0:
        return _LEVELS[0] * counts.size
    return "".join(_LEVELS[math.ceil(int(count) / most * (len(_LEVELS) - 1))] for count in counts)


def period_text(period: Period) -> str:
    """Say whether there is a period."""
    if period.reason:
        return f"not looked for: {period.reason}"
    if not period.is_periodic:
        return f"none found of {_time(period.shortest_ns)} or longer"
    half = period.half_width_ns
    interval = f" ± {_time(half)}"
    if period.why_no_interval or math.isnan(half):
        interval = f" (no interval: {period.why_no_interval})" if period.why_no_interval else ""
    locked = f"{100 * period.locked_share:.0f} % of the episodes within a quarter of it around the phase"
    return f"{_time(period.period_ns)}{interval}, p = {period.p_value:.2g}, {locked}"


def _cause_text(explanation: Explanation | None) -> str:
    return "no events were recorded beside the calls" if explanation is None else explanation.sentence


def peaks_content(cells: Sequence[CellPeaks], threshold: Threshold) -> dict[str, object]:
    """Give everything as an object for JSON."""
    return {
        "schema": SCHEMA,
        "threshold": {"rule": threshold.rule.value, "value": threshold.value, "text": threshold.text},
        "cells": [
            {
                "cell": dict(cell.cell),
                **_times(cell.times),
                "peaks": sum(run.peak_calls for run in cell.runs),
                "rate_per_call": _rate(cell.rate),
                "causes": dict(cell.causes),
                "runs": [_run(run) for run in cell.runs],
            }
            for cell in cells
        ],
    }


def _times(times: CallTimes) -> dict[str, object]:
    return {
        "calls": times.count,
        "mean_ns": times.mean_ns,
        "sd_ns": _finite(times.sd_ns),
        "min_ns": times.min_ns,
        "max_ns": times.max_ns,
        "cv": _finite(times.cv),
        "max_over_mean": _finite(times.max_over_mean),
        "mad_ns": times.mad_ns,
        "quantiles_ns": {f"{share:g}": value for share, value in times.quantiles_ns.items()},
        "published_ci95_ns": _finite(times.published_ci95_ns),
    }


def _rate(rate: Rate) -> dict[str, object]:
    return {name: value for name, value in asdict(rate).items() if name != "exposure"}


def _run(run: RunPeaks) -> dict[str, object]:
    explanation = run.explanation
    return {
        "name": run.name,
        **_times(run.times),
        "threshold_ns": run.threshold_ns,
        "peaks": run.peak_calls,
        "episodes": run.episodes.count,
        "timeline": {
            "edge_ns": run.timeline.edge_ns.tolist(),
            "episodes": run.timeline.episodes.tolist(),
            "excess_ns": run.timeline.excess_ns.tolist(),
            "worst_ns": run.timeline.worst_ns.tolist(),
        },
        "period": {
            name: _finite(value) if isinstance(value, float) else value
            for name, value in asdict(run.period).items()
        },
        "explanation": None if explanation is None else _explanation(explanation),
    }


def _explanation(explanation: Explanation) -> dict[str, object]:
    return {
        "verdict": explanation.verdict.value,
        "cause": explanation.cause,
        "is_certain": explanation.verdict is VerdictKind.NAMED,
        "unexplained_share": explanation.unexplained_share,
        "sentence": explanation.sentence,
        "kinds": [
            {
                name: _finite(value) if isinstance(value, float) else value
                for name, value in asdict(kind).items()
            }
            for kind in explanation.kinds
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
