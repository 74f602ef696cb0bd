"""A plug-in that cannot be used is named with its package, and costs nothing but what it offers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from steelyard.cli import execute
from steelyard.run.isolation.registry import TECHNOLOGIES

STEELYARD: Final = str(Path(sys.executable).parent / "steelyard")
ABSENT: Final = "import a_module_that_is_absent\n"
STUDY: Final = "from steelyard.study import Study\nSTUDY = Study({name!r}, 'Why?', {package!r})\n"
REMOVE: Final = "hint: ask its authors for a repaired version, or remove it: pip uninstall broken-plug-in"

FAULTS: Final = {
    "import": ("nice", ABSENT, "ModuleNotFoundError: No module named 'a_module_that_is_absent'"),
    "syntax": ("nice", "def (:\n", "SyntaxError: "),
    "exit": ("nice", "import sys\nsys.exit('bye')\n", "SystemExit: bye"),
    "attribute": ("nice", "", "has no attribute 'THING'"),
    "type": ("nice", "THING = 3\n", "`broken_plug_in:THING` "),
    "class": ("nice", "class THING: ...\n", "`broken_plug_in:THING` "),
}
ASKED: Final = {
    "steelyard.isolations": ("isolation", ["measure", "--isolation", "nice", "--", "true"]),
    "steelyard.importers": ("importer", ["import", "nice", "a.txt", "--out", "r"]),
    "steelyard.studies": ("study", ["run", "nice", "--quick"]),
}


def lay(site: Path, package: str, module: str, entry_points: str) -> None:
    """Lay out an installed package with one module."""
    name = package.replace("-", "_")
    (site / f"{name}.py").write_text(module, encoding="utf-8")
    facts = site / f"{name}-1.5.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n", encoding="utf-8"
    )
    (facts / "entry_points.txt").write_text(entry_points, encoding="utf-8")


def steelyard(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [STEELYARD, *words],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("group", ASKED)
@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_names_the_package(tmp_path: Path, fault: str, group: str) -> None:
    name, module, reason = FAULTS[fault]
    lay(tmp_path, "broken-plug-in", module, f"[{group}]\n{name} = broken_plug_in:THING\n")
    kind, words = ASKED[group]
    done = steelyard(tmp_path, *words)
    assert done.returncode == 3
    assert f"error: cannot use {kind} `nice` of the package `broken-plug-in 1.5`: " in done.stderr
    assert reason in done.stderr
    assert REMOVE in done.stderr


@pytest.mark.parametrize("group", ASKED)
def test_a_name_that_two_packages_take_is_refused_with_both(tmp_path: Path, group: str) -> None:
    for package in ("first-plug-in", "second-plug-in"):
        lay(tmp_path, package, "", f"[{group}]\nnice = {package.replace('-', '_')}:THING\n")
    kind, words = ASKED[group]
    done = steelyard(tmp_path, *words)
    assert done.returncode == 3
    assert f"cannot use {kind} `nice`: several packages offer that name: " in done.stderr
    assert "`first-plug-in 1.5`" in done.stderr
    assert "`second-plug-in 1.5`" in done.stderr


def test_a_name_of_our_own_stays_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "broken-plug-in", ABSENT, "[steelyard.isolations]\nbare = broken_plug_in:THING\n")
    assert steelyard(tmp_path, "measure", "--", "true").returncode == 0
    monkeypatch.syspath_prepend(tmp_path)
    [offered] = TECHNOLOGIES.plug_ins()
    assert (offered.name, offered.package) == ("bare", "broken-plug-in")
    assert offered.reason is not None
    assert offered.reason.endswith("the name `bare` belongs to Steelyard")


def test_entry_point_and_object_have_one_name(tmp_path: Path) -> None:
    module = STUDY.format(name="other", package="broken_plug_in")
    lay(tmp_path, "broken-plug-in", module, "[steelyard.studies]\nnice = broken_plug_in:STUDY\n")
    done = steelyard(tmp_path, "run", "nice")
    assert done.returncode == 3
    assert "calls itself `other`; entry point and object must have one name" in done.stderr


def test_a_study_whose_package_is_absent_is_named(tmp_path: Path) -> None:
    module = STUDY.format(name="nice", package="a_package_that_is_absent")
    lay(tmp_path, "broken-plug-in", module, "[steelyard.studies]\nnice = broken_plug_in:STUDY\n")
    done = steelyard(tmp_path, "plan", "nice")
    assert done.returncode == 3
    assert "names the package `a_package_that_is_absent`, which does not exist" in done.stderr


def test_a_study_whose_module_fails_is_named_and_hurts_no_other(tmp_path: Path) -> None:
    module = STUDY.format(name="nice", package="broken_plug_in")
    lay(tmp_path, "broken-plug-in", "", "[steelyard.studies]\nnice = broken_plug_in:STUDY\n")
    (tmp_path / "broken_plug_in.py").unlink()
    (tmp_path / "broken_plug_in").mkdir()
    for name, text in (("__init__", module), ("design", ""), ("options", ABSENT)):
        (tmp_path / "broken_plug_in" / f"{name}.py").write_text(text, encoding="utf-8")
    done = steelyard(tmp_path, "run", "nice")
    assert done.returncode == 3
    expected = "of the package `broken-plug-in 1.5`: its module `broken_plug_in.options` fails: Module"
    assert expected in done.stderr
    assert REMOVE in done.stderr
    done = steelyard(tmp_path, "run", "stability", "--transport", "tcp")
    assert done.returncode == 2
    assert "it belongs to `communication`" in done.stderr
    assert steelyard(tmp_path, "run", "stability", "--help").returncode == 0


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which a plug-in of each kind cannot be imported, and a table to import."""
    site = tmp_path_factory.mktemp("site")
    lay(
        site,
        "broken-plug-in",
        ABSENT,
        "".join(f"[{group}]\nnice = broken_plug_in:THING\n" for group in ASKED),
    )
    (site / "t.csv").write_text("value\n1\n2\n3\n", encoding="utf-8")
    (site / "s.toml").write_text('study = "stability"\nisolation = ["bare"]\n', encoding="utf-8")
    return site


