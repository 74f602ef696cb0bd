"""An importer of an installed package reads its format like one of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.plug_ins import ROOT, Beside, install

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RECORDED = sorted((ROOT / "tests" / "golden" / "importers" / "rebench").glob("run-*.data"))
COLUMNS = "invocation\titeration\tvalue\tunit\tcriterion\tbenchmark\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    return install("plugin-importer", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def result(installed: Beside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    words = ("import", "rebench", *map(str, RECORDED), "--out", "three", "--json")
    summary = json.loads(installed.said(folder, *words))
    assert (summary["cells"], summary["runs"], summary["measurements"]) == (4, 36, 144)
    return folder / "three"


def test_it_is_analysed_reported_and_verified(installed: Beside, result: Path) -> None:
    said = installed.said(result.parent, "analyse", "three")
    assert "comparison" in said
    page = installed.said(result.parent, "report", "three", "--format", "markdown")
    for shown in ("numbers", "texts", "inputSize", "20000"):
        assert shown in page
    assert "confirmed" in installed.said(result.parent, "verify", "three")


def test_two_results_are_compared(installed: Beside, result: Path) -> None:
    for name, recorded in (("before", RECORDED[0]), ("after", RECORDED[1])):
        installed.said(result.parent, "import", "rebench", str(recorded), "--out", name)
        installed.said(result.parent, "analyse", name)
    words = ("compare-results", "before", "after", "--json")
    compared = installed.steelyard(result.parent, *words, allowed=(0, 1))
    assert "texts" in compared.stdout


def test_its_version_and_the_files_are_recorded(result: Path) -> None:
    provenance = json.loads((result / "provenance.json").read_text(encoding="utf-8"))
    assert provenance["versions"]["steelyard-rebench"] == "1.0.0"
    assert [each["file_name"] for each in provenance["origins"]] == [each.name for each in RECORDED]
    assert provenance["origin"]["facts"]["date"].startswith("20")


DAMAGED = {
    "cut line": (COLUMNS + "1\t1\t2.5\n", "line 2: has 3 columns, 6 are named before it"),
    "no column": ("invocation\titeration\tvalue\n", "line 1: no column `unit`, `criterion`, `benchmark`"),
    "no number": (
        COLUMNS + "1\t1\tx\tms\ttotal\ta\n",
        "line 2: `1` and `x` should be an iteration and a value",
    ),
    "negative": (COLUMNS + "1\t1\t-1\tms\ttotal\ta\n", "line 2: a time is negative"),
    "nothing": ("# Execution Start: 2026\n", "no value in the file"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_with_its_line(installed: Beside, tmp_path: Path, damage: str) -> None:
    text, reason = DAMAGED[damage]
    (tmp_path / "b.data").write_text(text, encoding="utf-8")
    words = ("import", "rebench", "b.data", "--out", "r")
    said = installed.steelyard(tmp_path, *words, allowed=(5,)).stderr
    assert reason in said
    assert "a data file of ReBench" in said
    assert not (tmp_path / "r").exists()


def test_without_the_package_its_results_are_still_read(result: Path) -> None:
    without = Beside(result.parent / "nowhere")
    without.said(result.parent, "analyse", "three")
    assert "confirmed" in without.said(result.parent, "verify", "three")
    words = ("import", "rebench", "x", "--out", "r")
    said = without.steelyard(result.parent, *words, allowed=(2,)).stderr
    assert "`rebench` is not a format that can be imported" in said


def test_criteria_and_invocations_are_kept_apart(installed: Beside, tmp_path: Path) -> None:
    lines = ["1\t1\t5\tms\ttotal\ta", "1\t1\t12\tMB\tmem\ta", "2\t1\t6.50\tms\ttotal\ta"]
    (tmp_path / "b.data").write_text(COLUMNS + "\n".join(lines), encoding="utf-8")
    summary = json.loads(installed.said(tmp_path, "import", "rebench", "b.data", "--out", "r", "--json"))
    assert (summary["cells"], summary["runs"], summary["measurements"]) == (1, 2, 3)
