"""What the report of a stability study reads: findings, plan, provenance, measurements for charts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.tables import read_measurements, read_runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.model.plan import Plan
    from steelyard.record.provenance import Provenance

UNSTATED: Final = "unstated"
"""Input of a workload whose file did not name one."""

Key: TypeAlias = tuple[str, str, str]
"""Isolation, setup label, workload label."""

_LABELS: Final = ("isolation", "setup_type", "setup_size", "affinity", "workload", "input")
MS_PER_UNIT: Final = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of all runs of one cell, in the order of measuring.

    Parameters
    ----------
    isolation, setup, workload : str
        Labels; the setup carries the affinity when there is one.
    workers : array of int64, shape (n,)
        Worker of each value.
    order : array of int64, shape (n,)
        Iteration, counted through all blocks.
    time_ms : array of float64, shape (n,)
        Values [ms].
    """

    isolation: str
    setup: str
    workload: str
    workers: NDArray[np.int64]
    order: NDArray[np.int64]
    time_ms: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RecordedTables:
    """A result folder as the report sees it.

    Parameters
    ----------
    findings : FindingSet
        What may be said.
    plan : Plan or None
        Absent for imported data.
    provenance : Provenance or None
        Absent when it was not recorded.
    runs, measurements : pyarrow.Table
        For charts.
    """

    folder: Path
    findings: FindingSet
    plan: Plan | None
    provenance: Provenance | None
    runs: pa.Table
    measurements: pa.Table


def read_recorded(folder: Path) -> RecordedTables:
    """Read a result folder.

    Raises
    ------
    DataError
        If findings or tables are absent or damaged.
    """
    findings = read_findings(folder / "findings.json")
    plan = read_plan(folder / "plan.json") if (folder / "plan.json").exists() else None
    return RecordedTables(
        folder=folder,
        findings=replace(findings, findings=tuple(labelled(finding) for finding in findings.findings)),
        plan=plan,
        provenance=read_provenance(folder) if (folder / PROVENANCE_NAME).exists() else None,
        runs=read_runs(folder),
        measurements=read_measurements(folder),
    )


def missing_cells(recorded: RecordedTables) -> list[Key]:
    """Give the places of missing cells without CPU binding, in the order of the plan."""
    cells = recorded.plan.cells if recorded.plan else ()
    return [
        _key(cell.levels) for cell in cells if cell.missing and cell.levels.get("affinity", "none") == "none"
    ]


def setup_label(levels: Mapping[str, Any]) -> str:
    """Give the label of a setup: type, affinity when there is one, size.

    Examples
    --------
    >>> setup_label({"setup_type": "single", "setup_size": "1", "affinity": "none"})
    'single,1'
    >>> setup_label({"setup_type": "parallel-homogenous", "setup_size": "4", "affinity": "taskset"})
    'parallel-homogenous-taskset,4'
    """
    affinity = levels.get("affinity")
    suffix = "" if affinity in (None, "", "none") else f"-{affinity}"
    return f"{levels['setup_type']}{suffix},{levels['setup_size']}"


def setup_order(setup: str) -> tuple[bool, str, int]:
    """Give the sort key of a setup: single first, then by type and number of workers."""
    kind, _, size = setup.rpartition(",")
    return kind != "single", kind, int(size) if size.isdigit() else 0


def workload_label(workload: str, given: str | None) -> str:
    """Give the label of a workload with its input, as the published tables write it.

    Examples
    --------
    >>> workload_label("exp/exp_float", "65536")
    'exp/exp_float 65536'
    """
    return workload if given in {None, "", UNSTATED} else f"{workload} {given}"


def labelled(finding: Finding) -> Finding:
    """Give a finding whose workload is named with its input."""
    if "workload" not in finding.subject:
        return finding
    label = workload_label(finding.subject["workload"], finding.subject.get("input"))
    subject = {key: value for key, value in finding.subject.items() if key != "input"}
    return replace(finding, subject={**subject, "workload": label})


def series_of(recorded: RecordedTables, metric: str) -> list[Series]:
    """Give one series per cell of a metric."""
    measured = recorded.measurements
    chosen = measured.filter(
        pc.and_(pc.equal(measured["metric"], metric), pc.equal(measured["phase"], "measure"))
    )
    labels = recorded.runs.select([*_LABELS, "run_id", "block", "iteration", "worker"])
    # A join of Arrow is spread over threads, and gives its rows in an order of its own each time.
    runs = {row["run_id"]: row for row in labels.to_pylist()}
    groups: dict[Key, list[tuple[int, int, int, float]]] = {}
    for row in chosen.select(["run_id", "value", "unit"]).to_pylist():
        if (run := runs.get(row["run_id"])) is not None:
            value = row["value"] * MS_PER_UNIT[row["unit"]]
            groups.setdefault(_key(run), []).append((run["block"], run["iteration"], run["worker"], value))
    return [_series(key, sorted(rows)) for key, rows in groups.items()]


def _key(row: Mapping[str, Any]) -> Key:
    return row["isolation"], setup_label(row), workload_label(row["workload"], row.get("input"))


def _series(key: Key, rows: list[tuple[int, int, int, float]]) -> Series:
    """Give the series of one cell, its iterations numbered through all blocks."""
    block, iteration, worker, value = (np.asarray(column) for column in zip(*rows, strict=True))
    first = int(iteration.min())
    length = int(iteration.max()) - first + 1
    position = np.searchsorted(np.unique(block), block)
    order = position * length + iteration - first + 1
    return Series(*key, workers=worker, order=order, time_ms=value.astype(np.float64))


def pairs_of(recorded: RecordedTables, own: str, outside: str) -> dict[Key, NDArray[np.float64]]:
    """Give own and outside values of the same iterations [ms], per isolation, setup and workload.

    Returns
    -------
    dict
        Arrays of shape (n, 2): own, outside. Empty when a clock was not recorded.
    """
    place = {own: 0, outside: 1}
    labels = {row["run_id"]: _key(row) for row in recorded.runs.select([*_LABELS, "run_id"]).to_pylist()}
    values: dict[tuple[str, int], list[float | None]] = {}
    metrics = pa.array(list(place), pa.string())
    chosen = recorded.measurements.filter(pc.is_in(recorded.measurements["metric"], metrics))
    for row in chosen.select(["run_id", "iteration", "metric", "value", "unit"]).to_pylist():
        pair = values.setdefault((row["run_id"], row["iteration"]), [None, None])
        pair[place[row["metric"]]] = row["value"] * MS_PER_UNIT[row["unit"]]
    groups: dict[Key, list[list[float | None]]] = {}
    for (run, _), pair in values.items():
        if None not in pair and run in labels:
            groups.setdefault(labels[run], []).append(pair)
    return {key: np.asarray(pairs, dtype=np.float64) for key, pairs in groups.items()}
