"""A running study as its ledger says: what is done, what is known, and that a reader leaves no trace."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_outcome, make_plan
from steelyard.errors import DataError
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.serve.live import Follower

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model.run_outcome import RunOutcome

PLAN = make_plan(cells=2, blocks=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PLAN.write(tmp_path / "plan.json")
    return tmp_path


def taking(iteration: int, wall_ns: int) -> RunOutcome:
    quantity = {"value": wall_ns, "source": "perf_record", "granularity": 1}
    return make_outcome(iteration, quantities={"wall_ns": quantity})


def record(ledger: Ledger, batch: int, wall_ns: int) -> None:
    attempt = ledger.begin_attempt(batch)
    for iteration in (1, 2):
        ledger.record(batch, attempt, 0, taking(iteration, wall_ns))
    ledger.complete(batch, attempt)


def test_what_is_new_is_added_to_what_is_known(folder: Path) -> None:
    follower = Follower(folder)
    assert follower.snapshot().done == 0
    with Ledger(folder / LEDGER_NAME, PLAN.id) as ledger:
        record(ledger, 0, 1000)
        first = follower.snapshot()
        assert (first.done, first.total, first.runs, first.left_s is not None) == (1, 8, 2, True)
        record(ledger, 1, 3000)
        record(ledger, 2, 1200)
        attempt = ledger.begin_attempt(3)
        ledger.record(3, attempt, 0, taking(1, 9))
        second = follower.snapshot()
    assert (second.done, second.runs) == (3, 6)
    assert second.cells == (("bare w0", 2, 3000.0), ("bare w1", 4, 1100.0))


def test_a_reader_leaves_the_folder_as_it_was(folder: Path) -> None:
    follower = Follower(folder)
    with Ledger(folder / LEDGER_NAME, PLAN.id) as ledger:
        record(ledger, 0, 1000)
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        for _ in range(3):
            follower.snapshot()
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    names = {path.name for path in folder.iterdir()}
    assert not names & {f"{LEDGER_NAME}-wal", f"{LEDGER_NAME}-shm"}


def test_a_ledger_is_whole_beside_a_reader(folder: Path) -> None:
    """A copy of the database alone has every run, though a connection was open when it was closed."""
    path = folder / LEDGER_NAME
    with Ledger(path, PLAN.id) as ledger:
        record(ledger, 0, 1000)
        reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        reader.execute("SELECT count(*) FROM run").fetchone()
    copy = folder / "copy.sqlite"
    copy.write_bytes(path.read_bytes())
    reader.close()
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (2,)


def test_a_strangers_database_is_refused(folder: Path) -> None:
    with sqlite3.connect(folder / LEDGER_NAME) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute(
            "CREATE VIEW run AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
        )
    with pytest.raises(DataError, match="not a ledger"):
        Follower(folder).snapshot()