VERBS: Final = {
    "help": [("run", "--help"), ("run", "stability", "--help")],
    "plan": [("plan", "stability", "--study-file", "s.toml", "--json")],
    "measure": [("measure", "--", "true")],
    "result": [
        ("import", "csv", "t.csv", "--unit", "s", "--out", "r"),
        ("analyse", "r"),
        ("report", "r"),
        ("verify", "r"),
        ("compare-results", "r", "r"),
    ],
    "restore": [("restore",)],
}


@pytest.mark.parametrize("group", VERBS)
def test_verbs_that_need_no_plug_in_work_beside_broken_ones(broken: Path, group: str) -> None:
    for words in VERBS[group]:
        done = steelyard(broken, *words)
        assert done.returncode == 0, (words, done.stderr)
        assert "broken" not in done.stdout + done.stderr


@pytest.mark.slow
def test_doctor_lists_each_with_its_reason(broken: Path) -> None:
    offered = json.loads(steelyard(broken, "doctor", "--json").stdout)["plug_ins"]
    assert [each["kind"] for each in offered] == ["study", "isolation", "importer"]
    assert all("a_module_that_is_absent" in each["reason"] for each in offered)
    said = steelyard(broken, "doctor").stdout
    assert "plug-in broken-plug-in 1.5" in said
    assert "pip uninstall broken-plug-in" in said


def test_an_unknown_name_is_answered_beside_broken_ones(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(broken)
    assert execute(["measure", "--isolation", "absent", "--", "true"]) == 2
    assert "`nice`" in capsys.readouterr().err
    assert execute(["run", "absent"]) == 2
    assert "`stability`" in capsys.readouterr().err
