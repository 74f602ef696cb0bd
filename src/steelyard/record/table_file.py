"""One Parquet file, written whole or not at all, and read with its schema checked."""

from __future__ import annotations

import base64
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import DataError, unwritable
from steelyard.model.plain_file import read_plain_file
from steelyard.record.schema import SCHEMA_KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

ROWS_PER_GROUP: Final = 65_536
Item = TypeVar("Item")
Value = str | int | float | list[str] | None

CODED: Final = pa.dictionary(pa.int32(), pa.string())
"""A column of texts that repeat: small numbers, and each text once."""

_ENCODINGS: Final = {
    **dict.fromkeys(("start_ns", "end_ns", "start_utc_ns", "iteration"), "DELTA_BINARY_PACKED"),
    "run_id": "DELTA_BYTE_ARRAY",
    # Texts that hardly repeat: a dictionary of them costs twice the time and half as much space again.
    "printed": "DELTA_LENGTH_BYTE_ARRAY",
    # Signs and exponents beside each other take half the time to compress.
    "value": "BYTE_STREAM_SPLIT",
}
_ARROW_SCHEMA: Final = b"ARROW:schema"
_NO_EXTREMES: Final = frozenset({"printed"})
"""Columns whose first and last text in alphabetical order say nothing."""


class TableWriter:
    """Writes rows into a file that appears under its name only when everything is in it.

    Parameters
    ----------
    path : Path
        The file; its folder is created.
    schema : pyarrow.Schema
        Columns, with the metadata of the file.
    coded : collection of str
        Columns of texts that repeat often: rows may have them as `CODED`, which takes a fifth of the time.
        Readers of the file see texts.

    Raises
    ------
    DataError
        If the file cannot be written, a full file system included; an older file stays.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, coded: Collection[str] = ()) -> None:
        self.path = path
        self.schema = schema
        self._written = coded_schema(schema, coded)
        self._coded = tuple(coded)
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._rows: list[Mapping[str, Value]] = []
        self._parts: list[pa.Table] = []
        self._waiting = 0
        plain = {
            name: encoding
            for name, encoding in _ENCODINGS.items()
            if name in schema.names and name not in self._coded
        }
        dictionary = [name for name in schema.names if name not in plain and name != "flags"]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # A file of ours: one that the Parquet library opens can neither be synced nor, after a
            # failure, be removed by us. Buffered: the library does not repeat short writes.
            self._file = self._temporary.open("wb")
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self._writer = pq.ParquetWriter(
                self._file,
                self._written,
                compression="zstd",
                use_dictionary=dictionary,
                column_encoding=plain,
                write_statistics=[name for name in schema.names if name not in _NO_EXTREMES],
                write_page_checksum=True,
                store_schema=not self._coded,
            )
        except OSError as error:
            self._remove()
            raise _unwritable(path, error) from error

    def add(self, row: Mapping[str, Value]) -> None:
        """Add a row; absent columns are null."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_PER_GROUP:
            self._flush()

    def add_table(self, table: pa.Table) -> None:
        """Add rows of the schema."""
        self._gather()
        self._parts.append(self._with_codes(table))
        self._waiting += table.num_rows
        if self._waiting >= ROWS_PER_GROUP:
            whole = pa.concat_tables(self._parts)
            full = whole.num_rows - whole.num_rows % ROWS_PER_GROUP
            for begin in range(0, full, ROWS_PER_GROUP):
                self._write(whole.slice(begin, ROWS_PER_GROUP))
            self._parts = [whole.slice(full)]
            self._waiting = whole.num_rows - full

    def add_columns(self, columns: Mapping[str, pa.Array]) -> None:
        """Add rows by column; absent columns are null."""
        size = len(next(iter(columns.values())))
        found = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(size, field.type)
            for field in self.schema
        ]
        self.add_table(pa.table(found, schema=self.schema))

    def _gather(self) -> None:
        """Make a table of the rows that were added one by one."""
        if self._rows:
            self._parts.append(self._with_codes(pa.Table.from_pylist(self._rows, schema=self.schema)))
            self._waiting += len(self._rows)
            self._rows = []

    def _with_codes(self, table: pa.Table) -> pa.Table:
        for place, field in enumerate(self._written):
            if table.schema.field(place).type != field.type:
                kind = field.type
                column = table.column(place)
                codes = column.dictionary_encode() if kind == CODED else column.cast(kind)
                table = table.set_column(place, field, codes)
        return table

    def _flush(self) -> None:
        self._gather()
        if self._waiting:
            self._write(pa.concat_tables(self._parts))
        self._parts, self._waiting = [], 0

    def _write(self, table: pa.Table) -> None:
        try:
            self._writer.write_table(table.replace_schema_metadata(self.schema.metadata).combine_chunks())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._flush()
                if self._coded:
                    # In place of that of the codes, so that readers see the texts and their descriptions.
                    shown = base64.b64encode(self.schema.serialize())
                    self._writer.add_key_value_metadata({**self.schema.metadata, _ARROW_SCHEMA: shown})
                self._writer.close()
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._temporary.replace(self.path)
        except OSError as failure:
            raise _unwritable(self.path, failure) from failure
        finally:
            with suppress(OSError):
                self._writer.close()
            self._remove()

    def _remove(self) -> None:
        """Close and remove what is not in place; the failure that led here is already on its way."""
        with suppress(OSError):
            self._file.close()
        if self._temporary.exists():
            self._temporary.unlink()


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Give items in their order; the next one is made in a thread of its own meanwhile.

    An error that making one raises is raised where that one is asked for. At most two items are kept.

    Examples
    --------
    >>> list(ahead(number * 2 for number in range(3)))
    [0, 2, 4]
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(_next, iterator)
        while found := coming.result():
            coming = thread.submit(_next, iterator)
            yield from found


