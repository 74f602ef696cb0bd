"""What the experiments of a replication measured: what two results are compared by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.studies.replication.experiment_record import EXPERIMENT_FILE, HEADER_FILE, JMH_FILE, read_run
from steelyard.studies.run_values import gathered, latencies, values_of_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.analyse.comparison.agreement import CellValues
    from steelyard.model import Plan
    from steelyard.studies.replication.experiment_record import ExperimentRun
    from steelyard.studies.run_values import Value

_SUCCESS: Final = range(200, 300)


def cell_values(result: Path, plan: Plan) -> Iterator[CellValues]:
    """Give what each cell measured, one value for each repetition."""
    return gathered(plan, values_of_files(result, _of_folder))


def _of_folder(folder: Path) -> Iterator[Value]:
    if (folder / EXPERIMENT_FILE).exists() and (folder / HEADER_FILE).exists():
        run = read_run(folder)
        if run.header.get("outcome") != "failed":
            yield from _of_experiment(run)


def _of_experiment(run: ExperimentRun) -> Iterator[Value]:
    if (run.folder / JMH_FILE).exists():
        yield from _of_jmh(run.folder / JMH_FILE)
    if run.has("calls"):
        durations = run.table("calls")["duration_ns"].to_numpy()
        parameters = (run.asked.get("configuration") or {}).get("parameters") or {}
        measured = durations[int(parameters.get("warm_up_calls") or 0) :]
        yield from latencies("call", measured)
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
            yield from latencies(str(name), received[chosen] - intended[chosen])


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
        message = f"`{path}` is not a result of JMH: {error}"
        raise DataError(message, hint="repeat the run", code="experiment.file") from error
