"""Names of this user and this host that a package would tell everybody."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.share.package.archive import Part

_CHUNK_BYTES: Final = 1 << 20
_SHORTEST: Final = 3
"""Characters; shorter names occur in ordinary words."""

_DOTS: Final = 3
"""In an address of IPv4."""

_OF_NOBODY: Final = frozenset(
    {"root", "localhost", "localhost.localdomain", "user", "nobody", "debian", "ubuntu"}
)
"""Names that very many machines have; they tell nothing."""


def names_here() -> tuple[str, ...]:
    """Give the names of this user and this host that tell who they are."""
    found = [
        Path.home().name,
        os.environ.get("USER", ""),
        os.environ.get("LOGNAME", ""),
        socket.gethostname(),
    ]
    return tuple(
        dict.fromkeys(name for name in found if len(name) >= _SHORTEST and name.casefold() not in _OF_NOBODY)
    )


def private_names(parts: Iterable[Part], names: Sequence[str] | None = None) -> dict[str, tuple[str, ...]]:
    """Say which parts of a package hold a name of this user or host, as a whole word.

    Parameters
    ----------
    parts : iterable of Part
        What is packed. Tables and ledgers are decoded: they hold their texts compressed, or in pieces.
    names : sequence of str or None
        What is looked for, in either case of letters; those of this user and host by default.

    Returns
    -------
    dict
        Names of files, by the name that they hold; empty where none does.
    """
    wanted = names_here() if names is None else names
    if not wanted:
        return {}
    words = re.compile(
        b"|".join(_as_word(name) for name in wanted),
        re.IGNORECASE,
    )
    found: dict[str, list[str]] = {}
    for part in parts:
        for name in sorted({match.decode() for match in _matches(part, words)}):
            found.setdefault(name, []).append(part.name)
    return {name: tuple(files) for name, files in found.items()}


def _as_word(name: str) -> bytes:
    """Give the pattern of a name as a whole word; paths and addresses may follow an option: ``-I/x``."""
    before = rb"(?<![A-Za-z0-9_])" if name[0].isalnum() or name[0] == "_" else b""
    if name.count(".") == _DOTS and name.replace(".", "").isdecimal():
        before = rb"(?<![0-9.])"
    return before + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])"


def _matches(part: Part, words: re.Pattern[bytes]) -> set[bytes]:
    if isinstance(part.content, bytes):
        return set(words.findall(part.content))
    if part.content.suffix == ".parquet":
        return {found for text in _texts_of_table(part.content) for found in words.findall(text)}
    if part.content.suffix == ".sqlite":
        return {found for text in _texts_of_ledger(part.content) for found in words.findall(text)}
    found: set[bytes] = set()
    kept = b""
    with part.content.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(words.findall(kept + chunk))
            kept = chunk[-256:]
    return found


def _texts_of_table(path: Path) -> Iterator[bytes]:
    """Give the different texts of a Parquet file, and those of its metadata."""
    with pq.ParquetFile(path) as file:
        yield from (text for pair in (file.schema_arrow.metadata or {}).items() for text in pair)
        kinds = {field.name: field.type for field in file.schema_arrow}
        names = [name for name, kind in kinds.items() if _holds_text(kind)]
        for batch in file.iter_batches(columns=names, use_threads=False) if names else ():
            for column in batch.columns:
                flat = column.flatten() if pa.types.is_list(column.type) else column
                yield from (str(text).encode() for text in pc.unique(flat).to_pylist())


def _holds_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def _texts_of_ledger(path: Path) -> Iterator[bytes]:
    """Give the texts of a database."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            quoted = str(table).replace('"', '""')
            for row in connection.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608 - a name, quoted
                yield from (str(value).encode() for value in row if isinstance(value, str))
