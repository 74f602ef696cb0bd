"""The ledger: every outcome of every run, durable the moment it is recorded.

An outcome is committed to the write-ahead log before `Ledger.record` returns, so it survives
``kill -9`` of every process. A batch is completed with ``synchronous = FULL``: then it, and every
outcome before it, also survives a loss of power.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
import time
import zlib
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

from steelyard.errors import DataError, unwritable
from steelyard.record.clock import now_utc
from steelyard.record.ledger_reader import REPEAT, LedgerRow, completed_attempts, ledger_rows, named_errors
from steelyard.record.ledger_schema import check_database, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import TextIOWrapper
    from pathlib import Path
    from types import TracebackType

    from steelyard.model import RunOutcome
    from steelyard.record.placed.journal import PlacedAttempt

LEDGER_NAME: Final = "ledger.sqlite"
_LOOKS: Final = 10
_LOOK_S: Final = 0.05
__all__ = ["LEDGER_NAME", "Ledger", "LedgerRow"]


class Ledger:
    """Writer and reader of a ledger; a context manager, safe to use from several threads.

    Parameters
    ----------
    path : Path
        The database; created when missing. One writer at a time.
    plan_id : str or None
        Id of the plan being run. Stored in a new ledger, compared with an old one.
    when_full : str
        What to do after a full disk was given room: whether the work is resumed depends on its kind.

    Raises
    ------
    DataError
        If the ledger is damaged, of another version, belongs to another plan, is being
        written by another process, or its file system is full.
    """

    def __init__(self, path: Path, plan_id: str | None = None, *, when_full: str = REPEAT) -> None:
        self.path = path
        self._when_full = when_full
        self._mutex = threading.RLock()
        self._lock = _lock_writer(path)
        try:
            self._connection = self._open()
            self._bind(plan_id)
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> sqlite3.Connection:
        with named_errors(self.path, "be opened", self._when_full):
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            with named_errors(self.path, "be opened", self._when_full):
                check_database(connection, self.path)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = FULL")
                migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _bind(self, plan_id: str | None) -> None:
        known = self.plan_id
        if plan_id is None or known == plan_id:
            return
        if known is not None:
            self._connection.close()
            message = f"`{self.path}` contains runs of plan {known[:12]}, not of plan {plan_id[:12]}"
            hint = "give another folder with --out, or the study file the folder was started with"
            raise DataError(message, hint=hint, code="data.other-plan")
        with self._transaction():
            self._connection.execute("INSERT INTO meta VALUES ('plan_id', ?)", (plan_id,))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and let the next writer in."""
        with self._mutex:
            # Beside a reader, closing leaves the log, and who copies the database alone loses what is in it.
            # This waits for the reader.
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            self._remove_log()
            self._lock.close()

    def _remove_log(self) -> None:
        """Close once more where a reader has kept the empty log: the last connection removes it."""
        log = self.path.with_name(f"{self.path.name}-wal")
        for _ in range(_LOOKS):
            if not log.exists():
                return
            time.sleep(_LOOK_S)
            with suppress(sqlite3.Error), closing(sqlite3.connect(self.path)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    @property
    def plan_id(self) -> str | None:
        """Id of the plan whose runs are in here; ``None`` as long as nobody said it."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'plan_id'").fetchone()
        return None if row is None else str(row[0])

    def begin_attempt(self, batch: int) -> int:
        """Begin to run a batch.

        An attempt still open from an earlier execution is labelled ``interrupted``; its runs stay.

        Returns
        -------
        int
            Number of the attempt, from 1.

        Raises
        ------
        DataError
            If the batch is complete already.
        """
        # A loss of power that takes this away takes the outcomes behind it away too, and no batch is
        # complete without the synchronous commit of `complete`.
        with self._transaction(power_loss=False):
            rows = self._connection.execute(
                "SELECT attempt, state FROM attempt WHERE batch = ? ORDER BY attempt", (batch,)
            ).fetchall()
            if any(state == "complete" for _, state in rows):
                message = f"batch {batch} is complete in `{self.path}`; it cannot run twice"
                raise DataError(message, code="data.batch-complete")
            self._connection.execute(
                "UPDATE attempt SET state = 'interrupted', ended_utc = ? WHERE batch = ? AND state = 'open'",
                (now_utc(), batch),
            )
            attempt = rows[-1][0] + 1 if rows else 1
            self._connection.execute(
                "INSERT INTO attempt VALUES (?, ?, 'open', ?, NULL)", (batch, attempt, now_utc())
            )
        return int(attempt)

    def record(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        """Keep one outcome; when this returns, it survives ``kill -9``.

        Parameters
        ----------
        batch, attempt : int
            An open attempt.
        worker : int
            Index of the worker, from 0.
        outcome : RunOutcome
            Its ``iteration`` is part of the key.

        Raises
        ------
        DataError
            If the attempt is not open, the worker's iteration is recorded already, or the
            file system is full.
        """
        iteration = outcome.iteration
        with self._transaction(power_loss=False):
            self._require_open(batch, attempt)
            try:
                self._insert(batch, attempt, worker, outcome)
            except sqlite3.IntegrityError as error:
                message = (
                    f"iteration {iteration} of worker {worker} in batch {batch}, attempt {attempt}, is in "
                    f"`{self.path}` already"
                )
                raise DataError(message, code="data.run-twice") from error

    def _insert(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        text = json.dumps(outcome.document(), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        self._connection.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?)",
            (batch, attempt, worker, outcome.iteration, text, zlib.crc32(text.encode())),
        )

    def absorb(
        self,
        attempts: Iterable[PlacedAttempt],
        keep: Callable[[PlacedAttempt, int], None],
        *,
        journal: str,
        host_id: str,
    ) -> set[tuple[int, int]]:
        """Take attempts that another host recorded, all in one commit; those that are here already once.

        A batch is complete once. A second host that completed it too, since it was believed lost, does
        not count: its runs are kept with that reason as what disturbed them.

        Parameters
        ----------
        attempts : iterable of PlacedAttempt
            From one journal.
        keep : callable
            Called with each attempt that is taken and its number here, before anything says that it is taken.
        journal : str
            Name of the journal.
        host_id : str
            Who recorded them.

        Returns
        -------
        set of (int, int)
            Batch and number in the journal of each attempt that completed its batch.
        """
        completed: set[tuple[int, int]] = set()
        with self._transaction():
            for each in attempts:
                source = (journal, each.batch, each.number)
                if self._one("SELECT 1 FROM placed WHERE journal = ? AND batch = ? AND number = ?", source):
                    continue
                (last,) = self._one("SELECT max(attempt) FROM attempt WHERE batch = ?", (each.batch,)) or (0,)
                number = (last or 0) + 1
                keep(each, number)
                is_late = bool(
                    self._one("SELECT 1 FROM attempt WHERE batch = ? AND state = 'complete'", (each.batch,))
                )
                ended = each.ended_utc or now_utc()
                is_complete = each.ended_utc is not None and not is_late
                state = "complete" if is_complete else "interrupted"
                row = (each.batch, number, state, each.begun_utc, ended)
                self._connection.execute("INSERT INTO attempt VALUES (?, ?, ?, ?, ?)", row)
                for worker, outcome in each.runs:
                    self._insert(each.batch, number, worker, outcome)
                late = ("another host completed the batch before",) if is_late and each.ended_utc else ()
                reasons = (*each.disturbances, *late)
                if reasons:
                    self._note(each.batch, number, reasons)
                self._connection.execute(
                    "INSERT INTO placed VALUES (?, ?, ?, ?, ?)",
                    (each.batch, number, host_id, journal, each.number),
                )
                if is_complete:
                    completed.add((each.batch, each.number))
        return completed

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all that is absorbed meanwhile be one commit, so that the disk is waited for once."""
        with self._transaction():
            yield

    def _one(self, query: str, values: tuple[object, ...]) -> Any:
        return self._connection.execute(query, values).fetchone()

    def note_disturbance(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        """Label an open attempt with what disturbed it; its runs stay, whatever becomes of it.

        Parameters
        ----------
        batch, attempt : int
            An open attempt.
        reasons : sequence of str
            In words, at least one.

        Raises
        ------
        DataError
            If the attempt is not open.
        """
        with self._transaction(power_loss=False):
            self._require_open(batch, attempt)
            self._note(batch, attempt, reasons)

    def _note(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO disturbance VALUES (?, ?, ?)",
            (batch, attempt, json.dumps(list(reasons), ensure_ascii=False)),
        )

    def complete(self, batch: int, attempt: int, expected: int | None = None) -> None:
        """Declare an attempt complete; when this returns, all of it survives a loss of power.

        Parameters
        ----------
        batch, attempt : int
            An open attempt.
        expected : int or None
            Number of outcomes the attempt must have.

        Raises
        ------
        DataError
            If the attempt is not open, or another number of outcomes is there; it stays open.
        """
        with self._transaction():
            self._require_open(batch, attempt)
            (found,) = self._connection.execute(
                "SELECT count(*) FROM run WHERE batch = ? AND attempt = ?", (batch, attempt)
            ).fetchone()
            if expected is not None and found != expected:
                where = f"batch {batch}, attempt {attempt}"
                message = f"{where}, has {found} outcomes in `{self.path}`; expected: {expected}"
                hint = "run the study again with the same --out: the batch is repeated"
                raise DataError(message, hint=hint, code="data.batch-incomplete")
            self._connection.execute(
                "UPDATE attempt SET state = 'complete', ended_utc = ? WHERE batch = ? AND attempt = ?",
                (now_utc(), batch, attempt),
            )

    def complete_together(self, attempts: Sequence[tuple[int, int]]) -> None:
        """Declare several attempts complete in one commit, which costs what that of one does.

        Parameters
        ----------
        attempts : sequence of (int, int)
            Batch and attempt of each; open, or complete after an interruption of this call.

        Raises
        ------
        DataError
            If one is neither; then all stay as they were.
        """
        with self._transaction():
            for batch, attempt in attempts:
                if self._state_of(batch, attempt) == "complete":
                    continue
                self._require_open(batch, attempt)
                self._connection.execute(
                    "UPDATE attempt SET state = 'complete', ended_utc = ? WHERE batch = ? AND attempt = ?",
                    (now_utc(), batch, attempt),
                )

    def completed_batches(self) -> frozenset[int]:
        """Give the numbers of the batches that need not be run again."""
        return frozenset(completed_attempts(self._connection))

    def outcomes(self) -> Iterator[LedgerRow]:
        """Give every outcome of every attempt, by batch, attempt, worker, iteration.

        Raises
        ------
        DataError
            If an outcome does not match its checksum.
        """
        yield from ledger_rows(self._connection, self.path, None)

    def _require_open(self, batch: int, attempt: int) -> None:
        state = self._state_of(batch, attempt)
        if state != "open":
            where = f"attempt {attempt} of batch {batch}"
            message = f"{where} is {state} in `{self.path}`; only an open one takes outcomes"
            raise DataError(message, code="data.attempt-closed")

    def _state_of(self, batch: int, attempt: int) -> str:
        row = self._connection.execute(
            "SELECT state FROM attempt WHERE batch = ? AND attempt = ?", (batch, attempt)
        ).fetchone()
        return "unknown" if row is None else str(row[0])

    @contextmanager
    def _transaction(self, *, power_loss: bool = True) -> Iterator[None]:
        with self._mutex, named_errors(self.path, "take more runs", self._when_full):
            is_within = self._connection.in_transaction
            yield from (
                self._part_of_transaction() if is_within else self._whole_transaction(power_loss=power_loss)
            )

    def _whole_transaction(self, *, power_loss: bool) -> Iterator[None]:
        # SOURCE: sqlite.org/pragma.html#pragma_synchronous: in WAL mode NORMAL writes the log at
        # commit without fsync (safe against process death), FULL also syncs it (power loss).
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if power_loss else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _part_of_transaction(self) -> Iterator[None]:
        """Be a part of the transaction around this that is taken whole, or not at all."""
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            # SQLite has ended the whole transaction where the disk is full.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO part")
            raise
        self._connection.execute("RELEASE part")


def _lock_writer(path: Path) -> TextIOWrapper:
    """Hold the right to write; the kernel gives it back however the process ends."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock = lock_path.open("w", encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error, "give a folder you may write to with --out") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        message = f"another process is recording into `{path}`"
        raise DataError(
            message, hint="wait for it, or give another folder with --out", code="data.locked"
        ) from error
    return lock
