"""What is said of hosts that a study was placed on, from runs with a planted difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures.replication_runs import Calls, Given, build_result
from steelyard.studies.replication.analysis import analyse
from steelyard.studies.replication.report import build

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

BASELINE = ("e2", "none-baseline", "native")
CELLS = {BASELINE: Calls(calls=2000), ("e2", "none-baseline", "container"): Calls(calls=2000)}


def analysed(folder: Path, hosts: dict[str, float]) -> FindingSet:
    given = Given(blocks=6 * len(hosts), twin=BASELINE, hosts=hosts)
    return analyse(build_result(folder, CELLS, given))


def comparisons(found: FindingSet, effect: str) -> dict[tuple[str, str], Finding]:
    chosen = [each for each in found.of("comparison") if each.subject["effect"] == effect]
    return {(each.subject["first"], each.subject["second"]): each for each in chosen}


def test_each_host_is_a_device_and_a_planted_difference_is_found(tmp_path: Path) -> None:
    found = analysed(tmp_path, {"m1:a": 1.0, "m2:b": 1.0, "m3:c": 1.3})
    by_device = comparisons(found, "device")
    assert {pair: each.verdict for pair, each in by_device.items() if "native" in pair[0]} == {
        ("a-native", "b-native"): "equivalent",
        ("a-native", "c-native"): "different",
    }
    ratio = by_device["a-native", "c-native"].estimates["ratio"]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 1.3 < ratio.high
    assert ratio.units == 6
    assert {each.facts["played"] for each in by_device.values()} == {""}
    by_container = comparisons(found, "container")
    assert set(by_container) == {(f"{host}-native", f"{host}-container") for host in "abc"}
    assert {each.verdict for each in by_container.values()} == {"equivalent"}
    assert len(found.of("a_a")) == 3
    answers = {each.subject["question"]: each.verdict for each in found.of("answer")}
    assert answers == {"RQ1": "does not replicate", "RQ2": "unchanged"}


def test_three_machines_predict_a_fourth_and_give_the_component_of_variance(tmp_path: Path) -> None:
    found = analysed(tmp_path, {"m1": 1.0, "m2": 1.1, "m3": 1.21})
    scatters = found.of("devices")
    assert len(scatters) == 2
    for each in scatters:
        assert each.verdict == "a new device may differ"
        assert each.facts["devices"] == 3
        between = each.estimates["between"]
        assert between.low is not None
        assert between.high is not None
        assert between.low < 9.53 < between.high  # standard deviation of the logarithms, 100 ln 1.1
        assert each.estimates["new_device"].high is not None


def test_of_two_machines_nothing_is_predicted(tmp_path: Path) -> None:
    found = analysed(tmp_path, {"m1": 1.0, "m2": 1.1})
    scatters = found.of("devices")
    assert [each.verdict for each in scatters] == ["undecided", "undecided"]
    assert scatters[0].facts["reason"] == "2 machines, a prediction needs 3 machines"
    assert scatters[0].estimates["new_device"].high is None


def test_nodes_of_one_machine_are_said_to_be_and_are_one_device(tmp_path: Path) -> None:
    found = analysed(tmp_path, {"m1:a": 1.0, "m1:b": 1.0, "m1:c": 1.0})
    assert [each.verdict for each in found.of("hosts")] == ["one machine"]
    assert {each.facts["played"] for each in comparisons(found, "device").values()} == {
        "hosts of one machine"
    }
    assert {each.verdict for each in found.of("device")} == {"shares its machine"}
    assert {str(each.facts["reason"]) for each in found.of("devices")} == {
        "3 hosts of one machine, a prediction needs 3 machines"
    }
    page = build(tmp_path)
    (notice,) = [each for each in page.notices if each.title == "Hosts that are one machine"]
    assert notice.items[0].startswith("the 3 hosts (a, b, c) are nodes of one machine")
