"""What to know about the runs: whether identical cells look identical, which failed, which settings held."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from steelyard.analyse.comparison.equivalence import Margin, ratio_test, verdict_of
from steelyard.model import Estimate, Evidence
from steelyard.record.tables import read_runs
from steelyard.studies.analysis_parts import RUNS, finding, finite
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.scaling.findings.estimates import of_trials
from steelyard.studies.scaling.findings.strategy import contender_of
from steelyard.studies.scaling.lost_cells import ending_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, Plan
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.scaling.recorded import Recorded

A_A_SIDES = 2
NAMED = 3


def remark_findings(result: Path, recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Give the A/A control, the failed runs and the settings."""
    if len(recorded.twin) == A_A_SIDES:
        yield _identical(recorded, options)
    if not recorded.hashes:
        yield from quiet_machine(result, pl.DataFrame(read_runs(result).select(["steal_ns", "wall_ns"])))
    yield from _failed(result, recorded.plan)
    yield finding(
        "settings",
        {},
        "stated",
        facts={
            "margin_percent": options.margin_percent,
            "resamples": options.resamples,
            "seed": recorded.plan.seed,
            "blocks": recorded.plan.blocks,
            "cores": recorded.cores,
            "response": "" if recorded.response is None else recorded.response.words,
            "has_trials": recorded.has_trials,
        },
    )


def _identical(recorded: Recorded, options: AnalysisOptions) -> Finding:
    first, second = (cell.values[np.isfinite(cell.values)] for cell in recorded.twin)
    test = ratio_test(first, second, Margin(options.margin_percent / 100))
    low = finite(test.low)
    return finding(
        "identical_cells",
        {name: level for name, level in recorded.twin[0].levels.items() if level},
        verdict_of(test, test.p_different, test.p_equivalent).value,
        estimates={
            "ratio": Estimate(
                finite(test.ratio),
                "ratio",
                f"{test.words} on the logarithms of the trials",
                low,
                finite(test.high),
                None if low is None else 0.95,
                min(test.units),
                sum(test.units),
                guaranteed=test.is_guaranteed,
            )
        },
        evidence=of_trials(recorded.twin, "ratio of two identical cells"),
    )


def _failed(result: Path, plan: Plan) -> Iterator[Finding]:
    columns = ("status", "exit_code", "signal", "limit", "message", "cell")
    runs = read_runs(result).select(columns).to_pylist()
    cells: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for run in runs:
        if run["status"] != "completed":
            ending = ending_of(run["status"], run["exit_code"], run["signal"], run["limit"])
            cells[run["status"], ending, run["message"] or ""].append(run["cell"])
    for (status, ending, message), numbers in cells.items():
        distinct = sorted(set(numbers))
        yield finding(
            "failed_runs",
            {"status": status, "ending": ending, "message": message},
            "failed",
            facts={
                "runs": len(numbers),
                "of_runs": len(runs),
                "cells": len(distinct),
                "where": _where(plan, distinct),
            },
            evidence=Evidence(RUNS, {"status": status}, columns[:-1], "number of runs"),
        )


def _where(plan: Plan, cells: list[int]) -> str:
    """Name the first few cells."""
    named = []
    for number in cells[:NAMED]:
        levels = plan.cells[number].levels
        who = levels["program"] if "program" in levels else contender_of(levels)
        named.append(f"{who} with workers {levels['workers']}")
    rest = len(cells) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")
