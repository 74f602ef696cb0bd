"""Find the calls of a folder: of a study of replication, of one of its runs, or imported ones."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steelyard.analyse.peaks.run_peaks import CallSeries
from steelyard.analyse.series.result_series import NOT_OBSERVED
from steelyard.errors import DataError
from steelyard.record.schema import factor_columns
from steelyard.record.tables import MEASUREMENTS_NAME, read_measurements, read_runs
from steelyard.studies.replication.experiment_record import ExperimentRun, read_run
from steelyard.studies.replication.values.run_events import events_of
from steelyard.units import SECONDS_PER_UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

CALLS_NAME: Final = "calls.parquet"
_HINT: Final = (
    "`steelyard run replication` records calls; `steelyard import moobench FILE --out DIR` imports some"
)


def find_series(folder: Path, *, keep_warm_up: bool = False) -> list[list[CallSeries]]:
    """Give the runs of each cell, in order of the folders' names.

    The folder is that of a run, one that holds such folders at any depth, or the result of an import, whose
    calls are not told apart from those of a warm-up.

    Raises
    ------
    DataError
        If there are no calls.
    """
    found = sorted(path.parent for path in folder.rglob(CALLS_NAME)) if folder.is_dir() else []
    if found:
        series = [_recorded(read_run(each), keep_warm_up=keep_warm_up) for each in found]
    elif (folder / MEASUREMENTS_NAME).is_file():
        series = _imported(folder)
    else:
        message = f"`{folder}` has no calls: neither `{CALLS_NAME}` nor `{MEASUREMENTS_NAME}` exists"
        raise DataError(message, hint=_HINT, code="peaks.no-calls")
    cells: dict[tuple[tuple[str, str], ...], list[CallSeries]] = defaultdict(list)
    for each in series:
        cells[tuple(each.cell.items())].append(each)
    return list(cells.values())


def _recorded(run: ExperimentRun, *, keep_warm_up: bool) -> CallSeries:
    asked = run.asked
    configuration = asked.get("configuration", {})
    cell = {
        "experiment": str(asked.get("experiment", "")),
        "configuration": str(configuration.get("name", "")),
        "setting": str(asked.get("setting", {}).get("name", "")),
    }
    skipped = 0 if keep_warm_up else int(configuration.get("parameters", {}).get("warm_up_calls") or 0)
    is_watched = any(run.has(name) for name in ("switches", "pauses", "samples"))
    return CallSeries(
        cell,
        run.folder.name,
        partial(_read_calls, run.folder / CALLS_NAME, skipped),
        events=partial(events_of, run) if is_watched else None,
    )


def _read_calls(path: Path, skipped: int) -> Iterator[tuple[Whole, Whole]]:
    """Read begin and duration of the calls, a row group at a time."""
    try:
        with pq.ParquetFile(path) as file:
            left = min(skipped, max(file.metadata.num_rows - 1, 0))
            for batch in file.iter_batches(1 << 18, columns=["start_ns", "duration_ns"]):
                cut = min(left, batch.num_rows)
                left -= cut
                if cut < batch.num_rows:
                    yield batch["start_ns"].to_numpy()[cut:], batch["duration_ns"].to_numpy()[cut:]
    except (OSError, KeyError, ValueError) as error:
        message = f"cannot read `{path}`: {error}"
        raise DataError(
            message, hint="the file is damaged: repeat the run", code="experiment.table"
        ) from error


def _imported(folder: Path) -> list[CallSeries]:
    """Take every time of an import for a call; begins are sums of the durations before."""
    runs, measured = read_runs(folder), read_measurements(folder)
    measured = measured.filter(pc.is_in(measured["unit"], pa.array(list(SECONDS_PER_UNIT))))
    measured = measured.filter(pc.invert(pc.is_in(measured["metric"], pa.array(list(NOT_OBSERVED)))))
    labels = {row["run_id"]: row for row in runs.select(["run_id", *factor_columns(runs.schema)]).to_pylist()}
    found = []
    for (run_id, metric), part in _parts(measured):
        cell = {name: str(level) for name, level in labels[run_id].items() if name != "run_id"}
        factor = SECONDS_PER_UNIT[part["unit"][0].as_py()] / SECONDS_PER_UNIT["ns"]
        durations = np.rint(part["value"].to_numpy() * factor).astype(np.int64)
        name = f"run {run_id}" if metric == "response_time" else f"run {run_id}, {metric}"
        found.append(
            CallSeries({**cell, "metric": metric}, name, partial(_once, durations), is_stamped=False)
        )
    if not found:
        message = f"`{folder}` contains no times"
        raise DataError(message, hint=_HINT, code="peaks.no-calls")
    return found


def _parts(measured: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """Give the rows of each run and metric, in their order."""
    keys = np.array(
        [f"{run}\t{metric}" for run, metric in zip(*_columns(measured, "run_id", "metric"), strict=True)]
    )
    distinct, place = np.unique(keys, return_inverse=True)
    order = np.argsort(place, kind="stable")
    edges = np.searchsorted(place[order], np.arange(distinct.size + 1))
    for index, key in enumerate(distinct):
        run_id, _, metric = str(key).partition("\t")
        yield (run_id, metric), measured.take(order[edges[index] : edges[index + 1]])


def _columns(table: pa.Table, *names: str) -> list[list[str]]:
    return [table[name].to_pylist() for name in names]


def _once(durations: Whole) -> Iterator[tuple[Whole, Whole]]:
    yield np.cumsum(durations) - durations, durations
