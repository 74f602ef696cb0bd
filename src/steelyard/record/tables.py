"""The recorded tables: from the ledger to Parquet, and back into memory."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import DataError
from steelyard.model.plan import LAYOUT_OPTION, RANDOM_LAYOUT, Batch, Plan, read_plan
from steelyard.record.interim_log import CANDIDATES_NAME, LOOKS_NAME
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.outcome_rows import measurement_rows, run_row
from steelyard.record.provenance import host_id_of
from steelyard.record.schema import (
    ATTEMPTS_SCHEMA,
    GENERATION_KEY,
    MEASUREMENTS_SCHEMA,
    RUNS_SCHEMA,
    SOURCE_KEY,
    attempts_schema,
    measurements_schema,
    runs_schema,
    table_metadata,
)
from steelyard.record.seal import seal_tables
from steelyard.record.table_file import (
    TableWriter,
    Value,
    ahead,
    count_rows,
    read_batches,
    read_metadata,
    read_table,
    require_columns,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

RUNS_NAME: Final = "runs.parquet"
ATTEMPTS_NAME: Final = "attempts.parquet"
MEASUREMENTS_FOLDER: Final = "measurements"
MEASUREMENTS_NAME: Final = "measurements/values.parquet"
DISTURBED_FLAG: Final = "disturbed_batch"
"""Flag of the runs of a batch during which the machine was not quiet."""
DISTURBED_STATE: Final = "disturbed"
"""State of an attempt that was repeated because it was disturbed."""


class ResultTables:
    """Writes the tables of one result folder together; rows come sorted by cell, run, iteration.

    Parameters
    ----------
    result : Path
        Result folder.
    plan : Plan
        Frozen plan the rows belong to.
    generation : str
        Hash of what the rows are made from.
    source : str
        File of the folder that they are made from; empty where there is none.
    coded : collection of str
        Columns of measurements whose texts repeat often, see `TableWriter`.
    """

    def __init__(
        self, result: Path, plan: Plan, generation: str, source: str = "", *, coded: Collection[str] = ()
    ) -> None:
        factors = tuple(plan.factors)
        draws_layouts = plan.options.get(LAYOUT_OPTION) == RANDOM_LAYOUT

        def metadata(schema: str) -> dict[bytes, bytes]:
            origin = {SOURCE_KEY: source.encode()} if source else {}
            return table_metadata(schema, plan.id, generation) | origin

        with ExitStack() as stack:
            self._measurements = stack.enter_context(
                TableWriter(
                    result / MEASUREMENTS_NAME,
                    measurements_schema(metadata(MEASUREMENTS_SCHEMA)),
                    coded=coded,
                )
            )
            self._attempts = stack.enter_context(
                TableWriter(
                    result / ATTEMPTS_NAME,
                    attempts_schema(factors, metadata(ATTEMPTS_SCHEMA), draws_layouts=draws_layouts),
                )
            )
            self._runs = stack.enter_context(
                TableWriter(
                    result / RUNS_NAME,
                    runs_schema(factors, metadata(RUNS_SCHEMA), draws_layouts=draws_layouts),
                )
            )
            self._stack = stack.pop_all()

    def add(self, run: Mapping[str, Value], measurements: Iterable[Mapping[str, Value]]) -> None:
        """Add a run of a complete batch with everything it measured."""
        self._runs.add(run)
        for row in measurements:
            self._measurements.add(row)

    def add_columns(self, runs: Mapping[str, pa.Array], measurements: Iterable[pa.Table]) -> None:
        """Add runs of complete batches, by column, with everything they measured, as tables of their schema.

        Of a run's columns the absent ones are null.
        """
        self._runs.add_columns(runs)
        for table in ahead(measurements):
            self._measurements.add_table(table)

    def add_interrupted(self, run: Mapping[str, Value], state: str) -> None:
        """Add a run of an attempt that was not completed."""
        self._attempts.add({**run, "attempt_state": state})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def write_tables(result: Path) -> None:
    """Write ``runs.parquet``, ``attempts.parquet`` and ``measurements/values.parquet`` from the ledger.

    Only runs of the complete attempt of each batch are in the first and the last; runs of
    interrupted attempts are kept in the second. Hashes go to ``provenance.json`` if there is one.

    Parameters
    ----------
    result : Path
        Result folder with ``plan.json`` and ``ledger.sqlite``; may be in the middle of a study.

    Raises
    ------
    DataError
        If the plan or the ledger is absent or damaged, they do not belong together, or a table
        cannot be written.
    """
    plan = read_plan(result / "plan.json")
    host_id = host_id_of(result)
    with LedgerReader(result / "ledger.sqlite") as ledger:
        batches = _batches(plan, ledger)
        completed, disturbed, hosts = ledger.completed_attempts(), ledger.disturbances(), ledger.hosts()
        generation = _digest(plan.id, completed)
        with ResultTables(result, plan, generation, ledger.path.name) as tables:
            for batch in batches:
                for row in ledger.outcomes(batch.number):
                    attempt = (row.batch, row.attempt)
                    is_disturbed = attempt in disturbed
                    flags = (DISTURBED_FLAG,) * is_disturbed
                    run = run_row(row, plan, batch, hosts.get(attempt, host_id), flags)
                    if completed.get(batch.number) == row.attempt:
                        tables.add(run, measurement_rows(row, str(run["run_id"])))
                    else:
                        tables.add_interrupted(run, DISTURBED_STATE if is_disturbed else row.state)
    seal_tables(result)


def _batches(plan: Plan, ledger: LedgerReader) -> list[Batch]:
    """Give the batches with outcomes, by cell and number."""
    if ledger.plan_id not in {None, plan.id}:
        message = f"`{ledger.path}` contains runs of a different plan than the `plan.json` beside it"
        raise DataError(message, hint="do not mix files from two result folders", code="data.other-plan")
    known = {batch.number: batch for batch in plan.batches}
    found = ledger.batches()
    strange = [number for number in found if number not in known]
    if strange:
        message = f"`{ledger.path}` contains batch {strange[0]}, which the `plan.json` beside it lacks"
        raise DataError(message, hint="do not mix files from two result folders", code="data.other-plan")
    return sorted((known[number] for number in found), key=lambda batch: (batch.cell, batch.number))


def _digest(plan_id: str, completed: Mapping[int, int]) -> str:
    text = json.dumps([plan_id, sorted(completed.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def read_runs(result: Path) -> pa.Table:
    """Read ``runs.parquet``: runs of complete batches, sorted by cell, run, iteration.

    Raises
    ------
    DataError
        If it is absent, damaged or of another schema.
    """
    return _read_runs_like(result / RUNS_NAME, RUNS_SCHEMA, runs_schema((), {}))


def run_batches(
    result: Path, columns: Sequence[str], cells: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read some columns of ``runs.parquet`` a part at a time: of 10^7 runs all are gigabytes.

    Parameters
    ----------
    result : Path
        Result folder.
    columns : sequence of str
        Names of the columns.
    cells : collection of int or None
        The cells whose runs are wanted, where ``cell`` is among the columns; ``None`` for all.

    Raises
    ------
    DataError
        As `read_runs`.
    """
    expected = runs_schema((), {})
    wanted = pa.schema([expected.field(name) for name in columns])
    path = result / RUNS_NAME
    if cells is None:
        yield from read_batches(path, RUNS_SCHEMA, wanted)
        return
    chosen = np.unique(np.fromiter(cells, np.int32, len(cells)))
    within = ("cell", int(chosen[0]), int(chosen[-1])) if chosen.size else ("cell", 0, -1)
    for part in read_batches(path, RUNS_SCHEMA, wanted, within=within):
        yield part.filter(pa.array(np.isin(part["cell"].to_numpy(), chosen)))


