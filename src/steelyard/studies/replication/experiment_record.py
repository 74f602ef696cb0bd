"""The files of one run of a replication experiment: what was asked, what happened, every single value.

A run is one launch of an experiment's programs on its devices; the conductor
(``python -m steelyard.studies.replication.experiments FOLDER``) reads ``experiment.json`` in the folder and
leaves the rest.

``experiment.json``
    What was asked for: `format` (``steelyard/experiment/1``), `experiment` (``e1``, ``e2``, ``e3``,
    ``e4`` or ``causes``), `configuration` (name of what is measured, and under `parameters` what the
    experiment's program is given), `setting` (`name`, and `roles`: for each role `device`, `storage` and
    `container`, the name of a container technology or null), `devices` (the devices by name, as the file
    of devices describes them), `block` (number of the repetition, from 1) and `seed`.
``header.json``
    What happened: `format`, `is_complete`, `outcome` (``completed``; ``failed`` with a `reason`: a
    benchmark that does not reach its throughput is a result; ``broken`` with a `reason`: this is no
    result), `clock` (``monotonic``), `start_ns`, `measure_start_ns`, `end_ns`, `devices` (facts of each:
    host, kernel, processor, limits that were applied, and `is_played` where a device is a part of another
    one), `roles` (by role: `device`, `address`, `container`, `network` and what its storage is),
    `software` (name to version), `applied` and `missing` (lists: what was set, and what could not be had,
    with the reason), and whatever else the experiment says of itself.
``jmh.json``
    Result file of JMH of this run, as JMH wrote it (e1).
``calls.parquet``
    `CALLS`: every measured call, in order (e2, causes).
``requests.parquet``
    `REQUESTS`: every scheduled request, in order of intended time (e3, e4).
``pauses.parquet``
    `PAUSES`: pauses of the run time system, by its own log (Java's garbage collection and safepoints).
``switches.parquet``
    `SWITCHES`: when threads of the program did not hold their CPU, and who did.
``migrations.parquet``
    `MIGRATIONS`: when threads of the program changed CPU.
``samples.parquet``
    `SAMPLES`: state of the host, every few milliseconds; counters since boot.
``log.ROLE.txt``
    End of what the program of a role wrote.

All stamps are of the monotonic clock of the device on which they were taken [ns]. Files that an
experiment or a host does not give are absent, and `missing` says why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import DataError
from steelyard.studies.replication.experiments.files import (
    CALLS,
    EXPERIMENT_FILE,
    FORMAT,
    HEADER_FILE,
    JMH_FILE,
    MIGRATIONS,
    PAUSES,
    REQUESTS,
    SAMPLES,
    SWITCHES,
    TABLES,
    write_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "CALLS",
    "EXPERIMENT_FILE",
    "FORMAT",
    "HEADER_FILE",
    "JMH_FILE",
    "MIGRATIONS",
    "PAUSES",
    "REQUESTS",
    "SAMPLES",
    "SWITCHES",
    "TABLES",
    "ExperimentRun",
    "read_run",
    "write_table",
]
_HINT: Final = "the file is damaged, or the run was interrupted: repeat it"


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """What one run left.

    Parameters
    ----------
    folder : Path
        Its folder.
    asked : Mapping
        ``experiment.json``.
    header : Mapping
        ``header.json``.
    """

    folder: Path
    asked: Mapping[str, Any]
    header: Mapping[str, Any]

    def has(self, name: str) -> bool:
        """Whether the run left a table, one of `TABLES`."""
        return (self.folder / f"{name}.parquet").is_file()

    def table(self, name: str) -> pa.Table:
        """Read a table, one of `TABLES`; empty where the run left none.

        Raises
        ------
        DataError
            If it cannot be read or has other columns.
        """
        schema = TABLES[name]
        path = self.folder / f"{name}.parquet"
        if not path.is_file():
            return schema.empty_table()
        try:
            table: pa.Table = pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            message = f"cannot read `{path}`: {error}"
            raise DataError(message, hint=_HINT, code="experiment.table") from error
        if table.schema.names != schema.names or table.schema.types != schema.types:
            found, expected = (", ".join(each.names) for each in (table.schema, schema))
            message = f"`{path}` has the columns {found}; expected {expected}, with their types"
            raise DataError(message, hint=_HINT, code="experiment.columns")
        return table


def read_run(folder: Path) -> ExperimentRun:
    """Read the folder of a run.

    Raises
    ------
    DataError
        If ``experiment.json`` or ``header.json`` is missing, unreadable or of another format.
    """
    documents = [_read_json(folder / name) for name in (EXPERIMENT_FILE, HEADER_FILE)]
    for name, content in zip((EXPERIMENT_FILE, HEADER_FILE), documents, strict=True):
        if content.get("format") != FORMAT:
            message = f"`{folder / name}` has the format `{content.get('format')}`; known: `{FORMAT}`"
            raise DataError(
                message, hint="it was written by another version of Steelyard", code="experiment.format"
            )
    return ExperimentRun(folder, *documents)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"cannot read `{path}`: {getattr(error, 'strerror', None) or error}"
        raise DataError(message, hint=_HINT, code="experiment.file") from error
    if not isinstance(content, dict):
        message = f"`{path}` is not a JSON object"
        raise DataError(message, hint=_HINT, code="experiment.file")
    return content
