"""What each repetition of each cell measured, whatever the study: what two results are compared by."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.analyse.agreement import CellValues
from steelyard.analyse.result_series import NOT_OBSERVED, TIMES
from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.experiment import EXPERIMENT_FILE, HEADER_FILE, JMH_FILE, read_run
from steelyard.record.tables import read_measurements, read_runs
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.record.trial import read_trial
from steelyard.run.run_files import files_name
from steelyard.share.comparable import comparable_levels
from steelyard.studies.imported.samples import read_samples
from steelyard.units import NS_PER_S, is_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan
    from steelyard.record.experiment import ExperimentRun

_FAMILIES: Final = (("packets", "sections"), ("cpu", "wall"), ("outside-cpu", "outside-wall"))
"""Metrics a result is compared by: the first family that it has. What a program says of itself goes first."""

_COMPARISON: Final = "compare"
_IMPORTED: Final = "imported"
_IMPORT: Final = "import"
_BYTES: Final = "bytes"
_NS: Final = "ns"
_PERCENTILES: Final = {"median": 50.0, "p99": 99.0}
_SUCCESS: Final = range(200, 300)

Value = tuple[str, str, float]
"""Metric, unit, value of a run."""

Place = tuple[int, int]
"""Block and launch of a run."""
Unit = TypeVar("Unit", int, Place)


def cell_values(result: Path) -> tuple[CellValues, ...]:
    """Give what each cell of a result measured, one value for each repetition.

    Runs of one cell in one block share its disturbances: their mean is one value. Of imported files, the
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
        If its files cannot be read.
    """
    plan = read_plan(result / "plan.json")
    if plan.study == _IMPORTED:
        return tuple(_imported(result, plan))
    gathered: dict[tuple[int, str, str], list[tuple[Place, float]]] = {}
    for cell, place, (metric, unit, value) in _values(result, plan):
        if not plan.is_twin(cell) and np.isfinite(value):
            gathered.setdefault((cell, metric, unit), []).append((place, value))
    found = []
    for (cell, metric, unit), values in sorted(gathered.items(), key=lambda each: each[0][0]):
        levels, operations = comparable_levels(plan.study, plan.cells[cell].levels)
        blocks = _means([(block, value) for (block, _), value in values]) / operations
        # Workers of one launch are executed side by side.
        launches = _means(values) / operations if plan.options.get("mode") == _IMPORT else None
        shown = unit if operations == 1 else f"{unit} per operation"
        found.append(CellValues(levels, metric, shown, blocks, launches))
    return tuple(found)


def _means(values: Iterable[tuple[Unit, float]]) -> NDArray[np.float64]:
    """Give the mean of each unit, in the order of the units."""
    units: dict[Unit, list[float]] = {}
    for unit, value in values:
        units.setdefault(unit, []).append(value)
    return np.array([np.mean(found) for _, found in sorted(units.items(), key=itemgetter(0))])


def _imported(result: Path, plan: Plan) -> Iterator[CellValues]:
    """Give what each cell of imported files measured; launches of one file are independent of each other."""
    samples = [sample for sample in read_samples(result, plan) if sample.metric not in NOT_OBSERVED]
    observed = [
        sample for sample in samples if sample.unit in TIMES or sample.unit == _BYTES or is_rate(sample.unit)
    ]
    for sample in observed or samples:
        yield CellValues(
            sample.levels, sample.metric, sample.unit, sample.means("block"), launches=sample.means("run")
        )


def _values(result: Path, plan: Plan) -> Iterator[tuple[int, Place, Value]]:
    """Give cell, place and one value of each run."""
    columns = ["run_id", "cell", "block", "batch", "attempt", "iteration", "status", "peak_memory_bytes"]
    runs = read_runs(result).select(columns).to_pylist()
    # `steelyard compare --ignore-failure` counts failed runs like any other.
    counts_all = plan.study == _COMPARISON and bool(plan.options.get("ignores_failure"))
    complete = [row for row in runs if counts_all or row["status"] == "completed"]
    if (result / TRACES_NAME).is_dir():
        for row in complete:
            folder = result / TRACES_NAME / files_name(row["batch"], row["attempt"])
            yield from ((row["cell"], _place(row), value) for value in _of_files(folder))
        return
    metric = plan.options.get("metric")
    if plan.study == _COMPARISON:
        complete = [row for row in complete if plan.cells[row["cell"]].levels.get("phase") == "measure"]
    if plan.study == _COMPARISON and metric == "memory":
        for row in complete:
            if row["peak_memory_bytes"] is not None:
                yield row["cell"], _place(row), ("peak memory", _BYTES, float(row["peak_memory_bytes"]))
        return
    families = ((f"outside-{metric}",),) if plan.study == _COMPARISON else _FAMILIES
    yield from _of_measurements(result, families, {row["run_id"]: row for row in complete})


def _place(row: Mapping[str, int]) -> Place:
    return row["block"], row["iteration"]


def _of_measurements(
    result: Path, families: Sequence[tuple[str, ...]], runs: Mapping[str, Mapping[str, int]]
) -> Iterator[tuple[int, Place, Value]]:
    table = read_measurements(result).select(["run_id", "phase", "metric", "value", "unit"])
    table = table.filter(pc.equal(table["phase"], "measure"))
    present = set(pc.unique(table["metric"]).to_pylist())
    family = next((each for each in families if present & set(each)), ())
    grouped = table.filter(pc.is_in(table["metric"], pa.array(family, pa.string()))).group_by(
        ["run_id", "metric", "unit"], use_threads=False
    )
    for row in grouped.aggregate([("value", "mean")]).to_pylist():
        run = runs.get(row["run_id"])
        if run is not None:
            is_seconds = row["unit"] == "s"
            value = row["value_mean"] * (NS_PER_S if is_seconds else 1)
            yield run["cell"], _place(run), (row["metric"], _NS if is_seconds else row["unit"], value)


def _of_files(folder: Path) -> Iterator[Value]:
    """Give the values of a run that left files: an experiment of replication, or a trial of colocation."""
    if (folder / EXPERIMENT_FILE).exists() and (folder / HEADER_FILE).exists():
        run = read_run(folder)
        if run.header.get("outcome") != "failed":
            yield from _of_experiment(run)
    elif (folder / "trial.json").exists():
        yield from _of_trial(folder)


def _of_experiment(run: ExperimentRun) -> Iterator[Value]:
    if (run.folder / JMH_FILE).exists():
        yield from _of_jmh(run.folder / JMH_FILE)
    if run.has("calls"):
        durations = run.table("calls")["duration_ns"].to_numpy()
        parameters = (run.asked.get("configuration") or {}).get("parameters") or {}
        measured = durations[int(parameters.get("warm_up_calls") or 0) :]
        yield from _latencies("call", measured)
    if run.has("requests"):
        requests = run.table("requests")
        begin = int(run.header.get("measure_start_ns") or 0)
        intended, received = (requests[name].to_numpy() for name in ("intended_ns", "received_ns"))
        status, operation = (
            requests["status"].to_numpy(),
            requests["operation"].to_numpy(zero_copy_only=False),
        )
        good = (intended >= begin) & (status >= _SUCCESS.start) & (status < _SUCCESS.stop)
        for name in sorted(set(operation[good])):
            chosen = good & (operation == name)
            yield from _latencies(str(name), received[chosen] - intended[chosen])


def _of_jmh(path: Path) -> Iterator[Value]:
    try:
        benchmarks = json.loads(path.read_bytes())
        for each in benchmarks:
            primary = each["primaryMetric"]
            yield (
                str(each["benchmark"]).rpartition(".")[2],
                str(primary["scoreUnit"]),
                float(primary["score"]),
            )
    except (ValueError, KeyError, TypeError) as error:
        message = f"`{path}` is no result of JMH: {error}"
        raise DataError(message, hint="repeat the run", code="experiment.file") from error


def _of_trial(folder: Path) -> Iterator[Value]:
    trial = read_trial(folder)
    begin = int(trial.header.get("best_effort_start_ns") or 0)
    end = int(trial.header.get("best_effort_stop_ns") or 0)
    requests = trial.requests
    intended = requests["intended_ns"].astype(np.int64)
    latency = requests["received_ns"].astype(np.int64) - intended
    answered = requests["received_ns"] > 0
    if 0 < begin < end:
        yield from _latencies("before best-effort", latency[answered & (intended < begin)])
        yield from _latencies(
            "beside best-effort", latency[answered & (begin <= intended) & (intended < end)]
        )
    else:
        yield from _latencies("latency", latency[answered])


def _latencies(name: str, values_ns: NDArray[np.int64]) -> Iterator[Value]:
    if values_ns.size:
        for label, percent in _PERCENTILES.items():
            yield f"{name}, {label}", _NS, float(np.percentile(values_ns, percent))
