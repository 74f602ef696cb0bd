from __future__ import annotations

from steelyard.analyse import flipped_classes
from steelyard.model import Finding, FindingSet


def findings(percentile: str, basic: str, workload: str = "sort/qsort") -> FindingSet:
    subject = {
        "statistic": "mean",
        "workload": workload,
        "setup": "single,1",
        "first": "bare",
        "second": "vm",
    }
    facts: dict[str, str | int | float | bool | None] = {"class_percentile": percentile, "class_basic": basic}
    finding = Finding("id", "mean_comparison", subject, "slower", facts=facts)
    return FindingSet("stability", "plan", 1, {}, (finding,))


def test_only_turned_classes_are_listed() -> None:
    [found] = flipped_classes(findings("higher", "overlap"), findings("lesser", "higher"))
    assert (found.published, found.before, found.after) == ("percentile", "higher", "lesser")
    assert found.subject["workload"] == "sort/qsort"
    assert flipped_classes(findings("higher", "same"), findings("higher", "lesser")) == []


def test_a_comparison_only_one_result_has_is_left_out() -> None:
    assert flipped_classes(findings("higher", "higher"), findings("lesser", "lesser", "other")) == []
