"""The traces of a result folder: one folder per batch and attempt, which the run stage names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

TRACES_NAME: Final = "traces"
"""Folder in the result folder for the files that runs leave."""


def trace_files(result: Path) -> list[Path]:
    """Give every file that runs left, sorted; none where runs leave no files."""
    folders = sorted(path for path in result.glob(f"{TRACES_NAME}/*") if not path.name.startswith("."))
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]
