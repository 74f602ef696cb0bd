"""A study while it is run, read from its ledger: how far, how long still, what is known, what disturbed it.

The ledger is opened for reading alone, and only while somebody looks: what is new since the last reading is
read, once a second at most, and the connection closed again, so that no reader keeps its log from being
emptied.
"""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError, SteelyardError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.ledger_reader import named_errors
from steelyard.record.ledger_schema import require_content
from steelyard.run.progress import Estimator, cell_text
from steelyard.serve.result_folder import require_contained
from steelyard.study import QUANTITIES_SO_FAR, RunSoFar, installed

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding

MOST_RUNS: Final = 5000
"""Runs that one reading takes; a faster study is followed with a delay."""
MOST_KEPT: Final = 200_000
"""Runs that are kept for the estimates so far."""
PATIENCE_S: Final = 2.0
SHOWN_CELLS: Final = 40
SHOWN_DISTURBANCES: Final = 8
_STEPS: Final = 10_000
_NUMBERS: Final = re.compile(r"\d[\d.]*")
_BEHIND: Final = 100
_QUANTITIES: Final = ", ".join(
    f"json_extract(outcome, '$.quantities.{name}.value')" for name in QUANTITIES_SO_FAR
)
_NEW_RUNS: Final = f"""
    SELECT batch, begun_utc, ended_utc, json_extract(outcome, '$.status'), {_QUANTITIES}
    FROM attempt JOIN run USING (batch, attempt)
    WHERE batch >= ? AND state = 'complete' ORDER BY batch LIMIT ?
"""  # noqa: S608 - constants
_OPEN_ENDED: Final = ("budget_s", "runs_max")
"""Options of a study that ends when it is settled."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What can be said of a study at a moment.

    Parameters
    ----------
    done, total : int
        Complete batches, and those planned; a study that ends when it is settled has fewer than planned.
    is_open_ended : bool
        Whether it may end before.
    elapsed_s : float
        Since its first batch [s].
    left_s, most_left_s : float or None
        Expected time left; the budget that is left, where it has one [s].
    cell : str
        What was run last.
    runs, failed : int
        Runs so far, and those among them that failed.
    estimates : tuple of Finding
        What is known so far.
    cells : tuple of (str, int, float)
        Without such estimates: cells with their runs, and the median of their wall time [ns].
    disturbances : tuple of (str, int)
        The newest of each kind that was seen, and how often.
    """

    done: int
    total: int
    is_open_ended: bool
    elapsed_s: float
    left_s: float | None
    most_left_s: float | None
    cell: str
    runs: int
    failed: int
    estimates: tuple[Finding, ...]
    cells: tuple[tuple[str, int, float], ...]
    disturbances: tuple[tuple[str, int], ...]

    @property
    def fraction(self) -> float:
        """How much is over, in [0, 1]: of the batches or, where it may end sooner, of the budget."""
        parts = [self.done / self.total if self.total else 0.0]
        if self.most_left_s is not None and self.elapsed_s + self.most_left_s > 0:
            parts.append(self.elapsed_s / (self.elapsed_s + self.most_left_s))
        return max(parts)


