"""What the experiments need on this host: Java, a database, and what ``make deps-replication`` built."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.studies.replication.configurations import OWN
from steelyard.studies.replication.devices.placement import artefacts_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

REPAIR: Final = "make deps-replication"
POSTGRES_FOLDERS: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
BENCHMARKS: Final = "benchmarks"
SERVICE: Final = "service"
PYTHON: Final = "python"


@dataclass(frozen=True, slots=True)
class Programs:
    """What there is.

    Parameters
    ----------
    installed : collection of str
        Those of ``java`` and ``postgres`` that are installed.
    built : collection of str
        Folders of artefacts that hold something: ``benchmarks``, ``service``, ``python``.
    """

    installed: Collection[str]
    built: Collection[str]


def find_programs(environment: Mapping[str, str] = os.environ) -> Programs:
    """Look for the programs on this host, where a process with such variables would."""
    path = environment.get("PATH")
    installed = {name for name in ("java", "postgres") if shutil.which(name, path=path)}
    if any(list(Path("/").glob(f"{pattern[1:]}/postgres")) for pattern in POSTGRES_FOLDERS):
        installed.add("postgres")
    folder = artefacts_folder(environment)
    built = {name for name in (BENCHMARKS, SERVICE, PYTHON) if _holds_something(folder / name)}
    return Programs(frozenset(installed), frozenset(built))


def _holds_something(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def absence(experiment: str, configuration: str, programs: Programs) -> str | None:
    """Say why a configuration cannot be run for want of a program; ``None`` if it can.

    Examples
    --------
    >>> absence("e1", "file-io", Programs({"java"}, ()))
    'the programs of e1 are not built (repair: make deps-replication)'
    >>> absence("e2", "python-none-baseline", Programs((), {"python"})) is None
    True
    """
    if configuration == OWN:
        return None
    is_python = experiment == "e2" and "python" in configuration
    if not is_python and "java" not in programs.installed:
        return f"`java` is not installed (repair: {REPAIR})"
    if experiment in {"e3", "e4"} and "postgres" not in programs.installed:
        return f"`postgres` is not installed (repair: {REPAIR})"
    needed = PYTHON if is_python else SERVICE if experiment in {"e3", "e4"} else BENCHMARKS
    if needed not in programs.built:
        return f"the programs of {experiment} are not built (repair: {REPAIR})"
    return None
