"""Sources of the workloads that come with Steelyard, for those who get a package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.run.programs import PACKAGE
from steelyard.study import installed

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan

_NAMED: Final = re.compile(r"\{workloads\}/([a-z]+)/")
_BUILT: Final = re.compile(r"/workloads/(mpi)-[0-9a-f]+/")
WORKLOADS: Final = "workloads/"
"""Folder of the workload sources inside a package."""

SCRIPTS: Final = "scripts/"
"""Folder of the scripts that build them; they look for the sources in the folder beside theirs."""


def is_ours(name: str) -> bool:
    """Whether a file of a package comes with Steelyard, whoever packs it."""
    return name.startswith((WORKLOADS, SCRIPTS, "wheels/")) or name in {"installer.txt", "requirements.txt"}


def _packed_name(name: str) -> str:
    folder, _, rest = name.partition("/")
    return f"{SCRIPTS}{rest}" if folder == "build" else f"{WORKLOADS}{name}"


def workload_sources(plan: Plan) -> dict[str, Path]:
    """Give the sources of the workloads that a plan runs.

    Parameters
    ----------
    plan : Plan
        Frozen plan.

    Returns
    -------
    dict
        Files by their path in a package: sources below `WORKLOADS`, and the scripts that build them below
        `SCRIPTS`; those of a user's own are on no host but his.
    """
    words = " ".join(
        word for cell in plan.cells if cell.execution is not None for word in cell.execution.command
    )
    named = {*_NAMED.findall(words), *_BUILT.findall(words), *installed(plan.study).workloads}
    folder = PACKAGE / "_workloads"
    return {
        _packed_name(path.relative_to(folder).as_posix()): path
        for name in sorted(named)
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
