"""What each repetition of each cell measured, whatever the study: what two results are compared by."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import polars as pl

from steelyard.analyse.comparison.agreement import CellValues
from steelyard.model.plan import read_plan
from steelyard.record.tables import read_measurements, read_runs
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.share.comparable import comparable_levels
from steelyard.study import study_of
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan

_FAMILIES: Final = (("packets", "sections"), ("cpu", "wall"), ("outside-cpu", "outside-wall"))
"""Metrics a result is compared by: the first family that it has. What a program says of itself goes first."""

_IMPORT: Final = "import"
_NS: Final = "ns"
_PERCENTILES: Final = {"median": 50.0, "p99": 99.0}

Value = tuple[str, str, "float | NDArray[np.float64]"]
"""Metric, unit, value of a run, or those of its iterations."""

Place = tuple[int, int]
"""Block and launch of a run."""

Found = tuple[int, Place, Value]
"""Number of the cell, place and what was measured of a run."""
Unit = TypeVar("Unit", int, Place)


def cell_values(result: Path) -> tuple[CellValues, ...]:
    """Give what each cell of a result measured in each repetition.

    Runs of one cell in one block share its disturbances: together they are one unit. Of imported files, the
    launches are given too. Warm-up, failed runs and the second cell of the A/A control are left out.

    Parameters
    ----------
    result : Path
        Result folder of any study.

    Returns
    -------
    tuple of CellValues
        In the order of the plan.

    Raises
    ------
    DataError
        If its files cannot be read, or its study is not installed.
    """
    plan = read_plan(result / "plan.json")
    own = study_of(plan.study, result).own_cell_values(result, plan)
    if own is not None:
        return tuple(own)
    return tuple(gathered(plan, measured_values(result, completed_runs(result), _FAMILIES)))


def paired_names(first: Sequence[CellValues], second: Sequence[CellValues]) -> tuple[str, str] | None:
    """Give the names of the only cell of each of two results, where they differ."""
    sides = [list({tuple(sorted(cell.levels.items())): None for cell in cells}) for cells in (first, second)]
    if not len(sides[0]) == len(sides[1]) == 1 or sides[0] == sides[1]:
        return None
    before, after = (", ".join(level for _, level in side[0]) for side in sides)
    return before, after


def with_paired_cells(
    first: Sequence[CellValues], second: Sequence[CellValues]
) -> tuple[Sequence[CellValues], Sequence[CellValues]]:
    """Give two results the same cell where each has a single one: two programs, measured one by one."""
    if paired_names(first, second) is None:
        return first, second
    levels = first[0].levels
    return first, [replace(cell, levels=levels) for cell in second]


def gathered(plan: Plan, values: Iterable[Found]) -> Iterator[CellValues]:
    """Give the values of each repetition of a cell from those of its runs."""
    found: dict[tuple[int, str, str], list[tuple[Place, NDArray[np.float64]]]] = {}
    for cell, place, (metric, unit, value) in values:
        if not plan.is_twin(cell) and np.isfinite(value).all():
            found.setdefault((cell, metric, unit), []).append((place, np.atleast_1d(value)))
    for (cell, metric, unit), placed in sorted(found.items(), key=lambda each: each[0][0]):
        levels, operations = comparable_levels(plan.study, plan.cells[cell].levels)
        blocks = _units([(block, value) for (block, _), value in placed], operations)
        # Workers of one launch run side by side.
        launches = _units(placed, operations) if plan.options.get("mode") == _IMPORT else None
        shown = unit if operations == 1 else f"{unit} per operation"
        yield CellValues(levels, metric, shown, blocks, launches)


def _units(
    placed: Iterable[tuple[Unit, NDArray[np.float64]]], operations: int
) -> tuple[NDArray[np.float64], ...]:
    """Give the values of each unit per operation, in the order of the units."""
    units: dict[Unit, list[NDArray[np.float64]]] = {}
    for unit, values in placed:
        units.setdefault(unit, []).append(values / operations)
    return tuple(np.concatenate(found) for _, found in sorted(units.items(), key=itemgetter(0)))


def completed_runs(result: Path, *, counts_all: bool = False) -> list[dict[str, int]]:
    """Give the rows of the runs that completed, or of all."""
    columns = ["run_id", "cell", "block", "batch", "attempt", "iteration", "status", "peak_memory_bytes"]
    runs = read_runs(result).select(columns).to_pylist()
    return [row for row in runs if counts_all or row["status"] == "completed"]


def place_of(row: Mapping[str, int]) -> Place:
    """Give block and launch of a run."""
    return row["block"], row["iteration"]


def measured_values(
    result: Path, runs: Iterable[Mapping[str, int]], families: Sequence[tuple[str, ...]]
) -> Iterator[Found]:
    """Give the values of each metric of each run; of the first family of metrics that is there."""
    by_id = {str(row["run_id"]): row for row in runs}
    table = pl.DataFrame(read_measurements(result).select(["run_id", "phase", "metric", "value", "unit"]))
    table = table.filter(pl.col("phase") == "measure")
    present = set(table["metric"].unique())
    family = next((each for each in families if present & set(each)), ())
    keys = ["run_id", "metric", "unit"]
    grouped = table.filter(pl.col("metric").is_in(family)).group_by(keys, maintain_order=True)
    for (run_id, metric, unit), frame in grouped:
        run = by_id.get(str(run_id))
        if run is not None:
            is_seconds = unit == "s"
            values = frame["value"].to_numpy() * (NS_PER_S if is_seconds else 1)
            yield run["cell"], place_of(run), (str(metric), _NS if is_seconds else str(unit), values)


def values_of_files(result: Path, values_of: Callable[[Path], Iterable[Value]]) -> Iterator[Found]:
    """Give the values of the folder that each completed run left; of imported runs, what was measured."""
    runs = completed_runs(result)
    if not (result / TRACES_NAME).is_dir():
        yield from measured_values(result, runs, _FAMILIES)
        return
    for row in runs:
        folder = result / TRACES_NAME / files_name(row["batch"], row["attempt"])
        yield from ((row["cell"], place_of(row), value) for value in values_of(folder))


def latencies(name: str, values_ns: NDArray[np.int64]) -> Iterator[Value]:
    """Give median and 99th percentile of latencies of one kind."""
    if values_ns.size:
        for label, percent in _PERCENTILES.items():
            yield f"{name}, {label}", _NS, float(np.percentile(values_ns, percent))
