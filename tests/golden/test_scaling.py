"""The facts of the published parallel packets experiments, from the source's own medians.

SOURCE: A. Miller, CMSC 23010 HW3b (University of Chicago, 2021), data at depth 32 on 14 cores. The printed
digits set the tolerance.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from golden.printed import is_rounded_or_cut
from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.share.verify import verify
from steelyard.studies.scaling.generator import source_means

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "scaling"
pytestmark = pytest.mark.needs_recorded_data
WORKERS = ("1", "2", "3", "7", "13", "27")
LARGEST = {"mean_work": "8000", "depth": "32"}
FIVE = 0.5e-5


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packets") / "r"
    files = [str(FOLDER / "hw3b-D32" / name) for name in ("overhead.csv", "speedup.csv")]
    assert execute(["import", "packets", *files, "--out", str(folder)]) == 0
    assert execute(["analyse", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def findings(result: Path) -> FindingSet:
    return read_findings(result / "findings.json")


def chosen(findings: FindingSet, claim: str, **subject: str) -> list[Finding]:
    return [
        each for each in findings.of(claim) if all(each.subject.get(key) == v for key, v in subject.items())
    ]


def one(findings: FindingSet, claim: str, **subject: str) -> Finding:
    (found,) = chosen(findings, claim, **subject)
    return found


def value(finding: Finding, role: str) -> float:
    found = finding.estimates[role].value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("load", "speedups"),
    [
        ("uniform", (0.98601, 1.95762, 2.92583, 6.79893, 12.50104, 9.75546)),
        ("exponential", (0.98664, 1.57253, 2.03758, 3.83053, 6.79314, 4.41886)),
    ],
)
def test_speed_ups_of_lock_free(findings: FindingSet, load: str, speedups: tuple[float, ...]) -> None:
    for workers, printed in zip(WORKERS, speedups, strict=True):
        found = one(findings, "speedup", load=load, strategy="LockFree", workers=workers, **LARGEST)
        assert value(found, "speedup") == pytest.approx(printed, abs=FIVE)
        assert found.facts["oversubscribed"] is (workers == "27")
        assert found.verdict == "descriptive"


@pytest.mark.parametrize(
    ("workers", "shy"),
    list(zip(WORKERS, (1.39900, 2.11900, 2.47233, 2.87243, 3.83815, 63.86867), strict=True)),
)
def test_shy_of_ideal(findings: FindingSet, workers: str, shy: float) -> None:
    found = one(findings, "speedup", load="uniform", strategy="LockFree", workers=workers, **LARGEST)
    assert value(found, "shy") == pytest.approx(shy, abs=FIVE)


@pytest.mark.parametrize(
    ("points", "slope", "r_squared"),
    [("1, 2, 3, 7", 0.968626, 0.9999997), ("1, 2, 3, 7, 13", 0.959749, None)],
)
def test_the_line_names_its_points(
    findings: FindingSet, points: str, slope: float, r_squared: float | None
) -> None:
    found = one(
        findings, "regression", load="uniform", strategy="LockFree", points=f"workers {points}", **LARGEST
    )
    assert value(found, "slope") == pytest.approx(slope, abs=0.5e-6)
    if r_squared is not None:
        assert value(found, "r_squared") == pytest.approx(r_squared, abs=0.5e-7)


def test_as_many_claims_of_the_text_follow_as_their_digits_say(findings: FindingSet) -> None:
    claims = findings.of("source_claim")
    for each in claims:
        agrees = is_rounded_or_cut(value(each, "recomputed"), str(each.facts["printed"]))
        assert (each.verdict == "agrees") is agrees, each.subject["text"]
    verdicts = Counter(each.verdict for each in claims)
    assert verdicts == {"agrees": 50, "contradicts": 15}
    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "scaling.md"
    assert f"{verdicts['agrees']} of {len(claims)} follow" in guide.read_text(encoding="utf-8")


def test_four_points_that_are_called_five(findings: FindingSet) -> None:
    found = one(
        findings, "source_claim", section="uniform load", text="slope of the first five points at W = 8000"
    )
    assert (found.verdict, found.facts["printed"], found.facts["recomputed_digits"]) == (
        "contradicts",
        "0.9686",
        "0.9597",
    )
    assert found.facts["note"] == "0.9686 follows from the first four points"


def test_the_list_of_the_uniform_load_is_repeated_under_the_exponential_one(findings: FindingSet) -> None:
    found = [
        each
        for each in chosen(findings, "source_claim", section="exponential load")
        if each.subject["text"].startswith("shy")
    ]
    assert [each.verdict for each in found] == ["contradicts"] * 6
    assert all(str(each.facts["note"]).endswith("follows from the uniform load") for each in found)


def test_peaks_and_drops(findings: FindingSet) -> None:
    peaks = {
        "1000": (4.53270, "7"),
        "2000": (8.81198, "13"),
        "4000": (12.06142, "13"),
        "8000": (12.50104, "13"),
    }
    drops = {"1000": "42.51357", "2000": "46.15841", "4000": "18.47162", "8000": "21.96281"}
    for work, (printed, workers) in peaks.items():
        found = one(findings, "peak", load="uniform", strategy="LockFree", mean_work=work)
        assert value(found, "speedup") == pytest.approx(printed, abs=FIVE)
        assert str(found.facts["workers"]) == workers
    for work, printed in drops.items():
        found = one(findings, "oversubscription", load="uniform", strategy="LockFree", mean_work=work)
        assert is_rounded_or_cut(value(found, "drop"), printed)


def test_overheads_are_the_printed_ratios(findings: FindingSet) -> None:
    with (FOLDER / "hw3b-D32" / "overhead.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(findings.of("overhead")) == len(rows) == 12
    for row, found in zip(rows, findings.of("overhead"), strict=True):
        assert value(found, "overhead") == pytest.approx(float(row["Speedup"]), abs=FIVE)


def test_winners_with_ties(findings: FindingSet) -> None:
    def wins(load: str, family: str, contender: str) -> tuple[object, object, object]:
        found = one(findings, "winner_count", load=load, family=family, contender=contender)
        return found.facts["wins"], found.facts["ties"], found.facts["combinations"]

    assert wins("uniform", "LockFree and HomeQueue", "LockFree") == (19, 0, 24)
    assert wins("exponential", "LockFree and HomeQueue", "LockFree") == (20, 0, 24)
    assert wins("uniform", "locks of HomeQueue", "HomeQueue (pthread mutex)") == (15, 0, 24)
    assert wins("exponential", "locks of HomeQueue", "HomeQueue (pthread mutex)") == (20, 0, 24)
    assert wins("exponential", "locks of Awesome", "Awesome (pthread mutex)") == (18, 0, 24)


def test_the_heaviest_source_explains_lock_free_under_exponential_load(findings: FindingSet) -> None:
    predicted = {"1": 1.0, "2": 1.585, "3": 2.042, "7": 3.818, "13": 6.791}
    measured = {"1": 0.987, "2": 1.573, "3": 2.038, "7": 3.831, "13": 6.793}
    for workers, printed in predicted.items():
        found = one(findings, "imbalance", strategy="LockFree", workers=workers, **LARGEST)
        assert value(found, "bound") == pytest.approx(printed, abs=0.5e-3)
        assert value(found, "speedup") == pytest.approx(measured[workers], abs=0.5e-3)
        assert found.verdict == ("as predicted" if workers != "1" else "one source: nothing to balance")
    balanced = chosen(findings, "imbalance", strategy="Awesome", workers="13", **LARGEST)
    assert [each.verdict for each in balanced] == ["above the bound: balanced"] * 2


def test_one_dispatcher_explains_the_small_packets(findings: FindingSet) -> None:
    verdicts = {each.subject["mean_work"]: each.verdict for each in findings.of("dispatcher")}
    assert verdicts == {
        "1000": "the dispatcher binds",
        "2000": "the dispatcher binds",
        "4000": "the dispatcher leaves room",
        "8000": "the dispatcher leaves room",
    }
    assert all(each.facts["is_met"] for each in findings.of("dispatcher"))


def test_source_means_are_those_of_the_original_generator() -> None:
    with (FOLDER / "exponential-source-means.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 100
    for row in rows:
        means = source_means(int(row["W"]), int(row["n"]), int(row["s"]))
        assert means[int(row["source"])] == int(row["exponential_mean"])


def test_the_tables_have_the_order_of_columns_of_the_source(result: Path) -> None:
    for name in ("overhead.csv", "speedup.csv"):
        with (FOLDER / "hw3b-D32" / name).open() as file:
            theirs = list(csv.reader(file))
        with (result / "tables" / name).open() as file:
            ours = list(csv.reader(file))
        assert ours[0] == theirs[0]
        assert [row[:-1] for row in ours[1:]] == [[field.strip() for field in row[:-1]] for row in theirs[1:]]


def test_report_and_verification_hold(result: Path) -> None:
    assert execute(["report", str(result)]) == 0
    assert verify(result) == []
