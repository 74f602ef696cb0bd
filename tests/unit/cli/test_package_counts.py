from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.model.finding import Finding, FindingSet
from steelyard.model.plan import Plan
from steelyard.record.provenance import Provenance
from steelyard.share.about import About
from steelyard.share.package.crate import Story
from steelyard.share.package.readme import preview, readme, verdict_counts
from steelyard.share.package.statement import Statement
from steelyard.share.repository import index as repository
from steelyard.studies.replication.findings.published import source_findings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OWN = tuple(Finding(f"own/{number}", "comparison", {}, "undecided") for number in range(3))
BOTH = FindingSet("replication", "id", 1, {}, (*source_findings(), *OWN))
PLAN = Plan("replication", 1, {}, (), (), 1, {}).freeze()
STORY = Story(About(), PLAN, Provenance("replication", "id", 1), "Q?", "T", "D", "2026")


def test_verdicts_about_the_source_are_none_of_the_package() -> None:
    assert {each.verdict for each in BOTH.findings} >= {"different", "equivalent", "as printed"}
    assert verdict_counts(BOTH) == {"undecided": 3}
    text, page = readme(STORY, BOTH, Statement()), preview(STORY, BOTH, [])
    count = len(BOTH.findings) - 3
    assert f"Findings: 3; verdicts: undecided 3. Beside them, {count} about what the source" in text
    for verdict in ("different", "equivalent", "as printed"):
        assert f"{verdict} " not in text.partition("verdicts: ")[2].partition(".")[0]
        assert f"{verdict} " not in page


def test_the_index_counts_own_findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "p.zip").write_bytes(b"")
    root = {
        "@id": "./",
        "name": "T",
        "datePublished": "2026",
        "license": {"@id": "x"},
        "author": {"@id": "#a"},
    }
    crate = {"@graph": [root, {"@id": "#a", "name": "A"}]}
    documents: list[dict[str, Any]] = [crate, {"study": "replication", "id": "1"}, asdict(BOTH), {"host": {}}]
    monkeypatch.setattr(
        repository, "read_entries", lambda *_: [json.dumps(each).encode() for each in documents]
    )
    (listed,) = repository.make_index(tmp_path).packages
    assert (listed.findings, listed.verdicts) == (3, {"undecided": 3})


def test_claims_about_a_source_are_named_as_such() -> None:
    assert all(each.claim.startswith("source_") for each in source_findings())
