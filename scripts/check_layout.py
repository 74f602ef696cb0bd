"""Check what no linter knows: names and sizes of files, full folders, small files that belong to another."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from check_circles import python_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parent.parent
LINE_CAP = 600
SOURCES = {".rs", ".py", ".c", ".java"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "manager"}

FOLDER_CAP = 20
"""Most files in a folder of product Python, `__init__.py` aside."""
PLUG_INS = {"steelyard/run/isolation", "steelyard/record/importers"}
"""Folders with a file for each technology or format: they may grow, and a file may be small."""
KINDS = {"charts", "findings", "importers"}
"""Names of folders with a file for each chart, kind of finding or format: a file may be small."""
SMALL = 60
"""A file of fewer lines that only one file imports belongs to it, unless that is an `__init__.py`, which
hands on what others define..."""
MERGED_CAP = 450
"""...or both together have more lines than this."""
STAYS_SMALL = {
    "steelyard/entry.py": "the entry point of the installed program",
    "steelyard/studies/replication/values/micro_values.py": "a file for each kind of experiment",
}
"""Small files with one importer that stay, and why."""


def tracked_files() -> list[Path]:
    answer = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / line for line in answer.stdout.splitlines() if (ROOT / line).is_file()]


def problems(path: Path) -> list[str]:
    """Judge one file by its name and its length."""
    if path.suffix not in SOURCES:
        return []
    place = path.relative_to(ROOT)
    found = []
    if path.stem in VAGUE_NAMES:
        found.append(f"{place}: `{path.stem}` does not say what is inside")
    is_test = path.stem.startswith("test_") or path.stem == "tests" or "tests" in place.parts
    lines = path.read_text(encoding="utf-8").count("\n")
    if lines > LINE_CAP and not is_test:
        found.append(f"{place}: {lines} lines, cap {LINE_CAP}: move what belongs elsewhere")
    return found


def full_folders(source: Path, files: Iterable[Path]) -> list[str]:
    """Name the folders below `source` with more files than a newcomer looks through."""
    counts = Counter(
        path.parent.relative_to(source).as_posix()
        for path in files
        if path.suffix == ".py" and path.name != "__init__.py" and path.is_relative_to(source)
    )
    return [
        f"{folder}: {count} files, cap {FOLDER_CAP}: make a folder of those that belong together"
        for folder, count in sorted(counts.items())
        if count > FOLDER_CAP and folder not in PLUG_INS
    ]


def small_files(source: Path, stays: Mapping[str, str]) -> list[str]:
    """Name the small files below `source` that belong to their only importer, and what `stays` needlessly."""
    graph = python_graph(source)
    paths = {module: _path(source, module) for module in graph}
    texts = {module: path.read_text(encoding="utf-8") for module, path in paths.items()}
    found, excused = [], set()
    for module, path in sorted(paths.items()):
        place = path.relative_to(source)
        importers = [other for other, used in graph.items() if module in used]
        lines = texts[module].count("\n")
        is_program = '\nif __name__ == "__main__":' in texts[module]
        if len(importers) != 1 or lines >= SMALL or path.name == "__init__.py" or is_program:
            continue
        if place.parent.as_posix() in PLUG_INS or place.parent.name in KINDS:
            continue
        if paths[importers[0]].name == "__init__.py" or lines + texts[importers[0]].count("\n") > MERGED_CAP:
            continue
        if place.as_posix() in stays:
            excused.add(place.as_posix())
            continue
        importer = paths[importers[0]].relative_to(source)
        found.append(f"{place}: {lines} lines, imported by {importer} alone: move it there")
    needless = [f"{place}: need not be listed as a file that stays small" for place in stays.keys() - excused]
    return found + sorted(needless)


def _path(source: Path, module: str) -> Path:
    path = source.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def main() -> None:
    files = tracked_files()
    found = [problem for path in files for problem in problems(path)]
    found += full_folders(ROOT / "src", files)
    found += small_files(ROOT / "src", STAYS_SMALL)
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
