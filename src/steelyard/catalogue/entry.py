"""What the catalogue says of a result, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

State = Literal["running", "complete", "incomplete", "damaged", "missing"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One result of the catalogue.

    Parameters
    ----------
    id : str
        Ten hexadecimal digits that follow from plan, host and begin of the result, so that they stay the same
        when the folder is moved or the catalogue is made again.
    folder : Path
        Absolute path of the result folder, on the machine `site`.
    host : str
        Name of the host that measured it, where the catalogue knows it, else begin of the id of the host;
        empty for an import.
    study : str
        Name of the study; empty for a damaged folder.
    title : str
        What was measured, in one line.
    started : datetime
        Begin of the measurement or import, in UTC.
    ended : datetime or None
        End of its last session, in UTC; ``None`` while it is running, and if it was killed.
    state : str
        ``running``; ``complete``: with findings; ``incomplete``: without, or stopped before its end;
        ``damaged``: a file of it cannot be read; ``missing``: the folder is gone.
    commit : str or None
        Commit of the repository the command was given in.
    version : str
        Version of Steelyard that wrote it.
    cells, runs : int
        Its size; runs are those in ``runs.parquet``.
    verdict : str
        First sentence of its report; empty without findings.
    verdict_kind : str
        Verdict of the finding behind that sentence, such as ``slower``.
    tags : tuple of str
        In alphabetical order.
    note : str
        Text of the user.
    problem : str
        Why it is damaged or missing; empty otherwise.
    site : str
        Name of the machine whose file system has the folder.
    """

    id: str
    folder: Path
    host: str
    study: str
    title: str
    started: datetime
    ended: datetime | None
    state: State
    commit: str | None = None
    version: str = ""
    cells: int = 0
    runs: int = 0
    verdict: str = ""
    verdict_kind: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    problem: str = ""
    site: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """What a result must fulfil; ``None`` asks for nothing.

    Parameters
    ----------
    study, tag : str or None
        Exactly this.
    host, commit : str or None
        Begin of the host or the commit.
    since, until : datetime or None
        Started at this time or later; started before this time. Aware.
    verdict : str or None
        A finding of the result has this verdict.
    text : str or None
        Every word stands in title, verdict, note, tags, study, host or folder; case does not count.
    """

    study: str | None = None
    host: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tag: str | None = None
    commit: str | None = None
    verdict: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the results that fulfil a filter.

    Parameters
    ----------
    entries : tuple of Entry
        In the order that was asked for.
    total : int
        How many there are in all.
    """

    entries: tuple[Entry, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of computing a result again.

    Parameters
    ----------
    state : str
        ``running``, ``confirmed``, ``not confirmed`` or ``failed``.
    stamp : str
        `folder_state` of what was verified: it says nothing about any other.
    took_s : float
        How long it took [s].
    problems, not_compared : tuple of str
        What `steelyard verify` says.
    ended : datetime or None
        When, in UTC; ``None`` while it is running.
    version : str
        Version of Steelyard that computed.
    """

    state: str
    stamp: str
    took_s: float = 0.0
    problems: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    ended: datetime | None = None
    version: str = ""
