"""How a result is listed whose runs were placed on other hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.catalogue.folder import read_folder
from steelyard.record.provenance import Session, read_provenance, write_provenance
from steelyard.studies.report_frame import where_and_when

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue


@pytest.mark.parametrize(
    ("names", "listed", "headed"),
    [
        (["n7"], "n7", ("host", "n7")),
        (["n2", "n1"], "n1, n2", ("hosts", "2: n2, n1")),
        (list("fedcba"), "a, b, c, d and 2 more", ("hosts", "6: f, e, d, c, b, a")),
    ],
)
def test_the_hosts_that_measured_are_named(
    results: Path, names: list[str], listed: str, headed: tuple[str, str]
) -> None:
    """Not the one where the study was asked for; it ended when that was over, not with some part."""
    folder = results / "run-stability"
    found = read_provenance(folder)
    ended = read_folder(folder).entry.ended
    assert ended is not None
    hosts: dict[str, JsonValue] = {
        f"id-{number}": {"host": {"hostname": name}} for number, name in enumerate(names)
    }
    part = Session(("run-part",), "2020-01-01T00:00:00+00:00", "6.1", host_id="id-0")
    placed = replace(found, hosts=hosts, sessions=(*found.sessions, part))
    write_provenance(folder, placed)
    entry = read_folder(folder).entry
    assert (entry.host, entry.ended) == (listed, ended)
    assert next(iter(where_and_when(placed))) == headed
