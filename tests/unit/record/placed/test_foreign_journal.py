"""Journals that no Steelyard wrote: refused in words, and what stands before is kept."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.outcomes import make_outcome
from steelyard.errors import DataError
from steelyard.record.placed.journal import Journal, JournalReader, PlacedAttempt

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *documents: Any) -> None:
    """Add lines whose checksums are right."""
    with path.open("ab") as file:
        for document in documents:
            text = document if isinstance(document, bytes) else json.dumps(document).encode()
            file.write(b"%08x %b\n" % (zlib.crc32(text), text))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a journal with one complete batch and one that began."""
    place = tmp_path / "journal.jsonl"
    with Journal(place) as journal:
        journal.begin_attempt(3)
        journal.record(3, 1, 0, make_outcome(1))
        journal.complete(3, 1)
        journal.begin_attempt(4)
    return place


OUTCOME = make_outcome(1).document()


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[1, 2]",
        b"3",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"begin": NaN, "number": 1, "utc": ""}',
        b"\xff\xfe",
        {"begin": "3", "number": 1, "utc": "x"},
        {"begin": True, "number": 1, "utc": "x"},
        {"begin": -1, "number": 1, "utc": "x"},
        {"begin": 1 << 70, "number": 1, "utc": "x"},
        {"begin": 5, "number": 1},
        {"begin": 5, "number": 1, "utc": {"a": 1}},
        {"worker": 0},
        {"worker": 0, "outcome": None},
        {"worker": 0, "outcome": {}},
        {"worker": "0", "outcome": OUTCOME},
        {"worker": -1, "outcome": OUTCOME},
        {"worker": 0, "outcome": {**OUTCOME, "iteration": 1 << 70}},
        {"outcome": OUTCOME},
        {"disturbed": [1]},
        {"disturbed": 3},
        {"complete": 4},
    ],
)
def test_what_no_journal_says_is_refused_and_what_stands_before_is_kept(path: Path, line: Any) -> None:
    write(path, line, {"begin": 5, "number": 1, "utc": "x"}, {"complete": 5, "utc": "x"})
    found: list[PlacedAttempt] = []
    with pytest.raises(DataError, match="is damaged before byte") as caught:
        found.extend(JournalReader(path).completed())
    assert caught.value.code == "data.journal"
    assert [each.batch for each in found] == [3]


def test_a_run_that_stands_there_twice_is_refused(path: Path) -> None:
    write(path, {"worker": 0, "outcome": OUTCOME}, {"worker": 1, "outcome": OUTCOME})
    assert len(list(JournalReader(path).completed())) == 1
    write(path, {"worker": 1, "outcome": OUTCOME})
    with pytest.raises(DataError, match="iteration 1 of worker 1 stands there twice"):
        list(JournalReader(path).completed())


def test_an_attempt_goes_on_being_read_after_its_beginning_was_taken(path: Path) -> None:
    """Its host was believed gone: what it did with that attempt is left out, the next ones are not."""
    reader = JournalReader(path)
    assert [each.batch for each in reader.completed()] == [3]
    rest = reader.rest()
    assert rest is not None
    assert rest.batch == 4
    write(path, {"worker": 0, "outcome": OUTCOME}, {"complete": 4, "utc": "x"})
    write(path, {"begin": 5, "number": 1, "utc": "x"}, {"complete": 5, "utc": "x"})
    assert [each.batch for each in reader.completed()] == [5]
