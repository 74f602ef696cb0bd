"""CSV out: everything in a long table, or the nine columns of the ReCodEx evaluation."""

from __future__ import annotations

import csv
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.plan import Plan, read_plan
from steelyard.record.schema import factor_columns
from steelyard.record.tables import read_measurements, read_runs
from steelyard.studies.stability.recodex import METRICS, join_setup
from steelyard.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    import pyarrow as pa

SOURCE_METRICS: Final = {ours: theirs for theirs, ours in METRICS.items()}
_RUN_COLUMNS: Final = (
    "block",
    "batch",
    "position",
    "worker",
    "worker_label",
    "iteration",
    "host_id",
    "status",
)
_MEASUREMENT_COLUMNS: Final = ("phase", "metric", "value", "unit", "printed")
_NEEDED_FACTORS: Final = ("isolation", "setup_type", "setup_size", "affinity", "workload", "input")
_NS_PER_UNIT: Final = {"ns": 1, "us": 1000, "ms": NS_PER_MS, "s": NS_PER_S}


class CsvFormat(StrEnum):
    """Which CSV."""

    CSV = "csv"
    """One row per measurement, with header and every factor."""
    RECODEX = "recodex"
    """Nine columns without header."""


def export_csv(result: Path, form: CsvFormat, out: TextIO) -> int:
    """Write the measurements of a result folder as CSV.

    Parameters
    ----------
    result : Path
        Result folder.
    form : CsvFormat
        ``csv``: all measurements of all runs. ``recodex``: metrics cpu, wall, iso-cpu, iso-wall,
        start-wall [s] of completed runs in phase ``measure``; the affinity is folded back into
        the setup type, blocks are counted on as iterations, cells with counters and the
        second cell of the A/A control are left out because nine columns cannot tell them apart.
    out : text file
        Where to write; open it with ``newline=""``.

    Returns
    -------
    int
        Rows written, the header not counted.

    Raises
    ------
    DataError
        If the folder is damaged, or its study cannot be said in nine columns.
    """
    rows = _long_rows(result) if form is CsvFormat.CSV else _source_rows(result)
    writer = csv.writer(out, lineterminator="\n")
    written = 0
    for row in rows:
        writer.writerow(row)
        written += 1
    return written - 1 if form is CsvFormat.CSV else written


def _measured_runs(
    runs: pa.Table, measurements: pa.Table, columns: tuple[str, ...]
) -> Iterator[tuple[dict[str, object], dict[str, object]]]:
    """Give each measurement with its run, in the order of the measurements."""
    by_id: dict[object, dict[str, object]] = {}
    for batch in runs.select(["run_id", *columns]).to_batches():
        for row in batch.to_pylist():
            by_id[row["run_id"]] = row
    for batch in measurements.to_batches(max_chunksize=65_536):
        for row in batch.to_pylist():
            yield by_id[row["run_id"]], row


def _long_rows(result: Path) -> Iterator[list[object]]:
    runs = read_runs(result)
    factors = factor_columns(runs.schema)
    before = ("run_id", "study", "cell", *factors, *_RUN_COLUMNS)
    yield [*before, "section", *_MEASUREMENT_COLUMNS]
    for run, row in _measured_runs(runs, read_measurements(result), (*before[1:],)):
        yield [
            *(run[name] for name in before),
            row["iteration"],
            *(row[name] for name in _MEASUREMENT_COLUMNS),
        ]


def _source_rows(result: Path) -> Iterator[list[object]]:
    plan = read_plan(result / "plan.json")
    runs = read_runs(result)
    absent = [name for name in _NEEDED_FACTORS if name not in factor_columns(runs.schema)]
    if absent:
        reason = f"study `{plan.study}` has no factor `{absent[0]}`"
        message = f"cannot write `{result}` in nine columns: {reason}"
        raise DataError(message, hint="export it with --format csv", code="data.export")
    left_out = _cells_left_out(plan)
    seen: set[tuple[object, ...]] = set()
    columns = ("cell", "block", "worker", "worker_label", "iteration", "status", *_NEEDED_FACTORS)
    for run, row in _measured_runs(runs, read_measurements(result), columns):
        metric = SOURCE_METRICS.get(str(row["metric"]))
        is_claim = run["status"] == "completed" and row["phase"] == "measure"
        if metric is None or not is_claim or run["cell"] in left_out:
            continue
        key = (run["run_id"], metric)
        if key in seen:
            message = (
                f"run `{run['run_id']}` measured `{metric}` several times, which nine columns cannot express"
            )
            raise DataError(message, hint="export it with --format csv", code="data.export")
        seen.add(key)
        yield _source_row(plan, run, metric, _seconds(row))


def _source_row(plan: Plan, run: dict[str, object], metric: str, seconds: str) -> list[object]:
    execution = plan.cells[int(str(run["cell"]))].execution
    per_block = execution.iterations if execution is not None else 0
    iteration = int(str(run["block"])) * per_block + int(str(run["iteration"]))
    return [
        run["isolation"],
        join_setup(str(run["setup_type"]), str(run["affinity"])),
        run["setup_size"],
        run["worker"] if run["worker_label"] is None else run["worker_label"],
        run["workload"],
        run["input"],
        iteration,
        metric,
        seconds,
    ]


def _cells_left_out(plan: Plan) -> frozenset[int]:
    return frozenset(
        cell.number
        for cell in plan.cells
        if plan.is_twin(cell.number) or cell.levels.get("counters", "off") != "off"
    )


def _seconds(row: dict[str, object]) -> str:
    """Give a time in seconds: as it was printed, else exactly."""
    if row["printed"] is not None:
        return str(row["printed"])
    unit = str(row["unit"])
    if unit not in _NS_PER_UNIT:
        metric = f"metric `{row['metric']}` of run `{row['run_id']}`"
        message = f"{metric} has unit `{unit}`, which is not a unit of time"
        raise DataError(message, hint="export it with --format csv", code="data.export")
    exact = Decimal(repr(row["value"])) * _NS_PER_UNIT[unit] / NS_PER_S
    return f"{exact.normalize():f}"
