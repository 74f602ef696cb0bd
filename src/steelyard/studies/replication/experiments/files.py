"""Names, columns and writing of the files of a run, which `experiment_record` describes and reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = "steelyard/experiment/1"
EXPERIMENT_FILE: Final = "experiment.json"
HEADER_FILE: Final = "header.json"
JMH_FILE: Final = "jmh.json"


def _schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


CALLS: Final = _schema(("start_ns", pa.int64()), ("duration_ns", pa.int64()))
"""Begin of the call and its response time."""

REQUESTS: Final = _schema(
    ("operation", pa.string()),
    ("intended_ns", pa.int64()),
    ("sent_ns", pa.int64()),
    ("received_ns", pa.int64()),
    ("status", pa.int32()),
)
"""What was asked for, when it was to be sent, was sent, was answered (0: never), and the status of the answer
(that of HTTP; 0: none). Latency counts from `intended_ns`."""

PAUSES: Final = _schema(
    ("start_ns", pa.int64()), ("duration_ns", pa.int64()), ("kind", pa.string()), ("cause", pa.string())
)
"""Begin and length of a pause, what it was (``gc``, ``safepoint``, ...) and its cause in the log's words."""

SWITCHES: Final = _schema(
    ("thread", pa.string()),
    ("cpu", pa.int32()),
    ("off_ns", pa.int64()),
    ("on_ns", pa.int64()),
    ("is_preempted", pa.bool_()),
    ("next_name", pa.string()),
    ("next_process", pa.int32()),
)
"""Name of the thread, the CPU it left, when it left and came back, whether it was still runnable, and the
name and process id of whoever came next on that CPU (``swapper`` with 0: nobody)."""

MIGRATIONS: Final = _schema(
    ("thread", pa.string()), ("time_ns", pa.int64()), ("from_cpu", pa.int32()), ("to_cpu", pa.int32())
)
"""Name of the thread, when it was moved, and between which CPUs."""

SAMPLES: Final = _schema(
    ("time_ns", pa.int64()),
    ("steal_ns", pa.int64()),
    ("interrupt_ns", pa.int64()),
    ("cpu_pressure_ns", pa.int64()),
    ("io_pressure_ns", pa.int64()),
    ("memory_pressure_ns", pa.int64()),
    ("running_threads", pa.int32()),
)
"""Stamp; time stolen by the hypervisor and spent in interrupts, summed over CPUs; time during which some task
waited for a CPU, for input and output, for memory (``/proc/pressure``; -1: not offered); runnable threads."""

TABLES: Final[dict[str, pa.Schema]] = {
    "calls": CALLS,
    "requests": REQUESTS,
    "pauses": PAUSES,
    "switches": SWITCHES,
    "migrations": MIGRATIONS,
    "samples": SAMPLES,
}


def write_table(folder: Path, name: str, columns: Mapping[str, object]) -> None:
    """Write one of `TABLES` of a run, small and lossless."""
    schema = TABLES[name]
    table = pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    pq.write_table(
        table,
        folder / f"{name}.parquet",
        compression="zstd",
        use_dictionary=texts,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        row_group_size=1 << 18,
    )
