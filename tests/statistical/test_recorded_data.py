"""The published facts follow from the recorded data."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from golden.printed import as_printed
from steelyard.share.verify import verify
from steelyard.studies.stability.analysis import analyse
from steelyard.studies.stability.recodex import RecodexImporter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.needs_recorded_data
def test_errors_and_the_millisecond_grid_of_the_outside_clock(shared_data: Path, tmp_path: Path) -> None:
    result = tmp_path / "result"
    RecodexImporter().import_file(shared_data / "recovered-isolate-vs-program.csv", result)
    findings = analyse(result)
    clocks = {finding.subject["clock"]: finding for finding in findings.of("clock_granularity")}
    for clock in ("outside-cpu", "outside-wall"):
        assert clocks[clock].verdict == "coarse"
        assert clocks[clock].estimates["step"].value == pytest.approx(1e-3)
        assert clocks[clock].facts["printing_step_s"] == pytest.approx(1e-4)
    for clock in ("cpu", "wall"):
        assert clocks[clock].verdict == "fine"
    with (result / "tables" / "outside_error.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["metric"] for row in rows] == ["cpu"] * 6 + ["wall"] * 6
    for metric in ("cpu", "wall"):
        spread = [float(row["err_cv"]) for row in rows if row["metric"] == metric]
        assert spread == sorted(spread, reverse=True)
    with (shared_data / "recovered-isolate-vs-program.csv").open() as file:
        pairs = [
            (float(row["isolate_seconds"]), float(row["program_seconds"]))
            for row in csv.DictReader(file)
            if (row["metric"], row["workload"]) == ("cpu", "bsearch")
        ]
    errors = [abs(outside - own) for outside, own in pairs]
    [row] = [row for row in rows if (row["metric"], row["workload"]) == ("cpu", "bsearch")]
    assert int(row["n"]) == len(pairs)
    assert float(row["err_mean"]) == pytest.approx(sum(errors) / len(errors))
    # The source: cpu errors of native programs are small and steady, wall errors are not.
    natives = ("bsearch", "exp_float", "gray2bin", "qsort")
    assert all(
        float(row["err_cv"]) < 0.5 for row in rows if row["metric"] == "cpu" and row["workload"] in natives
    )
    assert all(
        float(row["err_cv"]) > 30 for row in rows if row["metric"] == "wall" and row["workload"] in natives
    )
    assert verify(result) == []


@pytest.mark.needs_recorded_data
def test_there_is_no_warm_up_and_outliers_are_named(shared_data: Path, tmp_path: Path) -> None:
    result = tmp_path / "result"
    RecodexImporter().import_file(shared_data / "recovered-warmup-bare-single.csv", result)
    found = {finding.subject["workload"]: finding for finding in analyse(result).of("warm_up")}
    assert len(found) == 4
    assert {finding.verdict for finding in found.values()} == {"flat"}
    search = found["bsearch/bsearch"]
    assert search.facts["first_value_s"] == as_printed("0.39314")
    assert search.facts["median_s"] == as_printed("0.33735")
    assert search.facts["outlier_iterations"] == "1, 24, 47, 51"
    assert verify(result) == []
