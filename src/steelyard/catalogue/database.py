"""Where the catalogue is kept: a file of SQLite or a database of PostgreSQL, with the same statements."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError, DataError, UsageError, unwritable
from steelyard.run.state import user_data_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADDRESS_VARIABLE: Final = "STEELYARD_CATALOGUE"
SCHEMA: Final = "steelyard/catalogue/1"
_POSTGRESQL: Final = ("postgresql://", "postgres://")
PATIENCE_S: Final = 20
"""How long a writer waits for others; each of them takes milliseconds."""
_CONNECT_PATIENCE_S: Final = 10
_LOCK: Final = 0x57EE1
"""Number of the lock that the one process holds that writes; own choice."""

_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS catalogue (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS result (
        id TEXT PRIMARY KEY,
        site TEXT NOT NULL,
        folder TEXT NOT NULL,
        host TEXT NOT NULL,
        study TEXT NOT NULL,
        title TEXT NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        state TEXT NOT NULL,
        commit_id TEXT,
        version TEXT NOT NULL,
        cells BIGINT NOT NULL,
        runs BIGINT NOT NULL,
        verdict TEXT NOT NULL,
        verdict_kind TEXT NOT NULL,
        tags TEXT NOT NULL,
        note TEXT NOT NULL,
        problem TEXT NOT NULL,
        search TEXT NOT NULL,
        stamp TEXT NOT NULL,
        UNIQUE (site, folder)
    )""",
    "CREATE INDEX IF NOT EXISTS result_started ON result (started)",
    """CREATE TABLE IF NOT EXISTS tag (
        result TEXT NOT NULL REFERENCES result (id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (tag, result)
    )""",
    "CREATE INDEX IF NOT EXISTS tag_of_result ON tag (result)",
    """CREATE TABLE IF NOT EXISTS verdict (
        result TEXT NOT NULL REFERENCES result (id) ON DELETE CASCADE,
        verdict TEXT NOT NULL,
        PRIMARY KEY (verdict, result)
    )""",
    "CREATE INDEX IF NOT EXISTS verdict_of_result ON verdict (result)",
)
VERIFICATION_TABLE: Final = """CREATE TABLE IF NOT EXISTS verification (
    result TEXT PRIMARY KEY REFERENCES result (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    stamp TEXT NOT NULL,
    took_s DOUBLE PRECISION NOT NULL,
    said TEXT NOT NULL,
    ended TEXT NOT NULL,
    version TEXT NOT NULL
)"""
"""Made with its first row: earlier versions of this schema have none, and read a catalogue that has it."""


def chosen_address(address: str | Path | None) -> str:
    """Give the address that was asked for, else that of the environment, else the user's own file."""
    named = str(address) if address else os.environ.get(ADDRESS_VARIABLE)
    if named:
        return named
    return str(user_data_folder() / "catalogue.sqlite")


def _password(address: str) -> str:
    """Give the password in an address; empty without one."""
    authority = address.partition("://")[2].partition("?")[0].partition("/")[0]
    return authority.rpartition("@")[0].partition(":")[2]


def without_password(address: str) -> str:
    """Give an address as it may be shown.

    Examples
    --------
    >>> without_password("postgresql://ada:secret@db.example/bench")
    'postgresql://ada@db.example/bench'
    >>> without_password("catalogue.sqlite")
    'catalogue.sqlite'
    """
    scheme, sign, rest = address.partition("://")
    if not sign:
        return address
    place, query, _ = rest.partition("?")
    authority, slash, name = place.partition("/")
    user, at, server = authority.rpartition("@")
    shown = f"{user.partition(':')[0]}{at}{server}{slash}{name}"
    return f"{scheme}://{shown}" + (query and "?...")


