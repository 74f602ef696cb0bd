from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_outcome
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.ledger_schema import MIGRATIONS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def fill(ledger: Ledger, batch: int, iterations: int = 3) -> int:
    attempt = ledger.begin_attempt(batch)
    for iteration in range(1, iterations + 1):
        ledger.record(batch, attempt, 0, make_outcome(iteration))
    return attempt


def test_what_was_recorded_is_read_back_as_it_was(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = ledger.begin_attempt(4)
        ledger.record(4, attempt, 1, make_outcome(2, message="naïve ✓"))
        (row,) = ledger.outcomes()
    assert (row.batch, row.attempt, row.worker, row.iteration, row.state) == (4, 1, 1, 2, "open")
    assert row.outcome == make_outcome(2, message="naïve ✓")


def test_a_batch_is_complete_only_after_it_was_declared(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = fill(ledger, 0)
        assert ledger.completed_batches() == frozenset()
        ledger.complete(0, attempt, expected=3)
        assert ledger.completed_batches() == {0}


def test_a_batch_with_outcomes_missing_stays_open(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = fill(ledger, 0)
        with pytest.raises(DataError, match=r"has 3 outcomes in .*; expected: 4"):
            ledger.complete(0, attempt, expected=4)
        assert ledger.completed_batches() == frozenset()
        ledger.record(0, attempt, 0, make_outcome(4))
        ledger.complete(0, attempt, expected=4)


def test_an_interrupted_attempt_is_kept_and_labelled(path: Path) -> None:
    with Ledger(path) as ledger:
        fill(ledger, 0, iterations=2)
    with Ledger(path) as ledger:
        attempt = fill(ledger, 0)
        ledger.complete(0, attempt)
        assert attempt == 2
        states = [(row.attempt, row.state) for row in ledger.outcomes()]
    assert states == [(1, "interrupted")] * 2 + [(2, "complete")] * 3


def test_a_complete_batch_is_not_begun_again(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.complete(0, fill(ledger, 0))
        with pytest.raises(DataError, match="batch 0 is complete"):
            ledger.begin_attempt(0)


def test_nothing_is_recorded_twice(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = fill(ledger, 0)
        with pytest.raises(DataError, match="iteration 2 of worker 0 in batch 0, attempt 1, is in"):
            ledger.record(0, attempt, 0, make_outcome(2))
        ledger.record(0, attempt, 1, make_outcome(2))
        assert len(list(ledger.outcomes())) == 4


@pytest.mark.parametrize(("batch", "attempt"), [(0, 1), (0, 2), (1, 1)])
def test_only_an_open_attempt_takes_outcomes(path: Path, batch: int, attempt: int) -> None:
    with Ledger(path) as ledger:
        ledger.complete(0, fill(ledger, 0))
        with pytest.raises(DataError, match="only an open one takes outcomes"):
            ledger.record(batch, attempt, 0, make_outcome(9))


def test_a_ledger_belongs_to_one_plan(path: Path) -> None:
    with Ledger(path, "a" * 64):
        pass
    with Ledger(path, "a" * 64) as ledger:
        assert ledger.plan_id == "a" * 64
    with pytest.raises(DataError, match="contains runs of plan aaaaaaaaaaaa, not of plan bbbbbbbbbbbb"):
        Ledger(path, "b" * 64)
    with Ledger(path) as ledger:  # the refused opening has given the lock back
        assert ledger.plan_id == "a" * 64


def test_one_process_writes_at_a_time(path: Path) -> None:
    with Ledger(path), pytest.raises(DataError, match="another process is recording"):
        Ledger(path)


def test_a_reader_sees_a_study_in_execution(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.complete(0, fill(ledger, 0))
        fill(ledger, 1, iterations=1)
        with LedgerReader(path) as reader:
            assert reader.completed_attempts() == {0: 1}
            assert reader.batches() == (0, 1)
            assert len(list(reader.outcomes(1))) == 1


def test_a_reader_leaves_nothing_behind_and_can_change_nothing(path: Path) -> None:
    with Ledger(path) as ledger:
        fill(ledger, 0)
    before = path.read_bytes()
    with LedgerReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("DELETE FROM run")
    assert path.read_bytes() == before
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_several_threads_record_at_once(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = ledger.begin_attempt(0)

        def work(worker: int) -> None:
            for iteration in range(50):
                ledger.record(0, attempt, worker, make_outcome(iteration))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ledger.complete(0, attempt, expected=200)


_OWN = {"metric": "cpu", "value": 1.0, "unit": "ns", "iteration": 1, "phase": "measure"}


def test_a_value_json_cannot_say_is_refused_and_leaves_the_ledger_usable(path: Path) -> None:
    with Ledger(path) as ledger:
        attempt = ledger.begin_attempt(0)
        with pytest.raises(ValueError, match="not JSON compliant"):
            ledger.record(0, attempt, 0, make_outcome(1, own=[{**_OWN, "value": float("nan")}]))
        ledger.record(0, attempt, 0, make_outcome(1))


@pytest.mark.parametrize("opener", [Ledger, LedgerReader])
def test_a_file_that_is_no_database_is_named(path: Path, opener: type[Ledger | LedgerReader]) -> None:
    path.write_bytes(b"this is a diary, not a ledger" * 100)
    with pytest.raises(DataError, match="is damaged: file is not a database") as caught:
        opener(path)
    assert caught.value.hint


@pytest.mark.parametrize("opener", [Ledger, LedgerReader])
def test_another_database_is_refused(path: Path, opener: type[Ledger | LedgerReader]) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(DataError, match="not a ledger of runs"):
        opener(path)


def test_a_newer_ledger_is_refused(path: Path) -> None:
    with Ledger(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataError, match="schema `steelyard/ledger/99`"):
        Ledger(path)


def test_an_empty_or_absent_ledger_has_nothing_to_read(path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        LedgerReader(path)
    path.touch()
    with pytest.raises(DataError, match="it is empty"):
        LedgerReader(path)


def test_damage_anywhere_in_the_file_is_noticed(path: Path) -> None:
    with Ledger(path) as ledger:
        for batch in range(20):
            ledger.complete(batch, fill(ledger, batch, iterations=10))
    whole = path.read_bytes()
    expected = read_all(path)
    for position in range(150, len(whole), len(whole) // 60):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        try:
            found = read_all(path)
        except DataError:
            continue
        # A byte nothing is stored in, or the text of a date: every run must be what it was.
        assert found == expected, f"a changed byte at {position} went unnoticed"


def read_all(path: Path) -> list[object]:
    with LedgerReader(path) as reader:
        return [(row.batch, row.attempt, row.worker, row.iteration, row.outcome) for row in reader.outcomes()]


def test_a_truncated_file_is_refused(path: Path) -> None:
    with Ledger(path) as ledger:
        fill(ledger, 0, iterations=200)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        Ledger(path)


def test_a_ledger_of_the_first_version_is_read_as_it_is_and_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute("INSERT INTO attempt VALUES (0, 1, 'complete', 'then', 'then')")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with LedgerReader(path) as reader:
        assert (reader.disturbances(), reader.completed_attempts()) == ({}, {0: 1})
    with Ledger(path) as ledger:
        assert ledger.completed_batches() == {0}
        ledger.note_disturbance(1, ledger.begin_attempt(1), ["swapped"])
    with LedgerReader(path) as reader:
        assert reader.disturbances() == {(1, 1): ("swapped",)}


def test_only_an_open_attempt_is_labelled(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        attempt = ledger.begin_attempt(0)
        ledger.complete(0, attempt)
        with pytest.raises(DataError, match="is complete"):
            ledger.note_disturbance(0, attempt, ["late"])


def test_attempts_completed_together_are_complete_or_none_is(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite", "p") as ledger:
        attempts = [(batch, ledger.begin_attempt(batch)) for batch in range(3)]
        with pytest.raises(DataError, match="unknown"):
            ledger.complete_together([*attempts, (7, 1)])
        assert ledger.completed_batches() == frozenset()
        ledger.complete_together(attempts)
        assert ledger.completed_batches() == frozenset({0, 1, 2})
        # An interruption between the commit and its return has them completed again.
        ledger.complete_together(attempts)
        assert ledger.completed_batches() == frozenset({0, 1, 2})
