"""The replication study's claims about generated runs, whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fixtures.replication_runs import Calls, Given, Micro, Requests, build_result

from steelyard.studies.replication.analysis import analyse

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

MARGIN = 0.05


def one(findings: FindingSet, claim: str, **subject: str) -> Finding:
    (found,) = (each for each in findings.of(claim) if subject.items() <= each.subject.items())
    return found


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> FindingSet:
    """Micro benchmarks and a service whose ratios are planted."""
    cells = {
        ("e1", "invocation-c2", "native"): Micro(1e6),
        ("e1", "invocation-c2", "container"): Micro(1.002e6),
        ("e1", "file-io", "native"): Micro(5.5e5),
        ("e1", "file-io", "container"): Micro(1.59 * 5.5e5),
        ("e3", "mixed", "native"): Requests(),
        ("e3", "mixed", "container"): Requests(1.08),
        ("e3", "mixed", "storage-swapped"): Requests(1.55),
    }
    return analyse(build_result(tmp_path_factory.mktemp("compared") / "r", cells))


def test_a_planted_ratio_is_found_within_its_interval(compared: FindingSet) -> None:
    found = one(compared, "comparison", configuration="file-io", effect="container")
    ratio = found.estimates["ratio"]
    assert found.verdict == "different"
    assert found.facts["relation"] == "higher"
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 1.59 < ratio.high


def test_what_agrees_within_the_margin_is_equivalent(compared: FindingSet) -> None:
    found = one(compared, "comparison", configuration="invocation-c2")
    assert found.verdict == "equivalent"
    assert found.facts["family"] == 2


def test_swapped_storages_slow_every_operation_down(compared: FindingSet) -> None:
    for operation in ("create", "read", "update", "list"):
        found = one(compared, "comparison", operation=operation, effect="storages swapped", metric="mean")
        assert found.verdict == "different"
        assert found.estimates["ratio"].value == pytest.approx(1.55, rel=0.05)


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> FindingSet:
    """Monitoring with planted costs: 3 us for Kieker, 100 us for OpenTelemetry, 50 ns for recording."""
    quiet = {"run_cv": 0.0005}
    cells = {
        ("e2", "none-unrecorded", "native"): Calls(is_recorded=False, **quiet),
        ("e2", "none-baseline", "native"): Calls(**quiet),
        ("e2", "kieker-inactive", "native"): Calls(1020.0, **quiet),
        ("e2", "kieker-collecting", "native"): Calls(2000.0, **quiet),
        ("e2", "kieker-writing", "native"): Calls(4000.0, **quiet),
        ("e2", "opentelemetry-java-writing", "native"): Calls(101_000.0, warm_up_factor=2.0, **quiet),
    }
    return analyse(build_result(tmp_path_factory.mktemp("monitored") / "r", cells, Given(blocks=8)))


def test_the_cost_of_a_framework_is_that_which_was_planted(monitored: FindingSet) -> None:
    found = one(monitored, "overhead", framework="kieker", probe="writing")
    cost, step = found.estimates["overhead"], found.estimates["step"]
    assert found.verdict == "costs"
    assert cost.value == pytest.approx(3000, rel=0.01)
    assert step.value == pytest.approx(2000, rel=0.01)


def test_our_own_recording_costs_less_than_every_framework_that_works(monitored: FindingSet) -> None:
    found = one(monitored, "recording_cost", language="java")
    cost = found.estimates["cost"]
    assert found.verdict == "below every framework"
    assert found.facts["not_below"] == "kieker inactive"
    assert found.facts["compared"] == 3
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low < 50 < cost.high


def test_warm_up_is_half_of_the_calls_as_published_and_what_the_series_shows_besides(
    monitored: FindingSet,
) -> None:
    found = one(monitored, "cell", configuration="opentelemetry-java-writing")
    assert found.facts["warm_up_runs"] == 8
    assert found.facts["measured"] == found.facts["calls"] / 2 == 80_000
    assert found.estimates["steady_mean"].value == pytest.approx(found.estimates["mean"].value, rel=0.002)
    assert found.estimates["published"].measurements == 80_000


def test_recording_dearer_than_a_framework_is_said(tmp_path_factory: pytest.TempPathFactory) -> None:
    cells = {
        ("e2", "none-unrecorded", "native"): Calls(is_recorded=False, calls=2000),
        ("e2", "none-baseline", "native"): Calls(recording_ns=500.0, calls=2000),
        ("e2", "kieker-writing", "native"): Calls(1200.0, calls=2000),
    }
    found = one(analyse(build_result(tmp_path_factory.mktemp("dear") / "r", cells)), "recording_cost")
    assert found.verdict == "not below every framework"
    assert found.facts["not_below"] == "kieker writing"
