"""The ledger against killed writers and full file systems."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fixtures.outcomes import make_outcome
from fixtures.private_mount import can_mount_privately
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from steelyard.record.ledger_reader import LedgerReader

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
WORKERS, ITERATIONS, BATCHES = 2, 3, 400

WRITER = f"""
import sys
from pathlib import Path
from steelyard.record.ledger import Ledger
from fixtures.outcomes import make_outcome
with Ledger(Path(sys.argv[1]), "p" * 64) as ledger:
    done = ledger.completed_batches()
    print("resumed", len(done), flush=True)
    for batch in range({BATCHES}):
        if batch in done:
            continue
        attempt = ledger.begin_attempt(batch)
        for worker in range({WORKERS}):
            for iteration in range({ITERATIONS}):
                ledger.record(batch, attempt, worker, make_outcome(iteration))
                print("run", batch, attempt, worker, iteration, flush=True)
        ledger.complete(batch, attempt, {WORKERS * ITERATIONS})
        print("batch", batch, attempt, flush=True)
print("end", flush=True)
"""


def start(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


@pytest.mark.parametrize(
    "statement",
    [
        (
            "CREATE VIEW disturbance AS WITH RECURSIVE x(batch, attempt, reasons) AS "
            "(SELECT 0, 1, '[]' UNION ALL SELECT batch + 1, 1, '[]' FROM x) SELECT * FROM x"
        ),
        "CREATE TABLE disturbance (batch, attempt, reasons TEXT AS (printf('%*s', 1 << 30, '')) VIRTUAL)",
        "CREATE TRIGGER more AFTER INSERT ON attempt BEGIN SELECT 1; END",
    ],
)
def test_a_ledger_that_a_stranger_made_endless_is_refused(tmp_path: Path, statement: str) -> None:
    with Ledger(tmp_path / "ledger.sqlite", "p" * 64):
        pass
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as connection:
        if "disturbance" in statement:
            connection.execute("DROP TABLE disturbance")
        connection.execute(statement)
    with pytest.raises(DataError, match="is not one of a ledger"):
        LedgerReader(tmp_path / "ledger.sqlite")


@pytest.mark.long("kills at many instants")
@pytest.mark.timeout(180)
def test_a_killed_writer_loses_nothing_it_reported_and_nothing_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    generator = np.random.Generator(np.random.PCG64(20))
    reported_runs: set[tuple[int, ...]] = set()
    reported_batches: set[tuple[int, ...]] = set()
    ended = False
    for _ in range(20):
        writer = start(path)
        assert writer.stdout is not None
        lines = int(generator.integers(1, 120))
        said = [line for line, _ in zip(writer.stdout, range(lines), strict=False)]
        time.sleep(generator.uniform(0, 0.003))
        writer.kill()
        said += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        ended = ended or said[-1].startswith("end")
        for line in said:
            kind, *numbers = line.split()
            if not line.endswith("\n"):
                continue  # killed while saying it
            if kind == "run":
                reported_runs.add(tuple(map(int, numbers)))
            elif kind == "batch":
                reported_batches.add(tuple(map(int, numbers)))
        check(path, reported_runs, reported_batches)
    assert len(reported_batches) > 20, "the writers were killed before they did anything"
    assert not ended
    with start(path) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readlines()[-1] == "end\n"
    with LedgerReader(path) as reader:
        completed = reader.completed_attempts()
        assert sorted(completed) == list(range(BATCHES))
        rows = [row for row in reader.outcomes() if row.state == "complete"]
    assert len(rows) == BATCHES * WORKERS * ITERATIONS


def check(path: Path, runs: set[tuple[int, ...]], batches: set[tuple[int, ...]]) -> None:
    with LedgerReader(path) as reader:
        found = [(row.batch, row.attempt, row.worker, row.iteration) for row in reader.outcomes()]
        completed = reader.completed_attempts()
    assert runs <= set(found)
    assert len(found) == len(set(found))
    assert batches <= set(completed.items())
    for batch, attempt in completed.items():
        assert sum(row[:2] == (batch, attempt) for row in found) == WORKERS * ITERATIONS


FULL_DISK = """
import sys
from pathlib import Path
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from fixtures.outcomes import make_outcome
folder = Path(sys.argv[1])
(folder / "ballast").write_bytes(bytes(500_000))
reported = []
with Ledger(folder / "ledger.sqlite") as ledger:
    try:
        for batch in range(10_000):
            attempt = ledger.begin_attempt(batch)
            for iteration in range(20):
                ledger.record(batch, attempt, 0, make_outcome(iteration, message="x" * 2000))
                reported.append((batch, iteration))
            ledger.complete(batch, attempt, 20)
    except DataError as error:
        print(error.code, error.message, "|", error.hint)
    else:
        raise SystemExit("the file system never filled up")
