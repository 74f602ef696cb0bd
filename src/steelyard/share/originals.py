"""Whether tables are what they were made from: the ledger."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import SteelyardError
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.record.schema import (
    ATTEMPTS_SCHEMA,
    MEASUREMENTS_SCHEMA,
    RUNS_SCHEMA,
    SOURCE_KEY,
)
from steelyard.record.seal import hash_file
from steelyard.record.table_file import read_metadata, read_table
from steelyard.record.tables import ATTEMPTS_NAME, MEASUREMENTS_NAME, RUNS_NAME, write_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES: Final = {
    RUNS_NAME: RUNS_SCHEMA,
    ATTEMPTS_NAME: ATTEMPTS_SCHEMA,
    MEASUREMENTS_NAME: MEASUREMENTS_SCHEMA,
}


@contextmanager
def private_copy(result: Path) -> Iterator[Path]:
    """Give a folder for a copy of a result; errors about the copy name the result instead.

    Parameters
    ----------
    result : Path
        What is copied.
    """
    with tempfile.TemporaryDirectory(prefix="steelyard-verify-") as folder:
        try:
            yield Path(folder)
        except SteelyardError as error:
            message, hint = (
                None if text is None else text.replace(folder, str(result))
                for text in (error.message, error.hint)
            )
            raise type(error)(str(message), hint=hint, code=error.code) from error


def compare_ledger(result: Path) -> Iterator[str]:
    """Make the tables again from the ledger and list those that are others.

    Parameters
    ----------
    result : Path
        Result folder; an imported one has no ledger, and nothing is said of it.

    Raises
    ------
    DataError
        If the ledger is damaged: an outcome does not match its checksum, or it is of another plan.
    """
    ledger = result / LEDGER_NAME
    if not ledger.exists():
        if read_metadata(result / RUNS_NAME, RUNS_SCHEMA).get(SOURCE_KEY) == LEDGER_NAME.encode():
            yield f"`{LEDGER_NAME}` is absent, so the tables cannot be compared with what was recorded"
        return
    with private_copy(result) as copy:
        for name in ("plan.json", PROVENANCE_NAME, LEDGER_NAME, f"{LEDGER_NAME}-wal"):
            if (result / name).exists():
                shutil.copy2(result / name, copy / name)
        write_tables(copy)
        for name, schema in _TABLES.items():
            if not (result / name).exists():
                yield f"`{name}` is absent; the ledger has it"
            elif hash_file(result / name) != hash_file(copy / name):
                yield from _changed_table(result, copy, name, schema)


def _changed_table(result: Path, copy: Path, name: str, schema: str) -> Iterator[str]:
    """Another version of the Parquet library may write the same rows as other bytes."""
    recorded, given = (read_table(folder / name, schema) for folder in (result, copy))
    if recorded.equals(given, check_metadata=True):
        return
    if recorded.num_rows != given.num_rows:
        yield f"`{name}` has {recorded.num_rows} rows, `{LEDGER_NAME}` gives {given.num_rows}"
        return
    differing = [
        column
        for column in given.column_names
        if column not in recorded.column_names or not recorded[column].equals(given[column])
    ]
    shown = ", ".join(f"`{column}`" for column in differing) or "its metadata"
    yield f"`{name}` is not what `{LEDGER_NAME}` gives: {shown} differs"
