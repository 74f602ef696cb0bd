"""What each result of a large catalogue costs does not grow with their number."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.catalogue import Catalogue
from steelyard.catalogue.database import Database
from steelyard.catalogue.folder import read_folder
from steelyard.catalogue.scan import scan
from steelyard.errors import DataError
from steelyard.record.folder_lock import claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.catalogue.folder import Reading

SCAN = import_module("steelyard.catalogue.scan")
CATALOGUE = import_module("steelyard.catalogue.catalogue")


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    with Catalogue.at(tmp_path / "catalogue.sqlite") as opened:
        yield opened


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Give the folders that a catalogue reads from now on."""
    seen: list[Path] = []

    def watched(folder: Path, *values: Any, **options: Any) -> Reading:
        seen.append(folder)
        return read_folder(folder, *values, **options)

    monkeypatch.setattr(CATALOGUE, "read_folder", watched)
    return seen


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the queries that a database is asked from now on."""
    seen: list[str] = []
    rows: Callable[..., list[tuple[Any, ...]]] = Database.rows

    def watched(own: Database, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        seen.append(statement)
        return rows(own, statement, values)

    monkeypatch.setattr(Database, "rows", watched)
    return seen


def quiet(_done: int, _total: int) -> None:
    """Watch nothing."""


def test_a_scan_asks_once_for_all_that_is_known(
    catalogue: Catalogue, results: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCAN, "_TOGETHER", 1)
    assert len(scan(catalogue, [results], quiet).new) == 3
    assert len([each for each in asked if each.endswith("FROM result")]) == 1


def test_a_study_that_was_killed_is_read_by_the_first_list_alone(
    catalogue: Catalogue, results: Path, read: list[Path]
) -> None:
    with claimed(results / "run-stability"):
        running = catalogue.register(results / "run-stability")
        assert catalogue.entries().entries == (running,)
    read.clear()
    (first,) = catalogue.entries().entries
    (again,) = catalogue.entries().entries
    assert (first.state, first.id) == ("complete", running.id)
    assert (again, catalogue.entry(first.id)) == (first, first)
    assert read == [results / "run-stability"]
    (found,) = scan(catalogue, [results / "run-stability"], quiet).changed
    assert found.verdict, "a scan reads the report, which a list leaves alone"


def test_a_study_that_is_resumed_while_it_is_listed_stays_running(
    catalogue: Catalogue, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claimed(results / "run-stability"):
        running = catalogue.register(results / "run-stability")
    with claimed(results / "run-compare"):
        answers = iter([False, True])
        monkeypatch.setattr(CATALOGUE, "is_held", lambda _folder: next(answers))
        assert catalogue.entry(running.id) == running
    assert next(answers, None) is None


def test_a_catalogue_that_may_only_be_read_lists_what_was_killed(
    catalogue: Catalogue, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claimed(results / "run-stability"):
        catalogue.register(results / "run-stability")

    def refused(_database: Database) -> None:
        message = "attempt to write a readonly database"
        raise DataError(message, code="data.catalogue")

    monkeypatch.setattr(Database, "writing", refused)
    assert [each.state for each in catalogue.entries().entries] == ["complete"]


def test_a_begin_of_an_id_is_looked_up_and_not_looked_for(
    catalogue: Catalogue, results: Path, asked: list[str]
) -> None:
    reading = read_folder(results / "compare", says_verdict=False)
    entries = [replace(reading.entry, id=f"{place:010x}", folder=Path(f"/no/{place}")) for place in range(20)]
    catalogue.put(replace(reading, entry=each) for each in entries)
    asked.clear()
    assert catalogue.entry("0000000013").folder == Path("/no/19")
    (query,) = (each for each in asked if " WHERE id " in each)
    (plan,) = catalogue._database.rows(f"EXPLAIN QUERY PLAN {query}", ("00", "0f"))
    assert plan[-1].startswith("SEARCH result USING")
