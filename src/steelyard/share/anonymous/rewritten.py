"""A result folder whose recorded texts are changed throughout: plan, tables, ledger and what runs left."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.model.document import FOLDER_HINT, read_document
from steelyard.model.plan import PLAN_NAME, PLAN_SCHEMA, Plan
from steelyard.record.interim_log import CANDIDATES_NAME, LOOKS_NAME
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.record.seal import seal_tables
from steelyard.record.tables import write_tables
from steelyard.record.trace_folder import trace_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_NONE: Final = "restore the file from a copy"


def rewrite_plan(result: Path, change: Callable[[str], str]) -> Plan:
    """Change the texts of the plan of a result, and freeze it again: another content has another id."""
    path = result / PLAN_NAME
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    changed = read_document(path, Plan, PLAN_SCHEMA, absent=FOLDER_HINT, damaged=_NONE).freeze()
    changed.write(path)
    return changed


def rewrite_recorded(result: Path, change: Callable[[str], str]) -> None:
    """Change the texts of everything recorded but the plan, and write tables and their hashes anew.

    Parameters
    ----------
    result : Path
        Result folder.
    change : callable
        Takes a text, and gives what stands for it.
    """
    texts = (PROVENANCE_NAME, LOOKS_NAME, CANDIDATES_NAME)
    for path in (*(result / name for name in texts), *trace_files(result)):
        if path.exists() and path.suffix not in {".parquet", ".sqlite"}:
            _rewrite_text(path, change)
    for path in (*result.glob("*.parquet"), *result.glob("measurements/*"), *trace_files(result)):
        if path.suffix == ".parquet":
            _rewrite_table(path, change)
    if (result / LEDGER_NAME).exists():
        _rewrite_ledger(result / LEDGER_NAME, change)
        write_tables(result)
    seal_tables(result)


def _rewrite_text(path: Path, change: Callable[[str], str]) -> None:
    """Change a file of text; one of other bytes stays, and is looked through before it is packed."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return
    changed = change(text)
    if changed != text:
        path.write_bytes(changed.encode())


def _rewrite_table(path: Path, change: Callable[[str], str]) -> None:
    table = pq.read_table(path, use_threads=False)
    metadata = {key: change(value.decode()).encode() for key, value in (table.schema.metadata or {}).items()}
    columns = [_changed(column.combine_chunks(), change) for column in table.columns]
    changed = pa.Table.from_arrays(columns, schema=table.schema.with_metadata(metadata))
    if not changed.equals(table, check_metadata=True):
        pq.write_table(changed, path, compression="zstd")


def _changed(column: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """Change the texts of a column, each different one once."""
    kind = column.type
    if pa.types.is_list(kind):
        inner = _changed(column.values, change)
        return pa.ListArray.from_arrays(column.offsets, inner, type=kind, mask=column.is_null())
    if pa.types.is_dictionary(kind):
        values = _changed(column.dictionary, change)
        return pa.DictionaryArray.from_arrays(column.indices, values).cast(kind)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    encoded = column.dictionary_encode()
    texts = pa.array([change(each) for each in encoded.dictionary.to_pylist()], kind)
    return texts.take(encoded.indices)


def _hidden(journal: str) -> str:
    """Give another name of a journal, since that has the name of its node."""
    return hashlib.sha256(journal.encode()).hexdigest()[:16]


def _rewrite_ledger(path: Path, change: Callable[[str], str]) -> None:
    """Change the texts of a ledger; what was there before is in no free page of the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.create_function("changed", 1, change, deterministic=True)
        connection.create_function("sum_of", 1, lambda text: zlib.crc32(text.encode()), deterministic=True)
        connection.execute("UPDATE meta SET value = changed(value)")
        connection.execute("UPDATE run SET outcome = changed(outcome)")
        connection.execute("UPDATE run SET checksum = sum_of(outcome)")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'disturbance'").fetchone():
            connection.execute("UPDATE disturbance SET reasons = changed(reasons)")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'placed'").fetchone():
            connection.create_function("hidden", 1, _hidden, deterministic=True)
            connection.execute("UPDATE placed SET host_id = changed(host_id), journal = hidden(journal)")
        connection.execute("VACUUM")