(folder / "ballast").unlink()  # the room a user makes
with Ledger(folder / "ledger.sqlite") as ledger:
    found = [(row.batch, row.iteration) for row in ledger.outcomes()]
    assert set(reported) <= set(found), "a reported run is gone"
    assert len(found) == len(set(found))
    attempt = ledger.begin_attempt(max(ledger.completed_batches(), default=-1) + 1)
    ledger.record(max(ledger.completed_batches(), default=-1) + 1, attempt, 0, make_outcome(1))
print("resumed after", len(reported), "runs")
"""


@pytest.mark.needs_root
@pytest.mark.skipif(not can_mount_privately(), reason="needs the right to mount in a private namespace")
def test_a_full_file_system_is_named_and_everything_finished_is_intact(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, FULL_DISK, "2m")
    assert done.returncode == 0, done.stderr
    assert "data.disk-full" in done.stdout
    assert f"`{tmp_path}/small/ledger.sqlite` cannot take more runs" in done.stdout
    assert "free space" in done.stdout
    assert "resumed after" in done.stdout


FULL_FOR_TABLES = """
import sys
from pathlib import Path
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from steelyard.record.tables import read_runs, write_tables
from fixtures.outcomes import make_outcome, make_plan
folder = Path(sys.argv[1])
plan = make_plan()
plan.write(folder / "plan.json")
with Ledger(folder / "ledger.sqlite", plan.id) as ledger:
    for batch in (0, 1):
        attempt = ledger.begin_attempt(batch)
        for iteration in range(300):
            ledger.record(batch, attempt, 0, make_outcome(iteration))
        ledger.complete(batch, attempt, 300)
ballast = (folder / "ballast").open("wb")
try:
    while True:
        ballast.write(b"x" * 512)
        ballast.flush()
except OSError:
    pass
ballast.raw.close()
try:
    write_tables(folder)
except DataError as error:
    print(error.code, error.message, "|", error.hint)
(folder / "ballast").unlink()
print(sorted(path.name for path in folder.rglob("*.tmp")))
write_tables(folder)
print(read_runs(folder).num_rows, "runs")
"""


@pytest.mark.needs_root
@pytest.mark.skipif(not can_mount_privately(), reason="needs the right to mount in a private namespace")
def test_tables_that_do_not_fit_are_named_and_can_be_written_later(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, FULL_FOR_TABLES, "16m")
    assert done.returncode == 0, done.stderr
    error, leftovers, count = done.stdout.splitlines()
    assert error.startswith("data.disk-full")
    assert "No space left on device" in error
    assert (leftovers, count) == ("[]", "600 runs")


def on_small_disk(tmp_path: Path, program: str, size: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    folder = tmp_path / "small"
    folder.mkdir()
    command = (
        f"mount -t tmpfs -o size={size} none '{folder}' && exec '{sys.executable}' '{script}' '{folder}'"
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=ENVIRONMENT,
    )


READ_ONLY = """
import sys
from pathlib import Path
from steelyard.record.ledger_reader import LedgerReader
with LedgerReader(Path(sys.argv[1]) / "ledger.sqlite") as reader:
    print(len(list(reader.outcomes())))
"""


@pytest.mark.needs_root
@pytest.mark.skipif(not can_mount_privately(), reason="needs the right to mount in a private namespace")
def test_a_ledger_on_a_read_only_file_system_can_be_read(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.record(0, ledger.begin_attempt(0), 0, make_outcome(1))
    command = (
        f"mount --bind '{tmp_path}' '{tmp_path}' && mount -o remount,ro,bind '{tmp_path}' && "
        f"exec '{sys.executable}' -c '{READ_ONLY}' '{tmp_path}'"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(Exception, match=r"cannot write .*: Not a directory") as caught:
        Ledger(blocker / "ledger.sqlite")
    assert getattr(caught.value, "hint", None)
