"""Claims of the stability study on results whose truth is known."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.simulated_result import Spec, Study, lognormal
from steelyard.errors import AnalysisError, DataError, UsageError
from steelyard.record.provenance import read_provenance, write_provenance
from steelyard.studies.analysis_options import AnalysisOptions
from steelyard.studies.stability.analysis import analyse

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

Make = Callable[..., Path]
QSORT = "sort/qsort"
EXP = "exp/exp_float"


def one(findings: FindingSet, claim: str, **subject: str) -> Finding:
    [found] = [
        finding
        for finding in findings.of(claim)
        if all(finding.subject[key] == value for key, value in subject.items())
    ]
    return found


@pytest.fixture
def typical(make_result: Make) -> Path:
    """Give a result with a slower container, a machine that lacks a workload, growing loads and pinning."""
    specs = []
    for workload, mean in ((QSORT, 0.3), (EXP, 0.2)):
        specs += [
            Spec("bare", "single", 1, workload, lognormal(mean, 0.005, 0.002)),
            Spec("sandbox", "single", 1, workload, lognormal(mean, 0.005, 0.002)),
            Spec("docker", "single", 1, workload, lognormal(1.1 * mean, 0.005, 0.002)),
            Spec(
                "vm", "single", 1, workload, None if workload == EXP else lognormal(0.9 * mean, 0.005, 0.002)
            ),
            Spec("bare", "parallel-homogenous", 2, workload, lognormal(mean, 0.005, 0.002)),
            Spec("bare", "parallel-homogenous", 4, workload, lognormal(mean, 0.05, 0.03)),
            Spec("bare", "parallel-homogenous", 4, workload, lognormal(mean, 0.02, 0.01), affinity="taskset"),
        ]
    specs.append(Spec("bare", "single", 1, QSORT, lognormal(0.33, 0.005, 0.002), input="9"))
    counted = Spec("bare", "single", 1, QSORT, _counted, counters="on")
    twin = Spec("bare", "single", 1, QSORT, lognormal(0.3, 0.005, 0.002), flags=("run-delay",), failing=1)
    specs += [counted, twin]
    return make_result(specs, Study(blocks=6, twin=(0, len(specs) - 1)))


def _counted(rng: np.random.Generator, block: int, worker: int, count: int) -> dict[str, np.ndarray]:
    misses = rng.integers(1000, 2000, count).astype(float)
    return {
        "cpu": 0.3 + misses * 1e-5,
        "counter:cache-misses": misses,
        "counter:cache": np.full(count, 1e5),
    }


def test_means_are_compared_with_class_and_verdict(typical: Path) -> None:
    findings = analyse(typical)
    slower = one(
        findings, "mean_comparison", workload=QSORT, input="16384", setup="single,1", second="docker"
    )
    assert (slower.facts["class_percentile"], slower.verdict) == ("lesser", "slower")
    assert slower.estimates["ratio"].value == pytest.approx(1.1, abs=0.01)
    assert slower.estimates["ratio"].units == 6
    same = one(
        findings, "mean_comparison", workload=QSORT, family="sandbox", first="sandbox", setup="single,1"
    )
    assert same.verdict == "equivalent"
    absent = one(findings, "mean_comparison", workload=EXP, setup="single,1", first="docker", second="vm")
    assert (absent.facts["class_percentile"], absent.verdict) == ("NA", "NA")
    order = [(f.subject["first"], f.subject["second"]) for f in findings.of("mean_comparison")]
    assert set(order) == {
        ("bare", "docker"),
        ("bare", "vm"),
        ("docker", "vm"),
        ("sandbox", "bare"),
        ("bare-taskset", "bare"),
    }


def test_missing_cells_stay_in_the_tables_as_na(typical: Path) -> None:
    analyse(typical)
    with (typical / "tables" / "mean_comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = {"statistic", "workload", "setup", "first", "second", "class_published", "verdict"}
    assert expected <= set(rows[0])
    [row] = [
        row
        for row in rows
        if (row["workload"], row["setup"], row["first"], row["second"])
        == (f"{EXP} 16384", "single,1", "bare", "vm")
    ]
    assert (row["class_published"], row["class_published_basic"], row["verdict"]) == ("NA", "NA", "NA")


def test_classes_are_counted_over_workloads(typical: Path) -> None:
    counts = one(
        analyse(typical),
        "class_counts",
        statistic="mean",
        setup="single,1",
        first="bare",
        second="vm",
        published="percentile",
    )
    assert counts.facts["higher"] == 1
    assert counts.facts["NA"] == 2  # the missing workload, and the input only bare has


def test_loads_shifts_and_pinning_are_seen(typical: Path) -> None:
    findings = analyse(typical)
    assert one(findings, "dispersion_by_load", isolation="bare", workload=QSORT).verdict == "grows at 4"
    recommended = one(findings, "recommended_workers", isolation="bare")
    assert recommended.verdict == "recommended"
    assert recommended.estimates["workers"].value == 2
    assert recommended.facts["limiting_workload"] in {QSORT, EXP}
    assert one(findings, "location_shift", isolation="docker").verdict == "slower"
    assert one(findings, "location_shift", isolation="sandbox").verdict == "equivalent"
    assert one(findings, "location_shift", isolation="vm").facts["workloads"] == 1
    assert one(findings, "pinning_effect", isolation="bare").verdict == "helps"
    assert one(findings, "pinning_effect", isolation="docker").verdict == "not measured"
    assert (
        one(findings, "clock_trust", isolation="bare", clock="outside-cpu").facts["trusted_up_to_workers"]
        == 4
    )
    assert one(findings, "a_a").verdict == "no difference"


def test_workers_inputs_counters_flags_and_failures_are_reported(typical: Path) -> None:
    findings = analyse(typical)
    wide = one(findings, "worker_difference", workload=QSORT, setup="parallel-homogenous,4")
    assert (wide.verdict, wide.facts["pairs"]) == ("workers differ", 36)
    narrow = one(findings, "worker_difference", workload=QSORT, setup="parallel-homogenous,2")
    assert narrow.verdict == "no relevant difference"
    inputs = one(findings, "input_dependence", workload=QSORT)
    assert inputs.verdict == "depends on the input"
    assert inputs.estimates["widest"].value == pytest.approx(10, abs=1)
    assert [each.subject["input"] for each in findings.of("input_statistics")] == ["16384", "9"]
    linear = one(findings, "counter_correlation", counter="cache-misses")
    assert linear.estimates["pearson"].value == pytest.approx(1)
    assert one(findings, "counter_correlation", counter="cache-misses / cache").facts["runs"] == 120
    flagged = one(findings, "contamination", flag="run-delay")
    assert flagged.facts["flagged"] == 120
    assert one(findings, "failed_runs", status="wall_timeout").facts["count"] == 6


def test_twins_and_counted_runs_take_no_part_in_other_claims(typical: Path) -> None:
    bare = one(
        analyse(typical),
        "outside_error",
        metric="cpu",
        workload=QSORT,
        input="16384",
        setup="single,1",
        isolation="bare",
    )
    assert bare.facts["n"] == 6 * 20


def test_parallel_ratio_and_overlap_follow_the_stamps(make_result: Make) -> None:
    def uneven(rng: np.random.Generator, block: int, worker: int, count: int) -> dict[str, np.ndarray]:
        return {"cpu": np.full(count, 0.1 if worker else 0.2)}

    result = make_result(
        [Spec("bare", "parallel-homogenous", 2, QSORT, uneven)], Study(blocks=1, iterations=11)
    )
    findings = analyse(result)
    ratio = one(findings, "parallel_ratio")
    # Starts: worker 0 at 0, 0.2 .. 2.0; worker 1 at 0.001 ms, 0.1 .. 1.0 s.
    assert ratio.estimates["ratio"].value == pytest.approx((1.0 + 0.001 - 0.001) / 2.0, abs=1e-6)
    overlap = one(findings, "overlap")
    assert overlap.facts["overlapping"] == 11 + 5
    assert overlap.facts["not_overlapping"] == 6


def test_few_units_are_described_and_not_judged(make_result: Make) -> None:
    specs = [
        Spec(name, "single", 1, QSORT, lognormal(mean, 0.005))
        for name, mean in (("bare", 0.3), ("docker", 0.4))
    ]
    found = one(analyse(make_result(specs, Study(blocks=2))), "mean_comparison")
    assert (found.verdict, found.facts["class_percentile"]) == ("descriptive", "lesser")
    assert found.warnings[0].startswith("few-units")
    assert not found.estimates["ratio"].guaranteed


def test_a_disagreement_says_why(make_result: Make) -> None:
    specs = [
        Spec(name, "single", 1, QSORT, lognormal(0.3, 0.002, 0.15))
        for name in ("bare", "docker", "podman", "crun")
    ]
    findings = analyse(make_result(specs, Study(blocks=6, seed=4)))
    reasons = [
        str(finding.facts["disagreement"])
        for finding in findings.of("mean_comparison")
        if finding.facts["class_percentile"] in {"higher", "lesser"} and finding.verdict == "inconclusive"
    ]
    assert reasons
    assert all(
        "treats 240 iterations as independent" in reason and "6 and 6 blocks" in reason for reason in reasons
    )


def test_workers_are_undecided_where_an_interval_reaches_across_the_tolerance(typical: Path) -> None:
    first = one(analyse(typical), "least_steady_cell", isolation="bare", load="1").estimates["cv"]
    assert first.low is not None
    assert first.high is not None
    for tolerance, verdict in ((first.low / 2, "none"), ((first.low + first.high) / 2, "undecided")):
        found = one(
            analyse(typical, AnalysisOptions(tolerance_percent=tolerance)),
            "recommended_workers",
            isolation="bare",
        )
        assert found.verdict == verdict
        assert found.estimates["workers"].value is None
        assert bool(found.facts["possible_workers"]) == (verdict == "undecided")
        assert found.facts["limiting_workers"] == 1


def test_ways_of_pinning_are_not_pooled(make_result: Make) -> None:
    spreads = {"none": 0.02, "taskset": 0.01, "noht": 0.04}
    specs = [
        Spec(
            "bare", "parallel-homogenous", 2, workload, lognormal(0.3, spread, spread / 4), affinity=affinity
        )
        for workload in (QSORT, EXP)
        for affinity, spread in spreads.items()
    ]
    findings = analyse(make_result(specs, Study(blocks=12)))
    assert one(findings, "pinning_effect", affinity="taskset").verdict == "helps"
    assert one(findings, "pinning_effect", affinity="noht").verdict == "harms"


def test_settings_of_the_reader_are_kept_and_change_the_answer(typical: Path) -> None:
    strict = analyse(typical, AnalysisOptions(tolerance_percent=0.1))
    assert one(strict, "recommended_workers", isolation="bare").verdict == "none"
    assert analyse(typical) == strict
    usual = analyse(typical, AnalysisOptions())
    assert not (typical / "analysis.json").exists()
    assert one(usual, "recommended_workers", isolation="bare").verdict == "recommended"
    with pytest.raises(UsageError, match="tolerance_percent"):
        AnalysisOptions(tolerance_percent=0)


def test_findings_do_not_depend_on_the_number_of_threads(typical: Path) -> None:
    analyse(typical)
    before = (typical / "findings.json").read_bytes()
    command = (
        "import sys; from pathlib import Path; from steelyard.studies.stability.analysis import analyse; "
        "analyse(Path(sys.argv[1]))"
    )
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    subprocess.run([sys.executable, "-c", command, str(typical)], check=True, env=environment, timeout=60)
    assert (typical / "findings.json").read_bytes() == before


def test_nothing_measured_is_an_error_and_no_traceback(make_result: Make) -> None:
    result = make_result(
        [Spec("bare", "single", 1, QSORT, lognormal(0.3, 0.01), failing=20)], Study(blocks=1)
    )
    with pytest.raises(AnalysisError, match="no completed run"):
        analyse(result)
    (result / "runs.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(DataError):
        analyse(result)


def test_the_calibration_of_the_host_is_repeated(typical: Path) -> None:
    spread = {"count": 60, "mean_ns": 80_000.0, "sd_ns": 20_000.0}
    measured = {"work_ms": 50, "errors": [{"isolation": "sandbox", "wall": spread, "cpu": spread}]}
    write_provenance(typical, replace(read_provenance(typical), calibration=measured))
    found = one(analyse(typical), "calibration")
    assert found.verdict == "outside minus own, mean: sandbox: wall 80.00 us, cpu 80.00 us"
    wall = found.estimates["sandbox wall"]
    assert wall.value == pytest.approx(80e-6)
    assert wall.high == pytest.approx(80e-6 + 2.001 * 20e-6 / 60**0.5, rel=1e-4)
    assert found.facts["work_ms"] == 50
