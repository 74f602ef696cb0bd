"""What follows: the first start over the mean of the next ones, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import steelyard
from steelyard.errors import AnalysisError
from steelyard.model import Estimate, FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.studies.analysis_parts import RUNS, finding
from steelyard.studies.finding_tables import write_claim_tables
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, Plan
    from steelyard.studies.analysis_options import AnalysisOptions

METHOD_VERSION = 1
FEWEST_BLOCKS = 5


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/first_starts.csv``."""
    plan = plan_to_analyse(result, "first-start", options)
    findings = tuple(_claims(result, plan))
    if not findings:
        message = f"`{result}` has no command with five whole batches"
        raise AnalysisError(message, hint="look at the status of its runs")
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_claim_tables(result, found, {"first_start": "first_starts"})
    found.write(result / "findings.json")
    return found


def _claims(result: Path, plan: Plan) -> Iterator[Finding]:
    runs = pl.DataFrame(pl.from_arrow(read_runs(result))).filter(pl.col("status") == "completed")
    margin = float(plan.options["margin_percent"] or 0) / 100
    for cell in plan.cells:
        of_cell = runs.filter(pl.col("cell") == cell.number).group_by("block", maintain_order=True)
        ratios = of_cell.agg(
            pl.col("wall_ns").filter(pl.col("iteration") == 1).mean()
            / pl.col("wall_ns").filter(pl.col("iteration") > 1).mean()
        )["wall_ns"].drop_nulls()
        if len(ratios) < FEWEST_BLOCKS:
            continue
        # Logarithms: a start of twice and one of half the time are equally far from no difference.
        found = steelyard.interval(np.log(ratios.to_numpy()), clusters=np.arange(len(ratios)), seed=plan.seed)
        low, high = float(np.exp(found.low)), float(np.exp(found.high))
        yield finding(
            "first_start",
            {"command": cell.levels["command"]},
            _verdict(low, high, margin),
            estimates={
                "ratio": Estimate(
                    float(np.exp(found.estimate)),
                    "ratio",
                    "geometric mean of the ratios of blocks",
                    low,
                    high,
                    0.95,
                    units=len(ratios),
                    measurements=len(runs.filter(pl.col("cell") == cell.number)),
                    guaranteed=found.guaranteed,
                )
            },
            facts={"margin_percent": 100 * margin},
            evidence=steelyard.model.Evidence(
                RUNS, {"cell": str(cell.number)}, ("wall_ns",), "first over mean of rest"
            ),
        )


def _verdict(low: float, high: float, margin: float) -> str:
    if low > 1 + margin:
        return "slower"
    if high < 1 + margin:
        return "not slower"
    return "undecided"
