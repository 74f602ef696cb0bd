from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.outcomes import make_outcome
from steelyard.errors import DataError
from steelyard.record.ledger import Ledger
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.placed.journal import Journal, JournalReader, PlacedAttempt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write(path: Path, batches: Iterable[int] = (0, 1), runs: int = 2) -> None:
    with Journal(path) as journal:
        for batch in batches:
            attempt = journal.begin_attempt(batch)
            for iteration in range(1, runs + 1):
                journal.record(batch, attempt, 0, make_outcome(iteration, message="naïve ✓"))
            journal.complete(batch, attempt)


def keep_nothing(_attempt: PlacedAttempt, _number: int) -> None:
    pass


def test_a_journal_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "j"
    reader = JournalReader(path)
    assert list(reader.completed()) == []
    with Journal(path) as journal:
        attempt = journal.begin_attempt(7)
        journal.record(7, attempt, 1, make_outcome(1))
        assert list(reader.completed()) == []
        journal.note_disturbance(7, attempt, ["a neighbour"])
        journal.complete(7, attempt)
        (found,) = reader.completed()
        assert (found.batch, found.number, found.disturbances) == (7, 1, ("a neighbour",))
        assert found.runs == [(1, make_outcome(1))]
        assert found.ended_utc is not None
        assert journal.completed_batches() == {7}
        journal.begin_attempt(8)
        assert list(reader.completed()) == []
    assert reader.rest() is not None
    assert reader.rest() is None


def test_a_repeated_batch_has_two_attempts(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.note_disturbance(3, journal.begin_attempt(3), ["a neighbour"])
        journal.complete(3, journal.begin_attempt(3))
    first, second = JournalReader(tmp_path / "j").completed()
    assert [(each.number, each.ended_utc is None) for each in (first, second)] == [(1, True), (2, False)]


@given(cut=st.integers(0, 5000))
def test_attempts_that_are_kept_together_are_read_together(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    blocks = [(0, 1), (2, 3)]
    with Journal(path) as journal:
        for block in blocks:
            journal.keep_together(
                PlacedAttempt(batch, 1, "begun", "ended", [(0, make_outcome(1))], ("a neighbour",))
                for batch in block
            )
        journal.keep_together([])
    content = path.read_bytes()
    assert len(content) < 5000
    path.write_bytes(content[:cut])
    found = [each.batch for each in JournalReader(path).completed()]
    assert found in ([], [0, 1], [0, 1, 2, 3])
    assert (found == [0, 1, 2, 3]) == (cut >= len(content))


@pytest.mark.parametrize(
    "line", ['{"together": 1}', '{"together": [1]}', '{"together": [{"complete": 0}, {}]}']
)
def test_lines_that_no_journal_has_are_damage(tmp_path: Path, line: str) -> None:
    (tmp_path / "j").write_bytes(b"%08x %b\n" % (zlib.crc32(line.encode()), line.encode()))
    with pytest.raises(DataError, match="is damaged"):
        list(JournalReader(tmp_path / "j").completed())


def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    write(tmp_path / "j")
    with pytest.raises(DataError, match="cannot write"):
        Journal(tmp_path / "j")


@given(cut=st.integers(0, 5000), flip=st.none() | st.integers(0, 5000))
def test_whatever_is_cut_or_damaged_only_whole_attempts_count(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int | None
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    write(path, batches=range(4))
    whole = list(JournalReader(path).completed())
    content = bytearray(path.read_bytes())
    if flip is not None:
        content[flip % len(content)] ^= 1
    del content[cut:]
    path.write_bytes(content)
    reader = JournalReader(path)
    found = list(reader.completed())
    assert found == whole[: len(found)]
    rest = reader.rest()
    assert rest is None or rest.runs == whole[len(found)].runs[: len(rest.runs)]


def test_a_ledger_takes_each_attempt_once(tmp_path: Path) -> None:
    write(tmp_path / "j")
    attempts = list(JournalReader(tmp_path / "j").completed())
    kept: list[tuple[int, int]] = []

    def keep(attempt: PlacedAttempt, number: int) -> None:
        kept.append((attempt.batch, number))

    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.absorb(attempts, keep, journal="a", host_id="n1") == {(0, 1), (1, 1)}
        assert ledger.absorb(attempts, keep, journal="a", host_id="n1") == set()
        assert kept == [(0, 1), (1, 1)]
        assert ledger.completed_batches() == {0, 1}
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert len(list(reader.outcomes())) == 4
        assert reader.hosts() == {(0, 1): "n1", (1, 1): "n1"}


def test_a_second_host_that_completes_a_batch_does_not_count(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, batches=[0])
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for name in ("a", "b"):
            attempts = list(JournalReader(tmp_path / name).completed())
            found = ledger.absorb(attempts, keep_nothing, journal=name, host_id=name)
            assert found == ({(0, 1)} if name == "a" else set())
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert reader.completed_attempts() == {0: 1}
        assert reader.disturbances() == {(0, 2): ("another host completed the batch before",)}
        assert reader.hosts() == {(0, 1): "a", (0, 2): "b"}


def test_an_attempt_whose_files_cannot_be_kept_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path / "j")
    attempts = list(JournalReader(tmp_path / "j").completed())

    def refuse(attempt: PlacedAttempt, _number: int) -> None:
        if attempt.batch == 1:
            message = "no room"
            raise OSError(message)

    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(OSError, match="no room"):
            ledger.absorb(attempts, refuse, journal="j", host_id="h")
        assert ledger.completed_batches() == set()
        ledger.absorb(attempts, keep_nothing, journal="j", host_id="h")
        assert ledger.completed_batches() == {0, 1}


def test_a_placed_attempt_follows_those_of_this_host(tmp_path: Path) -> None:
    write(tmp_path / "j", batches=[0])
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.begin_attempt(0)
        found = list(JournalReader(tmp_path / "j").completed())
        ledger.absorb(found, keep_nothing, journal="j", host_id="h")
        assert [(row.attempt, row.state) for row in ledger.outcomes()] == [(2, "complete")] * 2