def count_runs(result: Path) -> int:
    """Count the rows of ``runs.parquet``, without reading them.

    Raises
    ------
    DataError
        If it is absent or damaged.
    """
    return count_rows(result / RUNS_NAME, RUNS_SCHEMA)


def read_attempts(result: Path) -> pa.Table:
    """Read ``attempts.parquet``: runs of attempts that were not completed.

    Raises
    ------
    DataError
        If it is absent, damaged or of another schema.
    """
    return _read_runs_like(result / ATTEMPTS_NAME, ATTEMPTS_SCHEMA, attempts_schema((), {}))


def _read_runs_like(path: Path, name: str, expected: pa.Schema) -> pa.Table:
    table = read_table(path, name)
    require_columns(path, table, expected)
    return table


def read_measurements(result: Path) -> pa.Table:
    """Read all of ``measurements/``, in the order of the runs.

    Raises
    ------
    DataError
        If it is absent, damaged, of another schema, or was not written together with
        ``runs.parquet``.
    """
    paths = measurement_files(result)
    expected = measurements_schema({})
    tables = []
    for path in paths:
        table = read_table(path, MEASUREMENTS_SCHEMA)
        require_columns(path, table, expected)
        tables.append(table)
    require_one_generation(result, paths, [table.schema.metadata for table in tables])
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def count_lacking_batches(result: Path, plan: Plan) -> int:
    """Count the batches that the plan has and the tables do not.

    None lack of a comparison or bisection, which ends when settled, and of an import, which has no ledger.
    """
    ends_when_settled = any((result / name).exists() for name in (LOOKS_NAME, CANDIDATES_NAME))
    if ends_when_settled or not (result / LEDGER_NAME).exists():
        return 0
    recorded = set(pq.read_table(result / RUNS_NAME, columns=["batch"])["batch"].to_pylist())
    return sum(
        batch.number not in recorded for batch in plan.batches if plan.cell_of(batch).execution is not None
    )


