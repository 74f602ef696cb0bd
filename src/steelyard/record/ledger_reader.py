"""Reading a ledger: while a study is run, after it, and from a read-only folder."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from steelyard.errors import DataError
from steelyard.model.run_outcome import RunOutcome
from steelyard.record.ledger_schema import check_database, damaged, require_content, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType


REPEAT: Final = "repeat the command"

_WITH_DISTURBANCES: Final = 2
_WITH_HOSTS: Final = 3
"""Versions of the ledger from which on disturbances and hosts are kept."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One recorded outcome.

    Parameters
    ----------
    batch, attempt, worker, iteration : int
        Where it belongs; together they are unique.
    state : str
        State of its attempt: ``complete``, ``interrupted`` or ``open``.
    outcome : RunOutcome
        As it was handed in.
    """

    batch: int
    attempt: int
    worker: int
    iteration: int
    state: str
    outcome: RunOutcome


class LedgerReader:
    """Read-only view of a ledger, also while a study is run or from a read-only folder.

    Parameters
    ----------
    path : Path
        An existing ledger.

    Raises
    ------
    DataError
        If it is absent, damaged, or of another version.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            message = f"`{path}` does not exist"
            raise DataError(message, hint="give the folder that `steelyard run` wrote", code="data.absent")
        self.path = path
        with named_errors(path):
            self._connection = _connect_for_reading(path)
            try:
                check_database(self._connection, path)
                require_content(self._connection, path)
                self._connection.execute("BEGIN")  # one consistent snapshot for all queries
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def plan_id(self) -> str | None:
        """Id of the plan whose runs are in here."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'plan_id'").fetchone()
        return None if row is None else str(row[0])

    def completed_attempts(self) -> dict[int, int]:
        """Give the complete attempt of each complete batch, by the batch's number."""
        return completed_attempts(self._connection)

    def disturbances(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """Give what disturbed attempts, by batch and attempt; none where a ledger has no such table."""
        with named_errors(self.path):
            if version_of(self._connection, self.path) < _WITH_DISTURBANCES:
                return {}
            rows = self._connection.execute("SELECT batch, attempt, reasons FROM disturbance").fetchall()
        return {(batch, attempt): tuple(json.loads(reasons)) for batch, attempt, reasons in rows}

    def hosts(self) -> dict[tuple[int, int], str]:
        """Give the host that made an attempt, by batch and attempt; absent where it was the ledger's own."""
        with named_errors(self.path):
            if version_of(self._connection, self.path) < _WITH_HOSTS:
                return {}
            rows = self._connection.execute("SELECT batch, attempt, host_id FROM placed").fetchall()
        return {(batch, attempt): host_id for batch, attempt, host_id in rows}

    def batches(self) -> tuple[int, ...]:
        """Give the numbers of the batches with outcomes, ascending."""
        return tuple(
            row[0] for row in self._connection.execute("SELECT DISTINCT batch FROM run ORDER BY batch")
        )

    def outcomes(self, batch: int | None = None) -> Iterator[LedgerRow]:
        """Give the outcomes of one batch, or of all, by batch, attempt, worker, iteration.

        Raises
        ------
        DataError
            If an outcome does not match its checksum.
        """
        return ledger_rows(self._connection, self.path, batch)


def completed_attempts(connection: sqlite3.Connection) -> dict[int, int]:
    """Give the complete attempt of each complete batch."""
    query = "SELECT batch, attempt FROM attempt WHERE state = 'complete' ORDER BY batch"
    return dict(connection.execute(query).fetchall())


def ledger_rows(connection: sqlite3.Connection, path: Path, batch: int | None) -> Iterator[LedgerRow]:
    """Give the outcomes of one batch, or of all, each checked against its checksum."""
    columns = "batch, attempt, worker, iteration, state, outcome, checksum"
    chosen = "" if batch is None else "WHERE batch = ?"
    order = "ORDER BY batch, attempt, worker, iteration"
    query = f"SELECT {columns} FROM run JOIN attempt USING (batch, attempt) {chosen} {order}"  # noqa: S608 - constants
    with named_errors(path):
        for *key, state, text, checksum in connection.execute(query, () if batch is None else (batch,)):
            number, attempt, worker, iteration = key
            if zlib.crc32(text.encode()) != checksum:
                where = f"iteration {iteration} of worker {worker} in batch {number}"
                raise damaged(path, f"{where} does not match its checksum")
            try:
                outcome = RunOutcome.of(json.loads(text))
            except ValueError as error:
                where = f"iteration {iteration} of worker {worker} in batch {number}"
                raise damaged(path, f"{where} is {error}") from error
            yield LedgerRow(number, attempt, worker, iteration, state, outcome)


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    """Open a ledger so that nothing can be written through the connection.

    A reader of a write-ahead log needs an index beside it. Opened for writing, the last connection
    removes both at its end; a folder without the right to write keeps what is there; and without
    the right and without a log the file cannot change under us and is read as it is.
    """
    log = path.with_name(path.name + "-wal")
    failure: sqlite3.OperationalError | None = None
    for mode in ("mode=rw", "mode=ro", "immutable=1"):
        if mode == "immutable=1" and log.exists() and log.stat().st_size:
            break
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            failure = error
        except sqlite3.DatabaseError:
            connection.close()
            raise
        else:
            return connection
    raise failure or damaged(path, "it cannot be opened")


@contextmanager
def named_errors(path: Path, purpose: str = "be read", next_step: str = REPEAT) -> Iterator[None]:
    """Turn errors of the database into errors that name the file and the next step.

    Parameters
    ----------
    path : Path
        The database.
    purpose : str
        What it cannot do now.
    next_step : str
        What to do when there is room again; it depends on the kind of work.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            message = f"`{path}` cannot {purpose}: {error}; everything recorded before is intact"
            hint = f"free space on the file system of `{path.parent}`, then {next_step}"
            raise DataError(message, hint=hint, code="data.disk-full") from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            message = f"cannot open `{path}`: {error}"
            hint = "check the rights of the file and its folder"
            raise DataError(message, hint=hint, code="data.unwritable") from error
        raise damaged(path, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise damaged(path, str(error)) from error
