"""Result folders with more files than anybody looks at: nothing waits for them, nothing hides behind them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from steelyard.catalogue import Catalogue, folder
from steelyard.catalogue.folder import folder_state, read_folder
from steelyard.catalogue.scan import find_results
from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def crowded(results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a result whose runs left more files than the limit, which is lowered to a tenth of them."""
    traces = results / "compare" / "traces" / "000000.01"
    traces.mkdir(parents=True)
    for number in range(1000):
        (traces / str(number)).touch()
    monkeypatch.setattr(folder, "MOST_FILES", 100)
    return results / "compare"


def test_a_result_with_too_many_files_is_listed_without_its_report(crowded: Path) -> None:
    reading = read_folder(crowded)
    entry = reading.entry
    assert (entry.state, entry.verdict, entry.verdict_kind) == ("complete", "slower: 1", "slower")
    assert reading.verdicts == ("descriptive", "slower")
    assert "more than 100 files" in entry.problem
    with Catalogue.at(crowded.parent / "catalogue.sqlite") as catalogue:
        assert catalogue.register(crowded).problem == entry.problem


def test_its_state_is_not_computed(crowded: Path) -> None:
    with pytest.raises(DataError, match="more than 100 files"):
        folder_state(crowded)


def test_the_state_of_a_folder_is_that_of_its_files(results: Path) -> None:
    result = results / "compare"
    before = folder_state(result)
    assert folder_state(result) == before
    (result / "labels.json").write_text("{}")
    assert folder_state(result) == before
    (result / "tables" / "mine.csv").write_text("x")
    assert folder_state(result) != before


def test_what_is_in_a_result_is_not_looked_through(crowded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    scandir = os.scandir

    def watched(place: Path) -> Iterator[os.DirEntry[str]]:
        looked.append(str(place))
        return scandir(place)

    monkeypatch.setattr("os.scandir", watched)
    found = set(find_results(crowded.parent))
    assert {each.name for each in found} == {"compare", "run-compare", "run-stability"}
    assert looked == [str(crowded.parent)]