def _next(items: Iterator[Item]) -> tuple[Item, ...]:
    """Give the next item, or nothing at the end."""
    return tuple(islice(items, 1))


def coded_schema(schema: pa.Schema, coded: Collection[str]) -> pa.Schema:
    """Give a schema with some columns of texts as codes."""
    return pa.schema(
        [field.with_type(CODED) if field.name in coded else field for field in schema], schema.metadata
    )


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """Give a column of one text, as `CODED`."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), [text])


def read_table(path: Path, schema: str) -> pa.Table:
    """Read a recorded file.

    Parameters
    ----------
    path : Path
        A file that `TableWriter` wrote.
    schema : str
        Schema name it must carry.

    Raises
    ------
    DataError
        If the file is absent, damaged, or of another schema.
    """
    with named_damage(path, schema):
        # From bytes: a file that shrinks while being mapped would end the process.
        # In this thread: the library's own threads, still starting, abort a program that ends at once.
        content = pa.BufferReader(read_plain_file(path))
        # Not `read_table`, which reads data sets of many files and imports what that takes, 0.06 s of CPU.
        with pq.ParquetFile(content, page_checksum_verification=True, pre_buffer=False) as file:
            table = file.read(use_threads=False)
        _decode_names(table.schema)
        table.validate(full=True)
    _require_schema(path, table.schema.metadata, schema)
    return table


def read_batches(
    path: Path,
    schema: str,
    expected: pa.Schema,
    *,
    with_codes: bool = False,
    within: tuple[str, int, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a recorded file a part at a time.

    Parameters
    ----------
    path : Path
        A file that `TableWriter` wrote.
    schema : str
        Schema name it must carry.
    expected : pyarrow.Schema
        The columns that are read, with their types; others are passed over.
    with_codes : bool
        Whether texts that the file has as codes come as `CODED`, so that no text is made for each row.
    within : (str, int, int) or None
        A column of whole numbers and the least and the greatest of interest: row groups that have none of
        them, as the footer says, are not read.

    Yields
    ------
    pyarrow.RecordBatch
        Rows in their order, at most 65 536.

    Raises
    ------
    DataError
        If the file is absent, damaged, of another schema, or lacks a column.
    """
    with named_damage(path, schema):
        # From bytes, and in this thread: see `read_table`.
        content = pa.BufferReader(read_plain_file(path))
        coded = _coded_columns(content, expected) if with_codes else []
        with pq.ParquetFile(
            content, page_checksum_verification=True, pre_buffer=False, read_dictionary=coded
        ) as file:
            found = file.schema_arrow
            _decode_names(found)
            _require_schema(path, found.metadata, schema)
            require_columns(path, found.empty_table(), coded_schema(expected, coded))
            groups = [place for place in range(file.num_row_groups) if _may_hold(file, place, within)]
            for batch in file.iter_batches(
                ROWS_PER_GROUP, row_groups=groups, columns=expected.names, use_threads=False
            ):
                batch.validate(full=True)
                yield batch


