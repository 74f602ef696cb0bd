"""An importer of an installed package reads its format like one of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.plug_ins import ROOT, Beside, install

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RECORDED = sorted((ROOT / "tests" / "golden" / "importers" / "go-bench").glob("run-*.txt"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    return install("plugin-importer", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def result(installed: Beside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    words = ("import", "go-bench", *map(str, RECORDED), "--out", "five", "--json")
    summary = json.loads(installed.said(folder, *words))
    assert (summary["cells"], summary["runs"], summary["measurements"]) == (10, 50, 600)
    return folder / "five"


def test_it_is_analysed_reported_and_verified(installed: Beside, result: Path) -> None:
    said = installed.said(result.parent, "analyse", "five")
    assert "comparison" in said
    page = installed.said(result.parent, "report", "five", "--format", "markdown")
    for shown in ("example.org/words.Join", "size", "how", "gomaxprocs", "words/op"):
        assert shown in page
    assert "confirmed" in installed.said(result.parent, "verify", "five")


def test_two_results_are_compared(installed: Beside, result: Path) -> None:
    for name, recorded in (("before", RECORDED[0]), ("after", RECORDED[1])):
        installed.said(result.parent, "import", "go-bench", str(recorded), "--out", name)
        installed.said(result.parent, "analyse", name)
    words = ("compare-results", "before", "after", "--json")
    compared = installed.steelyard(result.parent, *words, allowed=(0, 1))
    assert "example.org/words.Sort" in compared.stdout


def test_its_version_and_the_files_are_recorded(result: Path) -> None:
    provenance = json.loads((result / "provenance.json").read_text(encoding="utf-8"))
    assert provenance["versions"]["steelyard-go-bench"] == "1.0.0"
    assert [each["file_name"] for each in provenance["origins"]] == [each.name for each in RECORDED]
    assert provenance["origin"]["facts"]["goarch"] == "amd64"


DAMAGED = {
    "cut line": (
        "BenchmarkSort-8 1468 7125\n",
        "line 1: `BenchmarkSort-8 1468 7125` is not a result of a benchmark",
    ),
    "no count": (
        "\nBenchmarkSort-8 many 7125 ns/op\n",
        "line 2: `BenchmarkSort-8 many 7125 ns/op` is not a result of a benchmark",
    ),
    "no number": ("BenchmarkSort-8 1468 x ns/op\n", "line 1: `x` should be numbers"),
    "negative": ("BenchmarkSort-8 1468 -1 ns/op\n", "line 1: a time is negative"),
    "json": ('{"Action":"start"}\n', "line 1: is JSON of `go test -json`"),
    "nothing": ("PASS\n", "no value in the file"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_with_its_line(installed: Beside, tmp_path: Path, damage: str) -> None:
    text, reason = DAMAGED[damage]
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    words = ("import", "go-bench", "b.txt", "--out", "r")
    said = installed.steelyard(tmp_path, *words, allowed=(5,)).stderr
    assert reason in said
    assert "go test -bench . -count 10" in said
    assert not (tmp_path / "r").exists()


def test_without_the_package_its_results_are_still_read(result: Path) -> None:
    without = Beside(result.parent / "nowhere")
    without.said(result.parent, "analyse", "five")
    assert "confirmed" in without.said(result.parent, "verify", "five")
    words = ("import", "go-bench", "x", "--out", "r")
    said = without.steelyard(result.parent, *words, allowed=(2,)).stderr
    assert "`go-bench` is not a format that can be imported" in said


def test_processes_and_odd_names_are_kept_apart(installed: Beside, tmp_path: Path) -> None:
    lines = [
        "goos: linux",
        "pkg: a.org/x",
        "BenchmarkOne-4 \t 10 \t 5 ns/op \t NaN p99/op",
        "--- FAIL: BenchmarkTwo",
        "BenchmarkThree",
        "PASS",
        "pkg: a.org/x",
        "BenchmarkOne/k=1/k=2/plain-4 7 2.50 ns/op 1e3 keys/s",
        "BenchmarkOne-4 10 6 ns/op",
    ]
    (tmp_path / "b.txt").write_text("\n".join(lines), encoding="utf-8")
    summary = json.loads(installed.said(tmp_path, "import", "go-bench", "b.txt", "--out", "r", "--json"))
    assert (summary["cells"], summary["runs"], summary["measurements"]) == (2, 3, 4)
    assert summary["notes"] == [
        "benchmarks that failed, left out: 1",
        "values that are not finite, left out: 1",
    ]
    plan = json.loads((tmp_path / "r" / "plan.json").read_text(encoding="utf-8"))
    assert [each["levels"]["workload"] for each in plan["cells"]] == ["a.org/x.One", "a.org/x.One/k=2/plain"]
