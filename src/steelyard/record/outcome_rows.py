"""From a run outcome of the launcher to rows of the recorded tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa

from steelyard.model.run_outcome import PADDING, RANDOMISED
from steelyard.record.schema import METRICS
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.model.plan import Batch, Plan
    from steelyard.record.ledger_reader import LedgerRow
    from steelyard.record.table_file import Value

OUTSIDE_METRICS: Final = {"outside-cpu": "cpu_ns", "outside-wall": "wall_ns"}
"""View from outside by metric: what the launcher or the isolation measured, never what a program says."""

START_METRIC: Final = "start-wall"
COUNTER_PREFIX: Final = "counter:"
OWN_PREFIX: Final = "own:"
"""Before a name of the program's own that Steelyard gives to a value of another origin."""

_TAKEN: Final = ("outside-", COUNTER_PREFIX, OWN_PREFIX)
"""Beginnings of names that are not the program's to give."""


def run_id_of(batch: int, attempt: int, worker: int, iteration: int) -> str:
    """Give the id of a run; ids of one cell sort in the order of execution.

    Examples
    --------
    >>> run_id_of(12, 1, 0, 3)
    '000012.01.000.000003'
    """
    return f"{batch:06d}.{attempt:02d}.{worker:03d}.{iteration:06d}"


def run_identity(
    plan: Plan, batch: Batch, *, attempt: int, worker: int, iteration: int, host_id: str
) -> dict[str, Value]:
    """Give the columns that say which run a row of ``runs.parquet`` is."""
    return {
        "run_id": run_id_of(batch.number, attempt, worker, iteration),
        "study": plan.study,
        "cell": batch.cell,
        "block": batch.block,
        "batch": batch.number,
        "attempt": attempt,
        "position": batch.number,
        "worker": worker,
        "iteration": iteration,
        "host_id": host_id,
        **dict.fromkeys(plan.factors, ""),
        **plan.cells[batch.cell].levels,
    }


def run_columns(plan: Plan, numbers: NDArray[np.int64], iterations: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Give the columns of `run_identity` for many runs of an import, each the first attempt of one worker.

    Parameters
    ----------
    plan : Plan
        Their plan.
    numbers : ndarray
        Number of the batch, of its block and of its cell, shape (n, 3).
    iterations : ndarray
        Launch of each run, shape (n,), from 1.
    """
    size = iterations.size
    batch, block, cell = numbers.T
    padded = pl.select(
        pl.concat_str(
            pl.lit(pl.Series(batch)).cast(pl.String).str.zfill(6),
            pl.lit(".01.000."),
            pl.lit(pl.Series(iterations)).cast(pl.String).str.zfill(6),
        )
    ).to_series()
    known, places = np.unique(cell, return_inverse=True)
    texts = {
        factor: pa.array([plan.cells[each].levels.get(factor, "") for each in known.tolist()]).take(
            pa.array(places)
        )
        for factor in plan.factors
    }
    return {
        "run_id": padded.to_arrow().cast(pa.string()),
        "study": pa.repeat(plan.study, size),
        "cell": pa.array(cell),
        "block": pa.array(block),
        "batch": pa.array(batch),
        "attempt": pa.repeat(1, size),
        "position": pa.array(batch),
        "worker": pa.repeat(0, size),
        "iteration": pa.array(iterations),
        "host_id": pa.repeat("", size),
        **texts,
        "flags": pa.array([[]] * size, pa.list_(pa.string())),
        "worker_label": pa.repeat("", size),
    }


def run_row(
    row: LedgerRow, plan: Plan, batch: Batch, host_id: str, flags: Sequence[str] = ()
) -> dict[str, Value]:
    """Give the row of a run in ``runs.parquet``, with the flags of its batch behind its own."""
    outcome = row.outcome
    found: dict[str, Value] = {
        **run_identity(
            plan,
            batch,
            attempt=row.attempt,
            worker=row.worker,
            iteration=row.iteration,
            host_id=host_id,
        ),
        "stamp_source": outcome.mechanism.stamps,
        "cgroup": outcome.mechanism.cgroup,
        "flags": [*outcome.flags, *flags],
    }
    for name in ("status", "exit_code", "signal", "limit", "message", "start_ns", "end_ns", "start_utc_ns"):
        found[name] = getattr(outcome, name)
    for metric in METRICS:
        quantity = outcome.quantities.get(metric)
        found[metric] = None if quantity is None else quantity.value
        found[f"{metric}_source"] = None if quantity is None else quantity.source
    if PADDING in outcome.quantities:
        found[PADDING] = outcome.value(PADDING)
        found[RANDOMISED] = bool(outcome.value(RANDOMISED))
    return found


def own_metric(name: str) -> str:
    """Give the name under which a program's own metric is recorded: never one of another origin.

    Examples
    --------
    >>> own_metric("wall"), own_metric("outside-wall"), own_metric("own:outside-wall")
    ('wall', 'own:outside-wall', 'own:own:outside-wall')
    """
    is_taken = name.startswith(_TAKEN) or name in {START_METRIC, *METRICS}
    return f"{OWN_PREFIX}{name}" if is_taken else name


def measurement_rows(row: LedgerRow, run_id: str) -> Iterator[dict[str, Value]]:
    """Give the rows of a run in ``measurements/values.parquet``.

    These are the program's own lines (see `own_metric`), the view from outside (``outside-cpu``,
    ``outside-wall``: the isolation's own figures where it gives some, else the launcher's), the start
    in UTC (``start-wall``), and counters as ``counter:<name>``.
    """
    outcome = row.outcome
    for line in outcome.own:
        yield _measurement(
            run_id,
            own_metric(line.metric),
            line.value,
            line.unit,
            iteration=line.iteration,
            phase=line.phase,
        )
    for metric, quantity in OUTSIDE_METRICS.items():
        value = outcome.value(quantity)
        if value is not None:
            yield _measurement(run_id, metric, value, "ns")
    start_utc_ns = outcome.start_utc_ns
    if start_utc_ns is not None:
        # float64 holds a date to 0.2 us; the text keeps all digits.
        text = f"{start_utc_ns // NS_PER_S}.{start_utc_ns % NS_PER_S:09d}"
        yield {**_measurement(run_id, START_METRIC, float(text), "s"), "printed": text}
    for name, counter in outcome.counters.items():
        if counter.value is not None:
            yield _measurement(run_id, f"{COUNTER_PREFIX}{name}", counter.value, "count")


def _measurement(
    run_id: str, metric: str, value: float, unit: str, *, iteration: int = 1, phase: str = "measure"
) -> dict[str, Value]:
    return {
        "run_id": run_id,
        "iteration": iteration,
        "phase": phase,
        "metric": metric,
        "value": float(value),
        "unit": unit,
    }
