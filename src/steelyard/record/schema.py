"""Schemas of the recorded tables: columns, types, units.

Version history. A number is raised when a column changes its meaning or goes away; new
columns alone do not raise it.

``steelyard/runs``
    1. first.
``steelyard/attempts``
    1. first: the columns of runs, and ``attempt_state``.
``steelyard/measurements``
    1. first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from steelyard.model.run_outcome import PADDING, RANDOMISED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RUNS_SCHEMA: Final = "steelyard/runs/1"
ATTEMPTS_SCHEMA: Final = "steelyard/attempts/1"
MEASUREMENTS_SCHEMA: Final = "steelyard/measurements/1"

SCHEMA_KEY: Final = b"steelyard.schema"
PLAN_KEY: Final = b"steelyard.plan_id"
GENERATION_KEY: Final = b"steelyard.generation"
"""Hash of what the tables were made from; equal in all tables of one result folder."""

SOURCE_KEY: Final = b"steelyard.source"
"""File of the same folder that the table was made from; absent where there is none."""

METRICS: Final = (
    "wall_ns",
    "cpu_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "cpu_rusage_ns",
    "cpu_cgroup_ns",
    "peak_memory_bytes",
    "peak_resident_bytes",
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
    "run_delay_ns",
    "cpu_pressure_ns",
    "memory_pressure_ns",
    "io_pressure_ns",
    "throttled_ns",
    "steal_ns",
    "launch_ns",
    "reap_ns",
    "total_ns",
    "output_bytes",
)
"""Metrics of the launcher, in the order of its model."""


def unit_of(column: str) -> str | None:
    """Give the unit of a numeric column from its name.

    Examples
    --------
    >>> unit_of("wall_ns"), unit_of("migrations")
    ('ns', 'count')
    """
    if column.endswith("_ns"):
        return "ns"
    if column.endswith("_bytes"):
        return "bytes"
    return "count" if column in METRICS else None


def _field(name: str, kind: pa.DataType, text: str, *, nullable: bool = True) -> pa.Field:
    metadata = {"description": text}
    unit = unit_of(name)
    if unit is not None:
        metadata["unit"] = unit
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


_BEFORE_FACTORS: Final = (
    _field("run_id", pa.string(), "unique in the folder: batch.attempt.worker.iteration", nullable=False),
    _field("study", pa.string(), "name of the study", nullable=False),
    _field("cell", pa.int32(), "number of the cell in plan.json", nullable=False),
    _field("block", pa.int32(), "block, from 0", nullable=False),
    _field("batch", pa.int32(), "batch, from 0", nullable=False),
    _field("attempt", pa.int32(), "attempt at the batch, from 1", nullable=False),
    _field("position", pa.int32(), "position of the batch in the random order", nullable=False),
    _field("worker", pa.int32(), "parallel worker, from 0", nullable=False),
    _field("iteration", pa.int32(), "launch of the worker, in order", nullable=False),
    _field("host_id", pa.string(), "host that executed the run; empty where unknown", nullable=False),
)

_AFTER_FACTORS: Final = (
    _field("status", pa.string(), "how the run ended", nullable=False),
    _field("exit_code", pa.int32(), "exit code, when the program chose one"),
    _field("signal", pa.int32(), "signal that ended the first process"),
    _field("limit", pa.string(), "limit that ended the run"),
    _field("start_ns", pa.int64(), "exec, CLOCK_MONOTONIC"),
    _field("end_ns", pa.int64(), "exit, CLOCK_MONOTONIC"),
    _field("start_utc_ns", pa.int64(), "exec in UTC since 1970"),
    *(
        field
        for metric in METRICS
        for field in (
            _field(metric, pa.int64(), f"{metric} as measured by the launcher; null when missing"),
            _field(f"{metric}_source", pa.string(), f"mechanism that gave {metric}, or would have"),
        )
    ),
    _field("stamp_source", pa.string(), "mechanism of the start and end stamps"),
    _field("cgroup", pa.string(), "v2, hybrid, v1 or none"),
    _field("flags", pa.list_(pa.string()), "remarks; nothing is removed because of one"),
    _field("message", pa.string(), "what the launcher had to say"),
    _field("worker_label", pa.string(), "name of the worker in an imported file"),
)

RUN_COLUMNS: Final = tuple(field.name for field in (*_BEFORE_FACTORS, *_AFTER_FACTORS))
"""Columns of every table of runs; the columns between ``host_id`` and ``status`` are the factors."""

_LAYOUT: Final = (
    _field(PADDING, pa.int32(), "bytes added to the environment, which move the stack"),
    _field(RANDOMISED, pa.bool_(), "whether the kernel drew the addresses of the run"),
)
"""Columns behind the others where a plan draws the layout of each run."""

KNOWN_COLUMNS: Final = frozenset({*RUN_COLUMNS, PADDING, RANDOMISED, "attempt_state"})
"""Every column of a table of runs that is no factor."""

_MEASUREMENT_FIELDS: Final = (
    _field("run_id", pa.string(), "run of the runs table", nullable=False),
    _field("iteration", pa.int32(), "timed section inside the run, from 1", nullable=False),
    _field("phase", pa.string(), "warmup or measure", nullable=False),
    _field("metric", pa.string(), "name of the metric", nullable=False),
    _field("value", pa.float64(), "value in the unit of the row", nullable=False),
    _field("unit", pa.string(), "unit of the value", nullable=False),
    _field("printed", pa.string(), "digits as the source printed them, where the value was text"),
)


def table_metadata(schema: str, plan_id: str, generation: str) -> dict[bytes, bytes]:
    """Give the metadata every recorded file carries."""
    return {SCHEMA_KEY: schema.encode(), PLAN_KEY: plan_id.encode(), GENERATION_KEY: generation.encode()}


def runs_schema(
    factors: Iterable[str], metadata: Mapping[bytes, bytes], *, draws_layouts: bool = False
) -> pa.Schema:
    """Give the schema of ``runs.parquet``: one text column per factor between the fixed ones."""
    levels = [_field(name, pa.string(), f"level of factor {name}", nullable=False) for name in factors]
    layout = _LAYOUT if draws_layouts else ()
    return pa.schema([*_BEFORE_FACTORS, *levels, *_AFTER_FACTORS, *layout], metadata=dict(metadata))


def attempts_schema(
    factors: Iterable[str], metadata: Mapping[bytes, bytes], *, draws_layouts: bool = False
) -> pa.Schema:
    """Give the schema of ``attempts.parquet``."""
    state = _field("attempt_state", pa.string(), "disturbed, interrupted or open", nullable=False)
    return runs_schema(factors, metadata, draws_layouts=draws_layouts).append(state)


def measurements_schema(metadata: Mapping[bytes, bytes]) -> pa.Schema:
    """Give the schema of ``measurements/values.parquet``."""
    return pa.schema(list(_MEASUREMENT_FIELDS), metadata=dict(metadata))


def factor_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Give the factors of a runs table in their order."""
    return tuple(name for name in schema.names if name not in KNOWN_COLUMNS)
