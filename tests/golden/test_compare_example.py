"""The sentence that the guide quotes is that of a comparison that was measured."""

from __future__ import annotations

from pathlib import Path

from steelyard.model.finding import read_findings
from steelyard.studies.comparison.findings import claim_of_finding

HERE = Path(__file__).resolve().parent
GUIDE = HERE.parents[1] / "docs/guides/compare.md"


def test_the_guide_quotes_a_recorded_finding() -> None:
    (finding,) = read_findings(HERE / "compare-example" / "findings.json").of("comparison")
    sentence = claim_of_finding(finding).sentence
    assert sentence == finding.facts["sentence"]
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    command, quoted = [line.strip() for line in lines if line.startswith("    ")][:2]
    assert command == f"steelyard compare '{finding.subject['first']}' '{finding.subject['second']}'"
    assert quoted == sentence
