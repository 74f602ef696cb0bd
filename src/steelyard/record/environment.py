"""What surrounds a result on this machine: software versions, the repository."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PACKAGES: Final = ("steelyard", "numpy", "pyarrow", "scipy", "polars")
_GIT_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class GitState:
    """State of the repository the command was given in."""

    commit: str
    is_modified: bool


def software_versions(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the versions of everything that can change a number, by name."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # an extra that is not installed did not take part
    return found | dict(extra or {})


def git_state(folder: Path) -> GitState | None:
    """Give the state of the repository around a folder; ``None`` where there is none, or no git."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return GitState(commit, is_modified=bool(changes))


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True)
    return done.stdout.strip()