class Database:
    """A connection and its kind.

    Parameters
    ----------
    address : str
        Path, or ``postgresql://...``.
    patience_s : int
        How long a statement waits for other writers [s].

    Raises
    ------
    CapabilityError
        If it needs a Python package that is not installed.
    DataError
        If it cannot be reached or written, or is not a catalogue of this version.
    UsageError
        If the address is of another kind.
    """

    def __init__(self, address: str, patience_s: int = PATIENCE_S) -> None:
        self.shown = without_password(address)
        self._password = _password(address)
        self._patience_s = patience_s
        self.is_shared = address.startswith(_POSTGRESQL)
        if not self.is_shared and "://" in address:
            message = f"cannot use the catalogue `{self.shown}`: allowed: a path, or `postgresql://...`"
            raise UsageError(message, hint="e.g. --catalogue postgresql://user@host/database")
        self._errors: tuple[type[Exception], ...] = (sqlite3.Error,)
        self._unwritable: sqlite3.OperationalError | None = None
        self._connection: Any = self._reach_server(address) if self.is_shared else self._open(Path(address))
        self._prepare()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Give the rows of a query; parameters stand as ``?``."""
        with self._named_faults():
            return list(self._execute(statement, values).fetchall())

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Write what follows together, or nothing of it."""
        with self._named_faults():
            if self._unwritable is not None:
                raise self._unwritable
            self._execute("BEGIN" if self.is_shared else "BEGIN IMMEDIATE")
            try:
                if self.is_shared:
                    # One writer at a time, as SQLite has it: moves and copies are told by looking first.
                    self._execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
                yield self
            except BaseException:
                self._execute("ROLLBACK")
                raise
            self._execute("COMMIT")

    def has_table(self, name: str) -> bool:
        """Whether there is a table."""
        if self.is_shared:
            return bool(self.rows("SELECT to_regclass(?) IS NOT NULL", (name,))[0][0])
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)))

    def write(self, statement: str, values: Sequence[object] = ()) -> int:
        """Execute a statement that changes rows, and give how many."""
        count: int = self._execute(statement, values).rowcount
        return count

    def _execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        if self.is_shared:
            statement = statement.replace("?", "%s")
        return self._connection.execute(statement, tuple(values))

    def _open(self, path: Path) -> sqlite3.Connection:
        hint = f"give another file with --catalogue or {ADDRESS_VARIABLE}"
        try:
            path = path.expanduser().absolute()
        except RuntimeError as error:
            message = f"cannot use the catalogue `{path}`: nobody here has that name"
            raise UsageError(message, hint=hint) from error
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error, hint) from error
        if path.is_dir():
            message = f"cannot use the catalogue `{path}`: it is a folder"
            raise DataError(message, hint=hint, code="data.catalogue")
        with self._named_faults():
            try:
                return self._opened(path)
            except sqlite3.OperationalError as error:
                # A disk is full, or a folder may only be read: what the file has can be listed all the same,
                # unless its log has more.
                log = path.with_name(f"{path.name}-wal")
                if not path.is_file() or (log.exists() and log.stat().st_size):
                    raise
                connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None)
                self._require_own(connection, path)
                self._unwritable = error
                return connection

    def _opened(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=self._patience_s, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            self._require_own(connection, path)
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @staticmethod
    def _require_own(connection: sqlite3.Connection, path: Path) -> None:
        """Refuse to write into a database of something else."""
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        if tables and "catalogue" not in tables:
            message = f"cannot use the catalogue `{path}`: it is a database of something else"
            raise DataError(message, hint="give a new file", code="data.catalogue")

    def _reach_server(self, address: str) -> Any:
        try:
            import psycopg  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = "a catalogue in PostgreSQL needs the Python package `psycopg`"
            hint = "pip install 'steelyard[postgresql]'"
            raise CapabilityError(message, hint=hint, code="capability.package") from error
        self._errors = (psycopg.Error,)
        if "@" in self._password:
            message = f"cannot use the catalogue `{self.shown}`: its password contains `@`"
            raise UsageError(message, hint="write `%40` for it, or keep the password in ~/.pgpass")
        patience_s = min(_CONNECT_PATIENCE_S, self._patience_s)
        with self._named_faults():
            connection = psycopg.connect(address, autocommit=True, connect_timeout=patience_s)
            # Somebody may hold the lock and be suspended.
            connection.execute(f"SET lock_timeout = '{self._patience_s}s'")
            connection.execute(f"SET statement_timeout = '{self._patience_s}s'")
            return connection

    def _prepare(self) -> None:
        found = self._version()
        if found is None:
            with self.writing():
                for statement in _TABLES:
                    self._execute(statement)
                self._execute(
                    "INSERT INTO catalogue (name, value) VALUES ('schema', ?) ON CONFLICT DO NOTHING",
                    (SCHEMA,),
                )
            found = self._version()
        if found != SCHEMA:
            message = f"the catalogue `{self.shown}` has schema `{found}`; this version reads `{SCHEMA}`"
            hint = "use the Steelyard that wrote it, or make a new one with `steelyard results scan`"
            raise DataError(message, hint=hint, code="data.schema")

    def _version(self) -> str | None:
        if not self.has_table("catalogue"):
            return None
        found = self.rows("SELECT value FROM catalogue WHERE name = 'schema'")
        return str(found[0][0]) if found else None

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            reason = " ".join(str(error).split())
            if self._password:
                reason = reason.replace(f":{self._password}@", ":***@").replace(self._password, "***")
            message = f"cannot use the catalogue `{self.shown}`: {reason}"
            hint = f"check it, or give another one with --catalogue or {ADDRESS_VARIABLE}"
            raise DataError(message, hint=hint, code="data.catalogue") from error
