"""Layout of the ledger's database, and how older layouts are brought up to date.

Version history of ``steelyard/ledger``:

1. first.
2. table ``disturbance``: what disturbed an attempt.
3. table ``placed``: which host made an attempt, and where that was recorded first.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.clock import now_utc

if TYPE_CHECKING:
    from pathlib import Path

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE migration (version INTEGER PRIMARY KEY, applied_utc TEXT NOT NULL)",
        """CREATE TABLE attempt (
            batch INTEGER NOT NULL CHECK (batch >= 0),
            attempt INTEGER NOT NULL CHECK (attempt >= 1),
            state TEXT NOT NULL CHECK (state IN ('open', 'interrupted', 'complete')),
            begun_utc TEXT NOT NULL,
            ended_utc TEXT,
            PRIMARY KEY (batch, attempt)
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX one_complete_attempt ON attempt (batch) WHERE state = 'complete'",
        """CREATE TABLE run (
            batch INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            worker INTEGER NOT NULL CHECK (worker >= 0),
            iteration INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            checksum INTEGER NOT NULL,
            PRIMARY KEY (batch, attempt, worker, iteration),
            FOREIGN KEY (batch, attempt) REFERENCES attempt
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE disturbance (
            batch INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            reasons TEXT NOT NULL,
            PRIMARY KEY (batch, attempt),
            FOREIGN KEY (batch, attempt) REFERENCES attempt
        ) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE placed (
            batch INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            host_id TEXT NOT NULL,
            journal TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (batch, attempt),
            UNIQUE (journal, batch, number),
            FOREIGN KEY (batch, attempt) REFERENCES attempt
        ) WITHOUT ROWID""",
    ),
)
"""Entry k holds the statements that bring version k to version k + 1; 0 is an empty database."""

LEDGER_VERSION: Final = len(MIGRATIONS)


def check_database(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database is whole.

    Raises
    ------
    DataError
        If a page is damaged or the file is no database.
    """
    try:
        faults = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.DatabaseError as error:
        raise damaged(path, str(error)) from error
    if faults != ["ok"]:
        raise damaged(path, "; ".join(faults))


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a database to the version this Steelyard writes, one version per transaction.

    Raises
    ------
    DataError
        If the ledger was written by a newer Steelyard.
    """
    version = version_of(connection, path)
    for number in range(version, LEDGER_VERSION):
        connection.execute("BEGIN IMMEDIATE")
        for statement in MIGRATIONS[number]:
            connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES (?, ?)", (number + 1, now_utc()))
        connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """Give the version of a ledger's layout; 0 for an empty database.

    Raises
    ------
    DataError
        If it is newer than this Steelyard, or the database is not a ledger.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version > LEDGER_VERSION:
        message = (
            f"`{path}` has schema `steelyard/ledger/{version}`; this version reads up to {LEDGER_VERSION}"
        )
        raise DataError(message, hint="use the Steelyard that wrote it, or a newer one", code="data.schema")
    if (version == 0 and tables) or (version > 0 and not {"meta", "attempt", "run"} <= tables):
        message = f"`{path}` is an SQLite database but not a ledger of runs"
        raise DataError(message, hint="give the folder that `steelyard run` wrote", code="data.schema")
    return version


def require_content(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a ledger in which somebody has begun.

    Raises
    ------
    DataError
        If it is empty, of a newer version, or not a ledger.
    """
    version = version_of(connection, path)
    if version == 0:
        raise damaged(path, "it is empty")
    with closing(sqlite3.connect(":memory:")) as own:
        for statement in (each for group in MIGRATIONS[:version] for each in group):
            own.execute(statement)
        expected = set(own.execute(_LAYOUT))
    # A view of a stranger may never end, a generated column need all memory.
    for kind, name, _ in set(connection.execute(_LAYOUT)) - expected:
        raise damaged(path, f"its {kind} {name!r} is not one of a ledger")


_LAYOUT: Final = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


def damaged(path: Path, reason: str) -> DataError:
    """Give the error for a ledger whose content cannot be trusted."""
    hint = (
        f"`sqlite3 {path} .recover` salvages what is left; restore the file from a copy, "
        "or run the study again into a new folder"
    )
    return DataError(f"`{path}` is damaged: {reason}", hint=hint, code="data.corrupt")