def count_measurements(result: Path) -> int:
    """Count the rows of ``measurements/``, without reading them.

    Raises
    ------
    DataError
        If a file is absent or damaged.
    """
    return sum(count_rows(path, MEASUREMENTS_SCHEMA) for path in measurement_files(result))


def measurement_batches(
    result: Path, columns: Sequence[str], *, with_codes: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read some columns of ``measurements/`` a part at a time, in the order of the runs.

    Parameters
    ----------
    result : Path
        Result folder.
    columns : sequence of str
        Names of the columns.
    with_codes : bool
        Whether texts that repeat come as codes, see `read_batches`.

    Raises
    ------
    DataError
        As `read_measurements`.
    """
    paths = measurement_files(result)
    metadata = [read_metadata(path, MEASUREMENTS_SCHEMA) for path in paths]
    require_one_generation(result, paths, metadata)
    expected = measurements_schema({})
    wanted = pa.schema([expected.field(name) for name in columns])
    for path in paths:
        yield from read_batches(path, MEASUREMENTS_SCHEMA, wanted, with_codes=with_codes)


def measurement_files(result: Path) -> list[Path]:
    """Give the files of measurements; where there is none the one that is absent, which reading names."""
    return sorted((result / MEASUREMENTS_FOLDER).glob("*.parquet")) or [result / MEASUREMENTS_NAME]


def require_one_generation(
    result: Path, paths: Sequence[Path], found: Sequence[Mapping[bytes, bytes]]
) -> None:
    """Check that the metadata of measurements say that they belong to the runs."""
    wanted = read_metadata(result / RUNS_NAME, RUNS_SCHEMA).get(GENERATION_KEY)
    for path, metadata in zip(paths, found, strict=True):
        if metadata.get(GENERATION_KEY) != wanted:
            message = f"`{path}` and `{RUNS_NAME}` were not written together"
            hint = f"remove both; `steelyard analyse {result}` writes them again from the ledger"
            raise DataError(message, hint=hint, code="data.mixed-tables")
