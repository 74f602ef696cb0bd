"""The replication study's claims about generated runs, whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fixtures.replication_runs import (
    Calls,
    Failed,
    Given,
    Micro,
    Requests,
    Spikes,
    Summary,
    build_result,
)

from steelyard.share.verify import verify
from steelyard.studies.replication.analysis import analyse
from steelyard.studies.replication.experiment_record import write_table
from steelyard.studies.replication.findings.overheads import keeping_first

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding, FindingSet

MARGIN = 0.05


def one(findings: FindingSet, claim: str, **subject: str) -> Finding:
    (found,) = (each for each in findings.of(claim) if subject.items() <= each.subject.items())
    return found


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> FindingSet:
    """Micro benchmarks and a service whose ratios are planted."""
    cells = {
        ("e1", "harness-floor", "native"): Micro(1.01e6),
        ("e1", "invocation-c2", "native"): Micro(1e6),
        ("e1", "invocation-c2", "container"): Micro(1.002e6),
        ("e1", "invocation-no-inlining", "native"): Micro(0.5e6),
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


def test_what_cannot_be_told_from_an_empty_benchmark_is_said(compared: FindingSet) -> None:
    at, above = (
        one(compared, "harness_floor", configuration=name)
        for name in ("invocation-c2", "invocation-no-inlining")
    )
    assert (at.verdict, above.verdict) == ("at the floor", "above the floor")
    assert above.estimates["cost"].value == pytest.approx(1e9 / 0.5e6 - 1e9 / 1.01e6, rel=0.02)


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
        ("e2", "kieker-writing", "native"): Calls(4000.0, written_share=1.0, **quiet),
        ("e2", "opentelemetry-java-writing", "native"): Calls(
            101_000.0, warm_up_factor=2.0, written_share=0.35, **quiet
        ),
    }
    return analyse(build_result(tmp_path_factory.mktemp("monitored") / "r", cells, Given(blocks=8)))


def test_the_cost_of_a_framework_is_that_which_was_planted(monitored: FindingSet) -> None:
    found = one(monitored, "overhead", framework="kieker", probe="writing")
    cost, step = found.estimates["overhead"], found.estimates["step"]
    assert found.verdict == "costs"
    assert cost.value == pytest.approx(3000, rel=0.01)
    assert step.value == pytest.approx(2000, rel=0.01)


def test_what_a_framework_loses_of_its_records_is_said(monitored: FindingSet) -> None:
    kept = {
        (each.subject["framework"], each.subject["probe"]): each.estimates["kept"].value
        for each in monitored.of("overhead")
        if each.estimates["kept"].value is not None
    }
    assert kept == {("kieker", "writing"): 100.0, ("opentelemetry-java", "writing"): pytest.approx(35.0)}


def test_what_loses_records_is_ranked_with_nothing(monitored: FindingSet) -> None:
    found = one(monitored, "overhead", framework="opentelemetry-java")
    assert found.verdict == "loses records"
    assert one(monitored, "recording_cost", language="java").facts["losing"] == "opentelemetry-java writing"
    assert keeping_first(monitored.of("overhead"))[-1] is found


def test_our_own_recording_costs_less_than_every_framework_that_works(monitored: FindingSet) -> None:
    found = one(monitored, "recording_cost", language="java")
    cost = found.estimates["cost"]
    assert found.verdict == "below every framework"
    assert found.facts["not_below"] == "kieker inactive"
    assert found.facts["compared"] == 2
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


CAUSES = {
    "gc": ("gc", "object-pools"),
    "background": ("off-CPU by backup-job", "alone"),
    "migration": ("migration", "one-core"),
}


def test_a_benchmark_that_leaves_a_summary_only_is_taken_at_its_word(tmp_path: Path) -> None:
    cells = {
        ("e4", "own-benchmark", "native"): Summary(),
        ("e4", "own-benchmark", "container"): Summary(throughput_per_s=400.0),
    }
    result = build_result(tmp_path / "r", cells, Given(blocks=8))
    findings = analyse(result)
    compared = {each.subject["metric"]: each for each in findings.of("comparison")}
    assert {name: each.verdict for name, each in compared.items()} == {
        "throughput": "different",
        "p90": "equivalent",
    }
    assert compared["throughput"].estimates["ratio"].value == pytest.approx(0.8, rel=0.02)
    assert compared["throughput"].evidence[0].table == "traces/*/header.json"
    cell = one(findings, "cell", setting="native")
    assert cell.estimates["p90"].value == pytest.approx(40e6, rel=0.03)


@pytest.fixture(scope="module", params=CAUSES)
def fluctuating(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FindingSet:
    """A program whose spikes have one planted cause, which one intervention removes."""
    spiky = Calls(spikes=Spikes(3000, cause=request.param))
    names = ("as-it-is", "object-pools", "clock", "one-core", "no-recursion", "alone")
    cells = {("causes", name, "native"): spiky for name in names}
    cells["causes", CAUSES[request.param][1], "native"] = Calls(spikes=Spikes(50, cause=request.param))
    cells["causes", "no-recursion", "native"] = Calls(100.0, spikes=Spikes(3000, cause=request.param))
    given = Given(blocks=5, options={"planted": request.param})
    return analyse(build_result(tmp_path_factory.mktemp("fluctuating") / "r", cells, given))


def test_the_cause_tree_finds_what_removes_the_spikes_and_names_their_cause(fluctuating: FindingSet) -> None:
    (conclusion,) = fluctuating.of("cause_tree")
    planted = dict(CAUSES.values())
    assert conclusion.verdict == "removed"
    assert planted[str(conclusion.facts["cause"])] == conclusion.facts["removed_by"]
    assert conclusion.facts["all_removing"] == conclusion.facts["removed_by"]
    assert conclusion.facts["other_causes"] == ""


def test_interventions_beside_the_cause_leave_the_spikes(fluctuating: FindingSet) -> None:
    removed = fluctuating.of("cause_tree")[0].facts["removed_by"]
    for row in fluctuating.of("cause_row")[1:]:
        name = row.subject["intervention"]
        ratio = row.estimates["over_first"]
        assert row.verdict == ("spikes gone" if name == removed else "still spikes"), name
        assert ratio.low is not None
        assert ratio.high is not None
        expected = 50 / 3000 if name == removed else 1.0
        assert ratio.low <= expected <= ratio.high


def test_spikes_at_random_times_have_no_period(fluctuating: FindingSet) -> None:
    assert one(fluctuating, "spike_period", setting="native").verdict == "no period"


def test_the_period_of_spikes_is_found_with_its_length(tmp_path: Path) -> None:
    size_ns, every = 200_000, 150
    calls = Calls(run_cv=0.0, spikes=Spikes(0, size_ns, period_s=every * 1050e-9))
    cells = {("causes", name, "native"): calls for name in ("as-it-is", "clock")}
    found = analyse(build_result(tmp_path / "r", cells, Given(blocks=5)))
    period = one(found, "spike_period", setting="native")
    assert period.verdict == "periodic"
    assert period.facts["periodic_runs"] == 5
    truth_ns = size_ns + every * 1050
    assert period.estimates["period"].value == pytest.approx(truth_ns, rel=0.002)
    assert period.estimates["locked"].value == 100.0


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> FindingSet:
    """Three played devices of which one is slower, a benchmark that fails, a control, texts of the study."""
    cells = {
        ("e1", "invocation-c2", "D1-native"): Micro(1e6),
        ("e1", "invocation-c2", "D2-native"): Micro(1.003e6),
        ("e1", "invocation-c2", "D3-native"): Micro(0.8e6),
        ("e1", "invocation-c2", "D1-container"): Micro(1e6),
        ("e4", "stand-in", "native"): Failed("12 of 100 requests per second were answered"),
        ("e4", "own", "native"): "no benchmark of your own is described",
    }
    request = {"lessons": ["Do not use SD cards."], "licences": ["SPEC's is not free."]}
    given = Given(twin=("e1", "invocation-c2", "D1-native"), request=request, played=True)
    return analyse(build_result(tmp_path_factory.mktemp("devices") / "r", cells, given))


def test_devices_are_compared_with_the_first_and_marked_as_played(devices: FindingSet) -> None:
    second, third = (one(devices, "comparison", second=f"D{number}-native") for number in (2, 3))
    assert (second.verdict, third.verdict) == ("equivalent", "different")
    assert third.facts["played"] == "played devices"


def test_a_device_has_the_storage_that_its_roles_used(devices: FindingSet) -> None:
    assert {each.facts["storage"] for each in devices.of("device")} == {"disk (tmpfs)"}


def test_other_versions_of_a_program_are_no_effect_of_the_device(tmp_path: Path) -> None:
    cells = {("e1", "invocation-c2", f"D{number}-native"): Micro(1e6 / number) for number in (1, 2)}
    for java, answer in (({"D2-native": "17.0.2"}, "undecided"), ({}, "does not replicate")):
        findings = analyse(build_result(tmp_path / str(len(java)), cells, Given(java=java)))
        (found,) = findings.of("comparison")
        assert found.verdict == "different"
        assert found.facts["software"] == ("java 21.0.2 against 17.0.2" if java else "")
        assert bool(found.warnings) == bool(java)
        assert one(findings, "answer", question="RQ1").verdict == answer
        software = one(findings, "software", program="java")
        assert software.verdict == ("several versions" if java else "one version")


def test_a_new_device_is_predicted_from_three(devices: FindingSet) -> None:
    (found,) = devices.of("devices")
    low, high = (getattr(found.estimates["new_device"], name) for name in ("low", "high"))
    assert found.verdict == "a new device may differ"
    assert found.facts["between_percent"] == pytest.approx(13, abs=2)
    assert low < 0.8
    assert high > 1.25


def test_a_failure_is_a_result_with_its_reason(devices: FindingSet) -> None:
    (found,) = devices.of("failed_benchmark")
    assert found.verdict == "always fails"
    assert found.facts["reason"] == "12 of 100 requests per second were answered"
    assert one(devices, "answer", question="RQ1", experiment="e4").verdict == "fails"
    assert one(devices, "availability", configuration="own").facts["reason"]


def test_the_questions_are_answered_from_verdicts(devices: FindingSet, fluctuating: FindingSet) -> None:
    first = one(devices, "answer", question="RQ1", experiment="e1")
    assert first.verdict == "does not replicate"
    assert first.facts["played"] == "between parts of one machine"
    rests_on = str(first.facts["rests_on"]).split()
    assert {each.id for each in devices.of("comparison") if each.subject["effect"] == "device"} == set(
        rests_on
    )
    assert one(devices, "answer", question="RQ2", experiment="e1").verdict == "unchanged"
    assert one(fluctuating, "answer", question="RQ3").verdict == "found"


def test_the_control_finds_nothing(devices: FindingSet) -> None:
    (found,) = devices.of("a_a")
    assert found.verdict == "equivalent"


def test_texts_of_the_study_are_kept_as_they_are(devices: FindingSet) -> None:
    assert [each.facts["text"] for each in devices.of("remark")] == [
        "Do not use SD cards.",
        "SPEC's is not free.",
    ]


def test_the_same_runs_give_the_same_findings(tmp_path: Path) -> None:
    cells = {
        ("causes", "as-it-is", "native"): Calls(spikes=Spikes(2000)),
        ("causes", "object-pools", "native"): Calls(),
        ("e1", "file-io", "native"): Micro(),
    }
    result = build_result(tmp_path / "r", cells, Given(blocks=2))
    analyse(result)
    assert verify(result) == []
    (calls, *_) = sorted((result / "traces").glob("*/calls.parquet"))
    columns = {"start_ns": [1, 2, 3, 4], "duration_ns": [100, 100, 100, 900]}
    write_table(calls.parent, "calls", columns)
    assert verify(result) != []
