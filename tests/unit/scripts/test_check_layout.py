"""Full folders and files that belong to their only importer are found, and nothing else is."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPTS = Path(__file__).parents[3] / "scripts"
USE = "from package.small import name\n"


@pytest.fixture
def layout(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
    return runpy.run_path(str(SCRIPTS / "check_layout.py"))


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in {"__init__": "", **files}.items():
        path = folder / "package" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_small_file_with_one_importer_is_named(layout: dict[str, Any], tmp_path: Path) -> None:
    source = written(tmp_path, {"small": "name = 1\n" * 59, "user": USE})
    (problem,) = layout["small_files"](source, {})
    assert problem == "package/small.py: 59 lines, imported by package/user.py alone: move it there"


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"small": "name = 1\n" * 60, "user": USE}, id="not small"),
        pytest.param({"small": "name = 1\n", "user": USE, "other": USE}, id="two importers"),
        pytest.param({"small": "name = 1\n"}, id="no importer: an entry point, or named by a text"),
        pytest.param({"small": "name = 1\n", "user": USE + "x = 1\n" * 449}, id="too long together"),
        pytest.param(
            {"small": 'name = 1\n\nif __name__ == "__main__":\n    run()\n', "user": USE}, id="program"
        ),
        pytest.param({"small": "name = 1\n", "inner/__init__": USE}, id="handed on by a package"),
        pytest.param({"findings/small": "", "user": "from package.findings import small\n"}, id="kind"),
    ],
)
def test_other_files_stay(layout: dict[str, Any], tmp_path: Path, files: dict[str, str]) -> None:
    assert layout["small_files"](written(tmp_path, files), {}) == []


def test_a_listed_file_stays_and_a_needless_entry_is_named(layout: dict[str, Any], tmp_path: Path) -> None:
    source = written(tmp_path, {"small": "name = 1\n", "user": USE})
    listed = {"package/small.py": "why", "package/user.py": "why"}
    needless = "package/user.py: need not be listed as a file that stays small"
    assert layout["small_files"](source, listed) == [needless]


def test_a_folder_of_more_than_twenty_files_is_named(layout: dict[str, Any], tmp_path: Path) -> None:
    files = [tmp_path / "package" / f"file_{number}.py" for number in range(20)]
    files += [tmp_path / "package" / "__init__.py", tmp_path / "package" / "data.toml"]
    assert layout["full_folders"](tmp_path, files) == []
    (problem,) = layout["full_folders"](tmp_path, [*files, tmp_path / "package" / "one_more.py"])
    assert problem.startswith("package: 21 files, cap 20: ")


def test_a_folder_of_plug_ins_may_grow(layout: dict[str, Any], tmp_path: Path) -> None:
    files = [tmp_path / "steelyard/run/isolation" / f"file_{number}.py" for number in range(30)]
    assert layout["full_folders"](tmp_path, files) == []