def _may_hold(file: pq.ParquetFile, group: int, within: tuple[str, int, int] | None) -> bool:
    """Whether a row group may have a number of the range."""
    if within is None:
        return True
    name, least, greatest = within
    column = file.metadata.row_group(group).column(file.schema_arrow.names.index(name))
    found = column.statistics
    return found is None or not found.has_min_max or (found.min <= greatest and found.max >= least)


def _coded_columns(content: pa.BufferReader, expected: pa.Schema) -> list[str]:
    """Give the columns of texts whose first rows are codes in the file."""
    found = pq.read_metadata(content)
    content.seek(0)
    if not found.num_row_groups:
        return []
    group = found.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    texts = {field.name for field in expected if field.type == pa.string()}
    return [
        column.path_in_schema
        for column in columns
        if column.path_in_schema in texts and "RLE_DICTIONARY" in column.encodings
    ]


def _decode_names(schema: pa.Schema) -> None:
    """Read every text of the footer, which no checksum covers: some readers end the process on them."""
    names = [field.name for field in schema]  # decoded by being asked for
    for metadata in (schema.metadata, *(schema.field(index).metadata for index in range(len(names)))):
        for text in (text for pair in (metadata or {}).items() for text in pair):
            text.decode()


def read_metadata(path: Path, schema: str) -> dict[bytes, bytes]:
    """Read the metadata of a recorded file alone.

    Raises
    ------
    DataError
        If the file is absent, damaged, or of another schema.
    """
    with named_damage(path, schema):
        metadata = pq.read_schema(path).metadata
    _require_schema(path, metadata, schema)
    return dict(metadata)


def count_rows(path: Path, schema: str) -> int:
    """Count the rows of a recorded file, without reading them.

    Raises
    ------
    DataError
        If the file is absent, damaged, or of another schema.
    """
    with named_damage(path, schema):
        found = pq.read_metadata(path)
        _require_schema(path, found.metadata, schema)
    return int(found.num_rows)


@contextmanager
def named_damage(path: Path, schema: str) -> Iterator[None]:
    """Turn what the Parquet library says of a damaged or absent file into an error that names it."""
    try:
        yield
    except FileNotFoundError as error:
        message = f"`{path}` does not exist"
        hint = "give the folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
        raise DataError(message, hint=hint, code="data.absent") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        message = f"`{path}` is damaged: expected a Parquet file of schema `{schema}`, found: {reason}"
        raise DataError(message, hint=rebuild_hint(path), code="data.corrupt") from error


def _require_schema(path: Path, metadata: Mapping[bytes, bytes] | None, schema: str) -> None:
    found = (metadata or {}).get(SCHEMA_KEY, b"none").decode(errors="replace")
    if found != schema:
        message = f"`{path}` has schema `{found}`; expected: `{schema}`"
        hint = "use the Steelyard that wrote it, or run the study again"
        raise DataError(message, hint=hint, code="data.schema")


def require_columns(path: Path, table: pa.Table, expected: pa.Schema) -> None:
    """Check that a table has the columns of its schema with their types.

    Raises
    ------
    DataError
        Naming every column that is absent or of another type.
    """
    problems = []
    for field in expected:
        index = table.schema.get_field_index(field.name)
        if index < 0:
            problems.append(f"column `{field.name}` is absent")
        elif table.schema.field(index).type != field.type:
            problems.append(
                f"column `{field.name}` is {table.schema.field(index).type}; expected: {field.type}"
            )
    if problems:
        message = f"`{path}` violates its schema: {'; '.join(problems)}"
        raise DataError(message, hint=rebuild_hint(path), code="data.schema")


def rebuild_hint(path: Path) -> str:
    """Give the next step for a table that cannot be used."""
    folder = path.parent.parent if path.parent.name == "measurements" else path.parent
    if (folder / "ledger.sqlite").exists():
        return f"remove the file: `steelyard analyse {folder}` writes the tables again from the ledger"
    return "import the original file again, or restore this one from a copy"


def _unwritable(path: Path, error: OSError) -> DataError:
    return unwritable(path, error, "check the rights of the folder; the ledger is intact")
