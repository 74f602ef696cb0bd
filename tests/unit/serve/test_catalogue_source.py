"""Results below a folder: what is new, changed, or too large to read for a list."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, cast

import pytest

from fixtures.stability_sample import write_sample
from steelyard.catalogue import Filter
from steelyard.catalogue.folder import MOST_FINDINGS_BYTES, read_folder
from steelyard.errors import DataError
from steelyard.record.labels import Labels, write_labels
from steelyard.serve import catalogue_source
from steelyard.serve.catalogue_source import FolderResults, Results
from steelyard.serve.computing import MOST_WAITING, Computing, TooBusyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.long("processes read the folders")
def test_a_result_is_shown_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_source, "_PERIOD_S", 0.0)
    folder = write_sample(tmp_path / "first")
    (folder / "findings.json").unlink()
    known = read_folder(folder).entry
    shown = tmp_path / "results"
    shown.mkdir()

    async def session() -> None:
        computing = Computing()
        results = FolderResults(shown, computing)
        try:
            assert (await results.entries(Filter(), "started", 10, 0)).total == 0
            with pytest.raises(DataError, match="cannot find the result"):
                await results.entry("0123456789")
            place = folder.rename(shown / "first")
            assert (await results.entry(known.id)).tags == (), "nobody has looked at the list since"
            write_labels(place, Labels(tags=("new",)))
            assert (await results.entry(known.id)).tags == ("new",)
        finally:
            computing.close()
            results.close()

    asyncio.run(session())


class ReadHere:
    """Reads folders in this process, not at once, and never one of a certain name."""

    async def run(
        self, function: Callable[..., list[Path]], address: str, part: list[Path], **named: bool
    ) -> list[Path]:
        await asyncio.sleep(0.01)
        if any(each.name == "endless" for each in part):
            message = "the computation took longer than 60 s and was ended"
            raise TooBusyError(message)
        return function(address, part, **named)


def test_a_page_does_not_wait_for_all_folders_nor_for_one_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_source, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(catalogue_source, "_BUSY_S", 0.01)
    monkeypatch.setattr(catalogue_source, "_TOGETHER", 3)
    shown = tmp_path / "results"
    for number in range(4):
        place = write_sample(shown / f"r{number}")
        provenance = json.loads((place / "provenance.json").read_text())
        provenance["sessions"][0]["begun_utc"] = f"2026-01-0{number + 1}T00:00:00Z"
        (place / "provenance.json").write_text(json.dumps(provenance))
    write_sample(shown / "endless")

    async def session() -> None:
        results = FolderResults(shown, cast("Computing", ReadHere()))
        try:
            first = await results.entries(Filter(), "started", 10, 0)
            assert first.total < 4
            assert results.unread == 5
            deadline_s = time.monotonic() + 20
            while results.unread:
                assert time.monotonic() < deadline_s
                await asyncio.sleep(0.02)
            assert (await results.entries(Filter(), "started", 10, 0)).total == 4
        finally:
            results.close()

    asyncio.run(session())


@pytest.mark.long("a process reads the folder")
def test_findings_that_are_too_large_are_not_read_for_a_list(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "results" / "large")
    with (folder / "findings.json").open("r+b") as file:
        file.truncate(MOST_FINDINGS_BYTES + 1)

    async def session() -> None:
        computing = Computing()
        results = FolderResults(folder.parent, computing)
        try:
            (found,) = (await results.entries(Filter(), "started", 10, 0)).entries
            assert (found.state, found.study) == ("complete", "stability")
            assert "`findings.json` has 32 MiB" in found.problem
            assert (await results.entry(found.id)).problem == found.problem
        finally:
            computing.close()
            results.close()

    asyncio.run(session())


def test_hundreds_of_questions_at_once_are_not_all_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def slow(*_: object) -> object:
        assert let_go.wait(20)
        return None

    async def ask() -> list[object]:
        results = Results(str(tmp_path / "catalogue.sqlite"))
        monkeypatch.setattr(results, "_entries", slow)
        asked = [asyncio.create_task(results.entries(Filter(), "started", 50, 0)) for _ in range(200)]
        done, _ = await asyncio.wait(asked, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        refused = [task for task in asked if task.done()]
        assert len(refused) == 200 - MOST_WAITING, "the others are refused before anything is answered"
        let_go.set()
        await asyncio.gather(*asked, return_exceptions=True)
        assert await results.entries(Filter(), "started", 50, 0) is None, "later ones are answered again"
        return [task.exception() for task in done]

    assert all(isinstance(error, TooBusyError) for error in asyncio.run(ask()))
