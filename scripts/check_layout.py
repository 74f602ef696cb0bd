"""Check what no linter knows: file sizes, file names, and that every error is documented."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE_CAP = 600
SOURCES = {".rs", ".py", ".c", ".java"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "manager"}


def tracked_files() -> list[Path]:
    answer = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / line for line in answer.stdout.splitlines() if (ROOT / line).is_file()]


def problems(path: Path) -> list[str]:
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


def main() -> None:
    found = [problem for path in tracked_files() for problem in problems(path)]
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
