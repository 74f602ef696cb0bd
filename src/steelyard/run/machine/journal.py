"""The journal of tuning: what was there before, written before anything is changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.errors import DataError
from steelyard.run.state import write_durably

if TYPE_CHECKING:
    from collections.abc import Iterator

JOURNAL_SCHEMA: Final = "steelyard/tuning-journal/1"


@dataclass(frozen=True, slots=True)
class Change:
    """One file's value before and during tuning, the path relative to the root of the host."""

    setting: str
    path: str
    original: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything one tuning is about to change.

    Parameters
    ----------
    root : str
        Root of the host.
    boot_id : str
        Boot during which it was written: settings do not survive the next one.
    process_id, process_start : int
        The tuning process, and when it started in ticks, since ids are used again.
    changes : tuple of Change
        In the order they are applied.
    """

    root: str
    boot_id: str
    process_id: int
    process_start: int
    changes: tuple[Change, ...]
    schema: str = JOURNAL_SCHEMA

    def is_abandoned(self) -> bool:
        """Whether the process that wrote it is gone."""
        return process_start(self.process_id) != self.process_start or self.process_start == 0


def write_journal(folder: Path, journal: Journal) -> Path:
    """Write a journal durably and give its place."""
    path = folder / f"{journal.process_id}-{journal.process_start}-{len(tuple(find_journals(folder)))}.json"
    write_durably(path, TypeAdapter(Journal).dump_json(journal, indent=1).decode() + "\n")
    return path


def read_journal(path: Path) -> Journal:
    """Read a journal.

    Raises
    ------
    DataError
        If it is damaged or of another schema.
    """
    try:
        journal = TypeAdapter(Journal).validate_json(path.read_bytes())
    except (ValidationError, ValueError) as error:
        message = f"`{path}` is not a journal of schema `{JOURNAL_SCHEMA}`: {error}"
        hint = "the file lists the original values: restore them by hand, then remove it"
        raise DataError(message, hint=hint, code="data.journal") from error
    if journal.schema != JOURNAL_SCHEMA:
        message = f"`{path}` has schema `{journal.schema}`; this version reads `{JOURNAL_SCHEMA}`"
        raise DataError(message, hint="use the version of Steelyard that wrote it", code="data.journal")
    return journal


def find_journals(folder: Path) -> Iterator[Path]:
    """Give the journals in a folder, newest first: changes are undone in reverse order."""
    if folder.is_dir():
        yield from sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)


def process_start(process_id: int) -> int:
    """Give the start of a process in ticks since boot, 0 when there is no such process."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def boot_id() -> str:
    """Give the id of the current boot, empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def own_journal(root: Path, changes: tuple[Change, ...]) -> Journal:
    """Make the journal of this process."""
    process_id = os.getpid()
    return Journal(str(root), boot_id(), process_id, process_start(process_id), changes)
