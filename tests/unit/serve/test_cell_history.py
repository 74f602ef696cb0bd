"""A history of results: each counts once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.stability_sample import write_sample
from steelyard.errors import UsageError
from steelyard.record.provenance import Origin, read_provenance, write_provenance
from steelyard.serve.cell_history import cell_history

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "first")


def copied(folder: Path, name: str) -> Path:
    return shutil.copytree(folder, folder.parent / name)


def test_copies_are_one_result(first: Path) -> None:
    copies = [copied(first, name) for name in ("second", "third")]
    with pytest.raises(UsageError, match="3 complete results of this study on this host are copies of one"):
        cell_history([first, *copies], "")
    known = read_provenance(first)
    repeated = copied(first, "repeated")
    session = replace(known.sessions[0], begun_utc="2026-11-22T09:00:00+00:00")
    write_provenance(repeated, replace(known, sessions=(session,)))
    found = cell_history([first, *copies, repeated], "")
    assert found.results == 2
    assert ("results", "2") in found.page.about


def test_a_file_that_is_imported_twice_is_one_result(first: Path) -> None:
    known = read_provenance(first)
    origin = Origin("csv", "long", "times.csv", "5eed", 100, {})
    write_provenance(first, replace(known, origin=origin))
    second = copied(first, "second")
    session = replace(known.sessions[0], begun_utc="2026-11-22T09:00:00+00:00")
    write_provenance(second, replace(known, origin=origin, sessions=(session,)))
    with pytest.raises(UsageError, match="are copies of one"):
        cell_history([first, second], "")
