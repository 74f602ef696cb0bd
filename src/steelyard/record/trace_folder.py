"""The traces of a result folder: one folder per batch and attempt, which the run stage names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

TRACES_NAME: Final = "traces"
"""Folder in the result folder for the files that runs leave."""

SIMULATIONS_NAME: Final = "simulations"
"""Folder in the result folder for what a simulator answered."""


def trace_files(result: Path) -> list[Path]:
    """Give every file that runs left and that a simulator's answers are in, sorted by folder."""
    folders = sorted(path for path in result.glob(f"{TRACES_NAME}/*") if not path.name.startswith("."))
    found = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]
    return [*found, *sorted(result.glob(f"{SIMULATIONS_NAME}/*.json"))]
