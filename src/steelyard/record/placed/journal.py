"""What a host measured, as lines that are added to one file: all that a host hands back.

One process writes a journal; any other may read it meanwhile, also over a network file system, on which no
database may be shared. A line that was cut off, by a dead node or a full disk, ends what can be read; so does
one whose checksum is wrong, which is told when nobody writes any more.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from steelyard.errors import DataError, unwritable
from steelyard.model.run_outcome import RunOutcome
from steelyard.record.clock import now_utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

JOURNAL_NAME: Final = "journal.jsonl"
_CHECKSUM_DIGITS: Final = 8
_LARGEST_COUNT: Final = 1 << 31


@dataclass(slots=True)
class PlacedAttempt:
    """One attempt at a batch.

    Parameters
    ----------
    batch : int
        Number of the batch in the plan.
    number : int
        Of the attempt, from 1, counted by the journal.
    begun_utc, ended_utc : str or None
        ISO 8601; without an end it was not completed.
    runs : list of (int, RunOutcome)
        Worker and outcome of each run, in order.
    disturbances : tuple of str
        What disturbed it, in words.
    """

    batch: int
    number: int
    begun_utc: str
    ended_utc: str | None = None
    runs: list[tuple[int, RunOutcome]] = field(default_factory=list)
    disturbances: tuple[str, ...] = ()


class Journal:
    """Writer of a journal, as a context manager; where an execution keeps its outcomes.

    Parameters
    ----------
    path : Path
        The file; it must not exist.

    Raises
    ------
    DataError
        If the file exists or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._attempts: dict[int, int] = {}
        self._complete: set[int] = set()
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise unwritable(path, error, "the folder of a part belongs to one process") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def begin_attempt(self, batch: int) -> int:
        """Begin to run a batch; give the number of the attempt."""
        number = self._attempts[batch] = self._attempts.get(batch, 0) + 1
        self._write({"begin": batch, "number": number, "utc": now_utc()})
        return number

    def record(self, batch: int, attempt: int, worker: int, outcome: RunOutcome) -> None:
        """Keep one outcome."""
        del batch, attempt  # the last one begun
        self._write({"worker": worker, "outcome": outcome.document()})

    def note_disturbance(self, batch: int, attempt: int, reasons: Sequence[str]) -> None:
        """Label the attempt with what disturbed it."""
        del batch, attempt
        self._write({"disturbed": list(reasons)})

    def complete(self, batch: int, attempt: int, expected: int | None = None) -> None:
        """Declare the attempt complete; when this returns, it survives a loss of power."""
        del attempt, expected
        self._write({"complete": batch, "utc": now_utc()})
        self._sync()
        self._complete.add(batch)

    def keep_together(self, attempts: Iterable[PlacedAttempt]) -> None:
        """Keep whole attempts in one line: whoever reads it has all or none of them.

        When this returns, they survive a loss of power.
        """
        together: list[dict[str, Any]] = []
        for each in attempts:
            together.append({"begin": each.batch, "number": each.number, "utc": each.begun_utc})
            together += [{"worker": worker, "outcome": run.document()} for worker, run in each.runs]
            if each.disturbances:
                together.append({"disturbed": list(each.disturbances)})
            together.append({"complete": each.batch, "utc": each.ended_utc})
            self._complete.add(each.batch)
        if together:
            self._write({"together": together})
            self._sync()

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.path, error, "free some space there; what is complete is kept") from error

    def completed_batches(self) -> frozenset[int]:
        """Give the batches that are complete in this journal."""
        return frozenset(self._complete)

    def _write(self, document: dict[str, Any]) -> None:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        line = b"%0*x %b\n" % (_CHECKSUM_DIGITS, zlib.crc32(text), text)
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise unwritable(self.path, error, "free some space there; what is complete is kept") from error


@dataclass(slots=True)
class JournalReader:
    """Reads a journal as far as it is written, again and again.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.
    """

    path: Path
    _place: int = 0
    _open: PlacedAttempt | None = None
    _runs: set[tuple[int, int]] = field(default_factory=set)

    def completed(self) -> Iterator[PlacedAttempt]:
        """Give the attempts that ended since the last time: complete ones, and those that were repeated.

        Raises
        ------
        DataError
            If a whole line says what no journal does: nothing behind it is used.
        """
        for document in self._lines():
            try:
                ended = self._take(document)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._damaged(error) from error
            if ended is not None:
                yield ended

    def _take(self, document: dict[str, Any]) -> PlacedAttempt | None:
        """Take a line; give the attempt that ends with it."""
        now = self._open
        if "begin" in document:
            batch, number = _count(document["begin"]), _count(document["number"])
            self._open = PlacedAttempt(batch, number, _text(document["utc"]))
            self._runs.clear()
            return now
        if now is None:  # the rest of an attempt that was taken as one that nobody goes on with
            if document.keys().isdisjoint(("outcome", "disturbed", "complete")):
                message = f"a line of {sorted(document)}"
                raise ValueError(message)
            return None
        if "outcome" in document:
            outcome = RunOutcome.of(document["outcome"])
            run = (_count(document["worker"]), _count(outcome.iteration))
            if run in self._runs:
                message = f"iteration {run[1]} of worker {run[0]} stands there twice"
                raise ValueError(message)
            self._runs.add(run)
            now.runs.append((run[0], outcome))
        elif "disturbed" in document:
            now.disturbances = tuple(map(_text, document["disturbed"]))
        elif document["complete"] == now.batch:
            now.ended_utc = _text(document["utc"])
            self._open = None
            return now
        return None

    def _damaged(self, error: Exception) -> DataError:
        message = f"`{self.path}` is damaged before byte {self._place}: {' '.join(str(error).split())[:200]}"
        hint = "what stands before it is kept, what it lacks is placed again"
        return DataError(message, hint=hint, code="data.journal")

    def rest(self) -> PlacedAttempt | None:
        """Give the attempt that was not completed, for a journal that nobody writes any more."""
        rest, self._open = self._open, None
        return rest

    def unreadable(self) -> tuple[int, int]:
        """Give the byte of the first damaged line, and how many lines there are from it on.

        For a journal that nobody writes any more, of which `completed` has given everything: whole lines that
        are left begin with one whose checksum is wrong. A line that was cut off at the end is none.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._place)
                return self._place, sum(line.endswith(b"\n") for line in file)
        except OSError:
            return self._place, 0  # reading has said so

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        except OSError as error:
            message = f"cannot read `{self.path}`: {error.strerror}"
            raise DataError(message, hint="check the rights of the folder", code="data.unreadable") from error
        with file:
            file.seek(self._place)
            for line in file:
                checksum, _, text = line.rstrip(b"\n").partition(b" ")
                if not line.endswith(b"\n") or checksum != b"%0*x" % (_CHECKSUM_DIGITS, zlib.crc32(text)):
                    return
                self._place += len(line)
                try:
                    document = json.loads(text, parse_constant=_no_number)
                except (ValueError, RecursionError) as error:
                    raise self._damaged(error) from error
                together = document.get("together") if isinstance(document, dict) else None
                yield from together if isinstance(together, list) else (document,)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST_COUNT:
        message = f"{str(value)[:80]!r} is no number of a batch, an attempt, a worker or an iteration"
        raise ValueError(message)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"{str(value)[:80]!r} is no text"
        raise TypeError(message)
    return value


def _no_number(text: str) -> float:
    message = f"`{text}` is no number"
    raise ValueError(message)
