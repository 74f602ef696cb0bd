"""A running study as its ledger says: what is done, what is known, and that a reader leaves no trace."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
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


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_last_reading_is_whole_and_leaves_no_log(folder: Path) -> None:
    follower = Follower(folder)
    with Ledger(folder / LEDGER_NAME, PLAN.id) as ledger:
        record(ledger, 0, 1000)
        follower.snapshot()
        record(ledger, 1, 3000)
    before = names_in(folder)
    assert follower.snapshot().done == 2
    assert Follower(folder).snapshot().done == 2
    assert names_in(folder) == before
    assert f"{LEDGER_NAME}-wal" not in before


def test_a_writer_that_ends_beside_a_reader_removes_its_log(folder: Path) -> None:
    path = folder / LEDGER_NAME
    with Ledger(path, PLAN.id) as ledger:
        record(ledger, 0, 1000)
        reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        reader.execute("SELECT count(*) FROM run").fetchone()
        leaving = threading.Timer(0.1, reader.close)
        leaving.start()
    leaving.join()
    assert not names_in(folder) & {f"{LEDGER_NAME}-wal", f"{LEDGER_NAME}-shm"}


def test_a_killed_study_is_read_with_its_log(folder: Path) -> None:
    path = folder / LEDGER_NAME
    script = (
        "import os, sys; from pathlib import Path\n"
        "sys.path[:0] = sys.argv[2].split(os.pathsep)\n"
        "from unit.serve.test_live import PLAN, record; from steelyard.record.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]), PLAN.id); record(ledger, 0, 1000); os.kill(os.getpid(), 9)\n"
    )
    tests = os.pathsep.join(each for each in sys.path if each)
    subprocess.run([sys.executable, "-c", script, str(path), tests], check=False)
    log = folder / f"{LEDGER_NAME}-wal"
    before = {name: (folder / name).read_bytes() for name in names_in(folder)}
    assert log.stat().st_size > 0
    assert Follower(folder).snapshot().done == 1
    assert {name: (folder / name).read_bytes() for name in names_in(folder)} == before


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
