"""What the commands of a comparison took: what two results are compared by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.studies.comparison.sample import REPORTED
from steelyard.studies.comparison.terms import MEASURE, Metric
from steelyard.studies.run_values import completed_runs, gathered, measured_values, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.analyse.comparison.agreement import CellValues
    from steelyard.model import Plan
    from steelyard.studies.run_values import Found


def cell_values(result: Path, plan: Plan) -> Iterator[CellValues]:
    """Give what each command took, one value for each repetition."""
    return gathered(plan, _values(result, plan))


def _values(result: Path, plan: Plan) -> Iterator[Found]:
    # `--ignore-failure` counts failed runs like any other.
    runs = completed_runs(result, counts_all=bool(plan.options.get("ignores_failure")))
    measured = [row for row in runs if plan.cells[row["cell"]].levels.get("phase") == MEASURE]
    metric = plan.options.get("metric")
    if metric == Metric.REPORTED:
        yield from measured_values(result, measured, ((REPORTED,),))
        return
    if metric != "memory":
        yield from measured_values(result, measured, ((f"outside-{metric}",),))
        return
    for row in measured:
        if row["peak_memory_bytes"] is not None:
            yield row["cell"], place_of(row), ("peak memory", "bytes", float(row["peak_memory_bytes"]))
