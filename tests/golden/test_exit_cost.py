"""The page about the class shows the cost of the exit check that was measured."""

from __future__ import annotations

from golden.exit_cost import FINDINGS, MARKS, PAGE, rendered
from steelyard.model.finding import read_findings


def test_the_page_has_the_table_of_the_recorded_findings() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert rendered(text) == text, "`make exit-cost-page` measures it anew"
    shown = text.partition(MARKS[0])[2].partition(MARKS[1])[0]
    costs = read_findings(FINDINGS).of("exit_cost")
    assert [each.subject["load"] for each in costs] == ["50", "70"]
    for cost in costs:
        least, most = cost.estimates["instructions"].low, cost.estimates["instructions"].high
        assert f"| {cost.facts['runs']} |" in shown
        assert f"| {least:g} to {most:g} |" in shown
