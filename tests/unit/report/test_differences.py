from __future__ import annotations

from steelyard.model.finding import Finding, FindingSet
from steelyard.report.differences import ChangedVerdict, differences


def result(**verdicts: str) -> FindingSet:
    found = (
        Finding(f"{name}/x", "mean_comparison", {"workload": name}, verdict)
        for name, verdict in verdicts.items()
    )
    return FindingSet("stability", "", 1, {}, tuple(found))


def test_verdicts_are_compared_claim_by_claim() -> None:
    found = differences(
        result(a="slower", b="equivalent", c="slower"), result(c="slower", b="slower", a="faster", d="faster")
    )
    assert found.compared == 3
    assert (found.only_first, found.only_second) == (0, 1)
    assert found.changed == (
        ChangedVerdict("mean_comparison", {"workload": "a"}, "slower", "faster"),
        ChangedVerdict("mean_comparison", {"workload": "b"}, "equivalent", "slower"),
    )
    assert [change.is_reversed for change in found.changed] == [True, False]


def test_a_result_does_not_differ_from_itself() -> None:
    same = result(a="slower", b="NA")
    assert differences(same, same).changed == ()