class Follower:
    """Follows one study.

    Parameters
    ----------
    folder : Path
        Its result folder.

    Raises
    ------
    DataError
        If the plan is absent or damaged.
    """

    def __init__(self, folder: Path) -> None:
        require_contained(folder)
        self._folder = folder
        self._stamp = _plan_stamp(folder)
        self._plan = read_plan(folder / PLAN_NAME)
        self._cells = {batch.number: batch.cell for batch in self._plan.batches}
        self._blocks = {batch.number: batch.block for batch in self._plan.batches}
        self._estimator = Estimator(self._plan)
        self._complete: set[int] = set()
        self._frontier = 0
        self._runs: list[RunSoFar] = []
        self._count = self._failed = 0
        self._values: dict[int, list[float]] = defaultdict(list)
        self._disturbed: dict[tuple[int, int], tuple[str, ...]] = {}
        self._first_s: float | None = None
        self._last_batch: int | None = None

    def snapshot(self) -> Snapshot:
        """Read what is new, and say what is known.

        Raises
        ------
        DataError
            If the ledger is damaged, or the plan is another one than at first.
        """
        if _plan_stamp(self._folder) != self._stamp:
            message = f"`{self._folder / PLAN_NAME}` was exchanged"
            raise DataError(message, hint="open the page again", code="data.other-plan")
        self._read()
        now_s = datetime.now(UTC).timestamp()
        elapsed_s = 0.0 if self._first_s is None else max(now_s - self._first_s, 0.0)
        options = self._plan.options
        is_open_ended = all(options.get(name) is not None for name in _OPEN_ENDED)
        budget = options.get("budget_s") if is_open_ended else None
        estimates = self._estimates()
        return Snapshot(
            done=len(self._complete),
            total=len(self._plan.batches),
            is_open_ended=is_open_ended,
            elapsed_s=elapsed_s,
            left_s=None if is_open_ended else self._left_s(),
            most_left_s=max(float(budget) - elapsed_s, 0.0) if isinstance(budget, int | float) else None,
            cell=self._last_cell(),
            runs=self._count,
            failed=self._failed,
            estimates=estimates,
            cells=() if estimates else self._medians(),
            disturbances=self._disturbances(),
        )

    def _left_s(self) -> float | None:
        batches = [batch for batch in self._plan.batches if batch.number not in self._complete]
        return self._estimator.left_s(batches)

    def _disturbances(self) -> tuple[tuple[str, int], ...]:
        """Count what is alike but for its numbers and names, and give the newest of each."""
        counts: Counter[str] = Counter()
        newest: dict[str, str] = {}
        for reason in (reason for _, reasons in sorted(self._disturbed.items()) for reason in reasons):
            kind = _NUMBERS.sub("", reason.partition(":")[0])
            counts[kind] += 1
            newest[kind] = reason
        return tuple((newest[kind], count) for kind, count in counts.most_common(SHOWN_DISTURBANCES))

    def _read(self) -> None:
        path = self._folder / LEDGER_NAME
        if not path.is_file():
            return
        # Closed before anything is done with the rows: a study that ends meanwhile could not remove its log.
        with named_errors(path), closing(_connected(path)) as connection:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                return
            require_content(connection, path)
            rows = connection.execute(_NEW_RUNS, (self._frontier, MOST_RUNS)).fetchall()
            reasons = connection.execute(
                "SELECT batch, attempt, reasons FROM disturbance WHERE batch >= ?", (self._frontier,)
            ).fetchall()
        batches: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for batch, *row in rows:
            batches[batch].append(tuple(row))
        if len(rows) == MOST_RUNS and len(batches) > 1:
            del batches[max(batches)]  # it may have more runs than were read
        for batch, found in batches.items():
            if batch not in self._complete and batch in self._cells:
                self._take(batch, found)
        self._disturbed |= {
            (batch, attempt): tuple(map(str, json.loads(text))) for batch, attempt, text in reasons
        }
        # Batches are run in the order of their numbers; those that are repeated are a little behind.
        is_behind = len(rows) == MOST_RUNS
        newest = max(self._complete, default=0)
        self._frontier = newest + 1 if is_behind else max(self._frontier, newest - _BEHIND)

    def _take(self, batch: int, rows: list[tuple[Any, ...]]) -> None:
        cell, block = self._cells[batch], self._blocks[batch]
        for _, _, status, *values in rows:
            self._count += 1
            self._failed += status != "completed"
            known = [float(value) if isinstance(value, int | float) else None for value in values]
            if status == "completed" and known[0] and len(self._runs) < MOST_KEPT:
                self._values[cell].append(known[0])
                self._runs.append(RunSoFar(cell, block, *known))
        begun, ended, *_ = rows[0]
        self._learn(batch, str(begun), ended)

    def _learn(self, batch: int, begun: str, ended: str | None) -> None:
        self._complete.add(batch)
        self._last_batch = batch
        begun_s = _seconds(begun)
        self._first_s = begun_s if self._first_s is None else min(self._first_s, begun_s)
        if ended is not None:
            cell = self._plan.cells[self._cells[batch]]
            self._estimator.add(cell, max(_seconds(ended) - begun_s, 0.0))

    def _last_cell(self) -> str:
        if self._last_batch is None:
            return ""
        return cell_text(self._plan.cells[self._cells[self._last_batch]].levels)

    def _estimates(self) -> tuple[Finding, ...]:
        try:
            return tuple(installed(self._plan.study).look_so_far(self._folder, self._plan, self._runs))
        except SteelyardError:
            return ()  # a file of it is just being written

    def _medians(self) -> tuple[tuple[str, int, float], ...]:
        return tuple(
            (cell_text(self._plan.cells[cell].levels), len(values), statistics.median(values))
            for cell, values in sorted(self._values.items())[:SHOWN_CELLS]
        )


def _connected(path: Path) -> sqlite3.Connection:
    """Open a ledger so that nothing is written beside it either, and no query takes long.

    Without a log, which its writer removes at the end, it is read as it is: SQLite would make an empty one.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.is_file() and log.stat().st_size > 0
    address = f"{path.resolve().as_uri()}?mode=ro&{'readonly_shm=1' if has_log else 'immutable=1'}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0.5)
    end_s = time.monotonic() + PATIENCE_S
    connection.set_progress_handler(lambda: time.monotonic() > end_s, _STEPS)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _plan_stamp(folder: Path) -> tuple[int, int, int]:
    try:
        status = (folder / PLAN_NAME).stat()
    except OSError as error:
        message = f"cannot read `{folder / PLAN_NAME}`: {error.strerror}"
        raise DataError(
            message, hint="the folder may have been moved or removed", code="data.absent"
        ) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _seconds(text: str) -> float:
    """Give a time of the ledger since 1970 [s]."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"the ledger has the time `{text[:40]}`, which is none"
        raise DataError(message, hint="restore the file from a copy", code="data.corrupt") from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
