"""What the SCHED_BE evaluation says of its figures, computed from the figures: three of them, digitised.

The source states means before and beside the background tasks, 5.99 -> 13.52 ms for weights, 6.03 -> 7.44 ms
for SCHED_IDLE and 6.02 -> 6.02 ms for its class, and that the tasks lose 29 % of their work under the class.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.report.html import render_html
from steelyard.share.verify import verify
from steelyard.studies.colocation.analysis import analyse
from steelyard.studies.colocation.latency_bins import HEADING, IMPORTER
from steelyard.studies.colocation.report.page import build

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "colocation"
JOBS = ReadOptions(stated={"jobs_start_s": 11.0, "jobs_stop_s": 30.0, "tolerance_percent": 10.0})
PRINTED_MS = 0.005
PRINTED_PERCENT = 0.5

pytestmark = pytest.mark.needs_recorded_data


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colocation")
    IMPORTER.import_files(sorted(FOLDER.glob("*.csv")), folder, JOBS)
    return folder


@pytest.fixture(scope="module")
def findings(result: Path) -> FindingSet:
    return analyse(result)


def _of(findings: FindingSet, claim: str, policy: str) -> Finding:
    (found,) = (each for each in findings.of(claim) if each.subject["policy"] == policy)
    return found


def _ms(finding: Finding, role: str) -> float:
    value = finding.estimates[role].value
    assert value is not None
    assert finding.estimates[role].unit == "s"
    return 1000 * value


@pytest.mark.parametrize(
    ("policy", "before_ms", "beside_ms", "verdict"),
    [
        ("weights", 5.99, 13.52, "not isolated"),
        ("idle", 6.03, 7.44, "not isolated"),
        ("be", 6.02, 6.02, "isolated"),
    ],
)
def test_means_and_verdicts_are_those_of_the_source(
    findings: FindingSet, policy: str, before_ms: float, beside_ms: float, verdict: str
) -> None:
    found = _of(findings, "isolation", policy)
    assert _ms(found, "before") == pytest.approx(before_ms, abs=PRINTED_MS)
    assert _ms(found, "beside") == pytest.approx(beside_ms, abs=PRINTED_MS)
    assert found.verdict == verdict
    assert found.facts["tolerance_percent"] == 10.0
    assert found.facts["origin"] == "read off a figure"
    ratio = found.estimates["ratio"]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < beside_ms / before_ms < ratio.high


def test_the_class_costs_the_jobs_what_the_source_says(findings: FindingSet) -> None:
    lost = _of(findings, "price", "be").facts["lost_in_whole_percent"]
    assert isinstance(lost, float)
    assert lost == pytest.approx(29, abs=PRINTED_PERCENT)


def test_tails_grow_where_the_mean_does(findings: FindingSet) -> None:
    assert {each.subject["policy"]: each.verdict for each in findings.of("tail")} == {
        "weights": "grown",
        "idle": "grown",
        "be": "kept",
    }


def test_bins_say_every_row_of_the_files(result: Path, findings: FindingSet) -> None:
    lines = (result / "tables" / "bins.csv").read_text().splitlines()
    rows = [line for path in FOLDER.glob("*.csv") for line in path.read_text().splitlines()[1:]]
    assert findings.study == "colocation"
    assert len(lines) - 1 == len(rows)


def test_a_tolerance_of_a_third_lets_the_mean_of_idle_pass_and_not_its_tail(result: Path) -> None:
    from steelyard.studies.analysis_options import AnalysisOptions  # noqa: PLC0415 - used here only

    try:
        found = analyse(result, AnalysisOptions(tolerance_percent=100 / 3))
        idle = _of(found, "isolation", "idle")
        assert (idle.verdict, idle.facts["beyond"], idle.facts["within"]) == (
            "not isolated",
            "p99",
            "mean and p50",
        )
        assert _of(found, "isolation", "weights").verdict == "not isolated"
    finally:
        (result / "analysis.json").unlink()
        analyse(result)


def test_the_report_answers_first_and_marks_what_was_not_measured(result: Path, findings: FindingSet) -> None:
    page = build(result)
    assert len(page.answer) == 1
    assert "not isolated" in page.answer[0].text
    assert page.answer[0].text.count("read off a figure") == len(findings.of("isolation"))
    assert [figure.id for figure in page.figures()] == [
        "changes_of_latency",
        "latency_over_time",
        "protection_and_price",
        "policies_over_time",
    ]
    assert "13.52" in render_html(page)


def test_every_finding_follows_from_the_files(result: Path, findings: FindingSet) -> None:
    assert findings.findings
    assert verify(result) == []


def test_files_come_through_the_table_of_importers() -> None:
    assert importer("latency-bins") is IMPORTER
    assert HEADING == ("time_s", "mean_ms", "p99_ms", "resize_count")
