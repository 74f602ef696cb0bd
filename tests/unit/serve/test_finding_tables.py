"""Findings of many cells as a table: read from the written tables, the same as from the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.model import Estimate, Evidence, FindingSet
from steelyard.serve import finding_tables
from steelyard.serve.finding_tables import ROWS, TableRequest, finding_table
from steelyard.studies.analysis_parts import finding
from steelyard.studies.finding_tables import write_claim_tables

if TYPE_CHECKING:
    from pathlib import Path

CELLS = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    findings = tuple(
        finding(
            "cell",
            {"workload": f"w{number}", "metric": "wall"},
            "flat",
            estimates={"mean": Estimate(1e6 * (number * 7 % CELLS), "ns", "mean", 1e5, 2e9, 0.95)},
            facts={"n": number},
            evidence=Evidence("measurements", {"cell": str(number)}, ("value",), "mean"),
        )
        for number in range(CELLS)
    )
    found = FindingSet("imported", "0" * 64, 1, {}, findings)
    found.write(tmp_path / "findings.json")
    write_claim_tables(tmp_path, found, {"cell": "cells", "comparison": "comparisons"})
    return tmp_path


@pytest.mark.parametrize(
    "asked",
    [
        TableRequest(page=2),
        TableRequest(order="mean", is_descending=True),
        TableRequest(order="workload", text="W1"),
        TableRequest(text=".*"),
    ],
)
def test_written_tables_show_what_the_findings_show(
    folder: Path, monkeypatch: pytest.MonkeyPatch, asked: TableRequest
) -> None:
    whole = finding_table(folder, "", asked)
    monkeypatch.setattr(finding_tables, "LARGEST_BYTES", 0)
    found = finding_table(folder, "", asked)
    assert found.claims == (("cells", CELLS),), "a table without findings is no kind of them"
    assert found.total == whole.total
    names = [heading.name for heading in found.headings]
    assert names == ["workload", "metric", "verdict", "mean", "n"]
    assert [row[:4] for row in found.rows] == [row[:4] for row in whole.rows]
    assert len(found.rows) == min(found.total - ROWS * (asked.page - 1), ROWS)


def test_a_result_without_tables_says_how_to_get_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding_tables, "LARGEST_BYTES", 0)
    for path in (folder / "tables").iterdir():
        path.write_bytes(b"a,b\n1\n2,3,4,5\n") if path.stem == "cells" else path.unlink()
    with pytest.raises(DataError, match=r"cells\.csv"):
        finding_table(folder, "1", TableRequest())
    (folder / "tables" / "cells.csv").unlink()
    with pytest.raises(DataError, match="has no table") as raised:
        finding_table(folder, "2", TableRequest())
    assert "steelyard analyse" in str(raised.value.hint)


@pytest.mark.parametrize("largest_bytes", [finding_tables.LARGEST_BYTES, 0])
def test_words_are_searched_in_all_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest_bytes: int
) -> None:
    kinds = {"cell": 700, "comparison": 3}
    findings = tuple(
        finding(
            kind,
            {"workload": f"{kind}{number}"},
            "flat",
            evidence=Evidence("measurements", {"cell": str(number)}, ("value",), "mean"),
        )
        for kind, count in kinds.items()
        for number in range(count)
    )
    found = FindingSet("imported", "0" * 64, 1, {}, findings)
    found.write(tmp_path / "findings.json")
    names = {"cell": "cells", "comparison": "comparisons"}
    write_claim_tables(tmp_path, found, names)
    monkeypatch.setattr(finding_tables, "LARGEST_BYTES", largest_bytes)
    shown = names if largest_bytes == 0 else {name: name for name in names}
    last = finding_table(tmp_path, "", TableRequest(text="cell699"))
    assert (last.claim, last.total, last.others) == (shown["cell"], 1, ())
    only = finding_table(tmp_path, "", TableRequest(text="comparison2"))
    assert (only.claim, only.total, only.others) == (shown["comparison"], 1, ())
    both = finding_table(tmp_path, "", TableRequest(claim=shown["cell"], text="n2"))
    assert (both.claim, both.total, both.others) == (shown["cell"], 0, ((shown["comparison"], 1),))
