"""Where a result comes from: host, kernel, settings, versions, seeds, commands, hashes."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue  # noqa: TC002 - pydantic reads the annotations at run time

from steelyard.errors import DataError
from steelyard.model.document import FOLDER_HINT, read_document, write_document
from steelyard.plug_in import IMPORTER_GROUP, ISOLATION_GROUP, STUDY_GROUP, package_versions
from steelyard.record.clock import now_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from steelyard.model.plan import Plan

PROVENANCE_SCHEMA: Final = "steelyard/provenance/1"
PROVENANCE_NAME: Final = "provenance.json"

_PACKAGES: Final = ("steelyard", "numpy", "pyarrow", "scipy", "polars")
_GIT_TIMEOUT_S: Final = 10
_WATCHERS: Final[list[Callable[[Path, Provenance], None]]] = []


@dataclass(frozen=True, slots=True)
class GitState:
    """State of the repository the command was given in."""

    commit: str
    is_modified: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """The foreign file a result was imported from.

    Parameters
    ----------
    importer : str
        Name of the importer.
    form : str
        Variant of the format.
    file_name : str
        Name without folders.
    sha256 : str
        Hash of its bytes.
    byte_count : int
        Its size.
    facts : dict
        What the file says of the tool that wrote it: version, machine, date.
    """

    importer: str
    form: str
    file_name: str
    sha256: str
    byte_count: int
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One execution of the study's command; a resumed study has several.

    Parameters
    ----------
    command_line : tuple of str
        As it was given.
    begun_utc, ended_utc : str or None
        ISO 8601; `ended_utc` is ``None`` for a session that was killed.
    kernel : str
        Kernel release.
    tunings : tuple of dict
        Machine settings: name, what was found, what was set, whether it was restored.
    gate : tuple of dict
        What the gate saw.
    host_id : str
        Host that ran it, where other hosts than the one that was asked take part.
    """

    command_line: tuple[str, ...]
    begun_utc: str
    kernel: str
    ended_utc: str | None = None
    tunings: tuple[dict[str, JsonValue], ...] = ()
    gate: tuple[dict[str, JsonValue], ...] = ()
    host_id: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything needed to judge where a result comes from.

    Parameters
    ----------
    study, plan_id, seed
        Of the plan.
    host_id : str
        Stable id of the host; empty for an import.
    host : dict
        Fingerprint of the host; empty for an import.
    hosts : dict
        By id, what each host that runs were placed on says of itself: fingerprint, versions, technologies,
        calibration; empty where all ran on `host`.
    versions : dict
        Versions by name (Steelyard, Python, packages, launcher, technologies).
    git : GitState or None
        ``None`` outside a repository.
    technologies : dict
        Isolation technologies: available, version, reason.
    calibration : dict or None
        Steelyard's own error on this host, if it was measured.
    origin : Origin or None
        The imported file, the first of several; ``None`` for a measured study.
    origins : tuple of Origin
        All imported files in order, where an import takes several.
    environment : dict or None
        Environment of the programs, where a user named them: whether it was the caller's, names and hash.
    builds : tuple of dict
        Revisions that were built: name, commit, tree, command, folder, seconds, hashes of programs.
    programs : dict
        SHA-256 of the program or script that each command of a user names by its path.
    sessions : tuple of Session
        In order.
    tables : dict
        SHA-256 of the plan and of each recorded table, by path in the folder.
    notes : tuple of str
        Remarks for the reader.
    """

    study: str
    plan_id: str
    seed: int
    host_id: str = ""
    host: dict[str, JsonValue] = field(default_factory=dict)
    hosts: dict[str, JsonValue] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    git: GitState | None = None
    technologies: dict[str, JsonValue] = field(default_factory=dict)
    calibration: dict[str, JsonValue] | None = None
    environment: dict[str, JsonValue] | None = None
    builds: tuple[dict[str, JsonValue], ...] = ()
    programs: dict[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    origins: tuple[Origin, ...] = ()
    sessions: tuple[Session, ...] = ()
    tables: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema: str = PROVENANCE_SCHEMA

    @property
    def own_sessions(self) -> tuple[Session, ...]:
        """Those of the host that was asked: those of others lie within them, by clocks that may be wrong."""
        return tuple(each for each in self.sessions if not each.host_id) or self.sessions


def begin_provenance(plan: Plan, command_line: Iterable[str], *, host_id: str = "") -> Provenance:
    """Give the provenance of a session that begins now; other fields by `dataclasses.replace`.

    Parameters
    ----------
    plan : Plan
        Frozen plan.
    command_line : iterable of str
        As it was given.
    host_id : str
        Stable id of the host.
    """
    session = Session(tuple(command_line), begun_utc=now_utc(), kernel=platform.release())
    return Provenance(
        study=plan.study,
        plan_id=plan.id,
        seed=plan.seed,
        host_id=host_id,
        versions=software_versions(_plug_ins(plan)),
        git=git_state(Path.cwd()),
        sessions=(session,),
    )


def _plug_ins(plan: Plan) -> dict[str, str]:
    """Give the versions of other packages that take part, by what the plan names."""
    isolations = {cell.execution.isolation for cell in plan.cells if cell.execution is not None}
    origin = plan.options.get("origin")
    named = {STUDY_GROUP: [plan.study], ISOLATION_GROUP: isolations, IMPORTER_GROUP: [str(origin)]}
    return package_versions(named)


def continue_provenance(earlier: Provenance, now: Provenance) -> Provenance:
    """Give the provenance of a resumed study: the newest facts, all sessions.

    Raises
    ------
    DataError
        If plan or host differ: runs of two hosts are not mixed in one folder.
    """
    for name, before, after in (
        ("plan", earlier.plan_id, now.plan_id),
        ("host", earlier.host_id, now.host_id),
    ):
        if before != after:
            message = f"the folder was started with {name} `{before}`; this is {name} `{after}`"
            raise DataError(message, hint="give another folder with --out", code=f"data.other-{name}")
    calibration = now.calibration if now.calibration is not None else earlier.calibration
    notes = tuple(dict.fromkeys((*earlier.notes, *now.notes)))
    return replace(now, sessions=(*earlier.sessions, *now.sessions), calibration=calibration, notes=notes)


def end_session(provenance: Provenance) -> Provenance:
    """Give the provenance with its last session ended now."""
    *earlier, last = provenance.sessions
    return replace(provenance, sessions=(*earlier, replace(last, ended_utc=now_utc())))


def write_provenance(result: Path, provenance: Provenance) -> None:
    """Write ``provenance.json``; the file is whole or the older one stays.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    hint = f"check the rights of `{result}`"
    write_document(result / PROVENANCE_NAME, provenance, hint=hint, indent=1)
    for tell in _WATCHERS:
        tell(result, provenance)


@contextmanager
def watched_provenance(tell: Callable[[Path, Provenance], None]) -> Iterator[None]:
    """Tell of each result folder whose provenance is written meanwhile."""
    _WATCHERS.append(tell)
    try:
        yield
    finally:
        _WATCHERS.remove(tell)


def read_provenance(result: Path) -> Provenance:
    """Read ``provenance.json``.

    Raises
    ------
    DataError
        If it is absent, damaged or of another schema.
    """
    damaged = "restore the file from a copy: only it says where the result comes from"
    return read_document(
        result / PROVENANCE_NAME, Provenance, PROVENANCE_SCHEMA, absent=FOLDER_HINT, damaged=damaged
    )


def host_id_of(result: Path) -> str:
    """Give the id of the host a result was recorded on; empty where it is not known."""
    return read_provenance(result).host_id if (result / PROVENANCE_NAME).exists() else ""


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
