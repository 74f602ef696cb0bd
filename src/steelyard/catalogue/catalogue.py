"""The catalogue itself: entries in, queries out."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from steelyard.catalogue.database import PATIENCE_S, VERIFICATION_TABLE, Database, chosen_address
from steelyard.catalogue.entry import Entry, Filter, Page, Verified
from steelyard.catalogue.folder import (
    ID_DIGITS,
    begun_reading,
    holds,
    is_result,
    read_folder,
    site,
    stamp_of,
    with_own_id,
)
from steelyard.errors import DataError, UsageError
from steelyard.record.folder_lock import is_held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from steelyard.catalogue.folder import Reading
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page as ReportPage

Order = Literal["started", "-started", "study", "host", "folder"]
ORDERS: Final[dict[str, str]] = {
    "started": "started DESC, id",
    "-started": "started, id",
    "study": "study, started DESC, id",
    "host": "host, started DESC, id",
    "folder": "folder, id",
}
"""By name: newest first, oldest first, by study, by host, by folder."""

_COLUMNS: Final = (
    "id, folder, host, study, title, started, ended, state, commit_id, version, cells, runs, verdict, "
    "verdict_kind, tags, note, problem, site"
)
_UPDATED: Final = ", ".join(
    f"{name} = excluded.{name}" for name in (*_COLUMNS.split(", ")[1:], "search", "stamp")
)
_PUT: Final = (
    f"INSERT INTO result ({_COLUMNS}, search, stamp) VALUES ({', '.join('?' * 20)}) "  # noqa: S608 - parts are ours
    f"ON CONFLICT (id) DO UPDATE SET {_UPDATED}"
)
_IDENTIFIER: Final = re.compile(rf"[0-9a-f]{{2,{ID_DIGITS}}}")
_SHOWN_CANDIDATES: Final = 5
_AS_BYTES: Final = "bytes:"
_MOST: Final = 1 << 40


class Catalogue:
    """An index over result folders; a context manager.

    Parameters
    ----------
    database : Database
        Where it is kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Catalogue.at(f"{folder}/c.sqlite") as catalogue:
    ...     catalogue.entries(Filter(study="compare")).total
    0
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def at(cls, address: str | Path | None = None, *, patience_s: int = PATIENCE_S) -> Catalogue:
        """Open a catalogue, and make it where there is none.

        Parameters
        ----------
        address : str, Path or None
            File of SQLite, or ``postgresql://...``; ``None`` takes the environment variable
            ``STEELYARD_CATALOGUE``, else ``steelyard/catalogue.sqlite`` in the user's data folder (XDG).
        patience_s : int
            How long to wait for other writers [s].

        Raises
        ------
        CapabilityError
            If it needs a Python package that is not installed.
        DataError
            If it cannot be used.
        """
        return cls(Database(chosen_address(address), patience_s))

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self._database.close()

    @property
    def address(self) -> str:
        """Where it is kept, without a password."""
        return self._database.shown

    def entries(
        self,
        wanted: Filter | None = None,
        order: str = "started",
        *,
        limit: int | None = None,
        offset: int = 0,
    ) -> Page:
        """Give the results that fulfil a filter, each with the state that it has now.

        Parameters
        ----------
        wanted : Filter or None
            What they must fulfil.
        order : str
            ``started`` (newest first), ``-started``, ``study``, ``host`` or ``folder``.
        limit : int or None
            Most entries to give; all by default.
        offset : int
            Entries to leave out at the beginning.

        Raises
        ------
        UsageError
            If there is no such order.
        """
        if order not in ORDERS:
            message = f"cannot order by `{order}`: allowed: {', '.join(f'`{each}`' for each in ORDERS)}"
            raise UsageError(message)
        where, values = _conditions(wanted or Filter())
        total = int(self._database.rows(f"SELECT COUNT(*) FROM result {where}", values)[0][0])  # noqa: S608 - parts are ours
        bounds = "" if limit is None else f" LIMIT {min(int(limit), _MOST)} OFFSET {min(int(offset), _MOST)}"
        query = f"SELECT {_COLUMNS} FROM result {where} ORDER BY {ORDERS[order]}{bounds}"  # noqa: S608 - parts are ours
        found = [_entry(row) for row in self._database.rows(query, values)]
        return Page(tuple(self._as_now(found)), total)

    def entry(self, identifier: str | Path) -> Entry:
        """Give one result, with the state that it has now.

        Parameters
        ----------
        identifier : str or Path
            Its id, an unambiguous begin of it of at least 2 digits, or the path of its folder. A folder that
            is not in the catalogue yet is read, and not registered.

        Raises
        ------
        DataError
            If there is none, or several.
        """
        text = str(identifier)
        found = self._of_path(text) if isinstance(identifier, Path) or os.sep in text else None
        if found is None and _IDENTIFIER.fullmatch(text):
            found = self._of_prefix(text)
            if found is not None and is_result(Path(text)) and found.folder != Path(os.path.realpath(text)):
                message = (
                    f"cannot tell which result `{text}` is: an id begins with it, and a folder has this name"
                )
                raise DataError(
                    message, hint=f"`./{text}` is the folder; `{found.id}` the id", code="data.result"
                )
        if found is None:
            found = self._of_path(text)
        if found is None:
            message = (
                f"cannot find the result `{text}`: it is neither an id in the catalogue nor a result folder"
            )
            hint = "`steelyard results list` shows ids; `steelyard results scan DIR` finds folders"
            raise DataError(message, hint=hint, code="data.result")
        (now,) = self._as_now([found])
        if now.state != "missing" and now.site == site() and not holds(now.folder, now.id):
            return replace(now, state="missing", problem=f"`{now.folder}` holds another result now")
        return now

    def register(self, folder: str | Path, page: ReportPage | None = None) -> Entry:
        """Read a result folder into the catalogue; one that has not changed since is not read again.

        Parameters
        ----------
        folder : str or Path
            A result folder, also one that is being written.
        page : steelyard.report.page.Page or None
            Its report, where it has just been built.

        Raises
        ------
        DataError
            If it is not a result folder, or the catalogue cannot be written.
        """
        place = Path(os.path.realpath(folder))
        if not is_result(place):
            message = f"cannot register `{folder}`: it is not a result folder"
            hint = "give the folder that `steelyard run`, `steelyard compare` or `steelyard import` wrote"
            raise DataError(message, hint=hint, code="data.absent")
        at = "site = ? AND folder = ?", (site(), _stored_path(place))
        if self._database.rows(f"SELECT stamp FROM result WHERE {at[0]}", at[1]) == [(stamp_of(place),)]:  # noqa: S608 - parts are ours
            entry = self._where(*at)
            if entry is not None and entry.state != "running":
                return entry
        return self.put([read_folder(place, page)])[0]

    def begin(self, folder: Path, provenance: Provenance) -> None:
        """Register a study that has just begun in a folder."""
        self.put([begun_reading(Path(os.path.realpath(folder)), provenance)])

    def put(self, readings: Iterable[Reading]) -> list[Entry]:
        """Write what was read of folders, all or nothing, and give the entries as they are kept."""
        kept: list[Entry] = []
        with self._database.writing():
            for reading in readings:
                own = self._settled(reading)
                self._put(own)
                kept.append(own.entry)
        return kept

    def forget(self, identifier: str) -> None:
        """Remove a result from the catalogue; its folder is left alone.

        Parameters
        ----------
        identifier : str
            Whole id.
        """
        with self.forgetting(identifier):
            pass

    @contextmanager
    def forgetting(self, identifier: str) -> Iterator[None]:
        """Remove a result from the catalogue together with what is done inside: both, or neither.

        Parameters
        ----------
        identifier : str
            Whole id.

        Raises
        ------
        DataError
            If the catalogue cannot be written: at the beginning, where that is known before.
        """
        with self._database.writing():
            self._forget(identifier)
            yield

    def keep_verified(self, folder: Path, verified: Verified) -> bool:
        """Keep what came of verifying a folder of this machine; say whether the catalogue has the folder."""
        lists = json.dumps([verified.problems, verified.not_compared])
        ended = _written(verified.ended or datetime.now(UTC))
        with self._database.writing():
            known = self._where("site = ? AND folder = ?", (site(), _stored_path(folder)))
            if known is None:
                return False
            self._database.write(VERIFICATION_TABLE)
            self._database.write("DELETE FROM verification WHERE result = ?", (known.id,))
            self._database.write(
                "INSERT INTO verification (result, state, stamp, took_s, said, ended, version) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (known.id, verified.state, verified.stamp, verified.took_s, lists, ended, verified.version),
            )
        return True

    def verified(self, folder: Path) -> Verified | None:
        """Give what came of verifying a folder of this machine, whatever became of the folder since."""
        if not self._database.has_table("verification"):
            return None
        query = (
            "SELECT verification.state, verification.stamp, took_s, said, verification.ended, "
            "verification.version FROM verification JOIN result ON result.id = verification.result "
            "WHERE site = ? AND folder = ?"
        )
        for state, stamp, took_s, said, ended, version in self._database.rows(
            query, (site(), _stored_path(folder))
        ):
            problems, lacks = json.loads(said)
            when = datetime.fromisoformat(ended)
            return Verified(state, stamp, float(took_s), tuple(problems), tuple(lacks), when, version)
        return None

    def mark_missing(self) -> list[Entry]:
        """Mark the results of this machine whose folders are gone, and give all of them."""
        query = f"SELECT {_COLUMNS} FROM result WHERE site = ? ORDER BY folder"  # noqa: S608 - parts are ours
        entries = map(_entry, self._database.rows(query, (site(),)))
        gone = [_as_gone(entry) for entry in entries if not is_result(entry.folder)]
        with self._database.writing():
            for entry in gone:
                values = (entry.state, entry.problem, entry.id)
                self._database.write(
                    "UPDATE result SET state = ?, problem = ?, stamp = '' WHERE id = ?", values
                )
        return gone

    def stamps(self) -> dict[str, str]:
        """Give the stamp of each folder on this machine that was read."""
        rows = self._database.rows("SELECT folder, stamp FROM result WHERE site = ?", (site(),))
        return {str(_path(folder)): str(stamp) for folder, stamp in rows}

    def folders(self) -> dict[str, str]:
        """Give the folder of each result, by id."""
        rows = self._database.rows("SELECT id, folder FROM result")
        return {str(one): str(_path(folder)) for one, folder in rows}

    def _as_now(self, entries: Sequence[Entry]) -> list[Entry]:
        """Give entries with the states that their folders have now, as far as this machine sees them.

        What was killed or has come back is read, and kept as that: a list of many must not read each again.
        """
        found = [_as_gone(each) if _is_gone(each) else each for each in entries]
        stale = {
            at: read_folder(each.folder, says_verdict=False)
            for at, each in enumerate(found)
            if _is_stale(each)
        }
        if not stale:
            return found
        try:
            with self._database.writing():
                for at, reading in stale.items():
                    # It may have been resumed meanwhile. Without a stamp a scan reads its report as well.
                    if _is_stale(found[at]):
                        own = self._settled(replace(reading, stamp=""))
                        self._put(own)
                        found[at] = own.entry
        except DataError:  # a catalogue that may only be read
            for at, reading in stale.items():
                found[at] = replace(reading.entry, id=entries[at].id)
        return found

    def _settled(self, reading: Reading) -> Reading:
        """Give a reading the id it is kept by: a folder was moved, was copied, or is known under its path."""
        entry = reading.entry
        before = self._where("site = ? AND folder = ?", (entry.site, _stored_path(entry.folder)))
        other = self._where("id = ?", (entry.id,))
        is_same_place = other is not None and (other.site, other.folder) == (entry.site, entry.folder)
        if other is not None and not is_same_place and _stands(other):
            reading = with_own_id(reading)
        if before is not None and before.id != reading.entry.id:
            if entry.state == "damaged":
                # What it was is known from before; what it is now cannot be read.
                return _kept(before, reading)
            self._forget(before.id)
        return reading

    def _put(self, reading: Reading) -> None:
        entry, database = reading.entry, self._database
        search = " ".join(
            (entry.title, entry.verdict, entry.note, *entry.tags, entry.study, entry.host, str(entry.folder))
        )
        database.write(_PUT, (*map(_stored, _row(entry)), _stored(search.casefold()), reading.stamp))
        for table, words in (("tag", entry.tags), ("verdict", reading.verdicts)):
            database.write(f"DELETE FROM {table} WHERE result = ?", (entry.id,))  # noqa: S608 - parts are ours
            for word in words:
                database.write(f"INSERT INTO {table} (result, {table}) VALUES (?, ?)", (entry.id, word))  # noqa: S608 - parts are ours

    def _forget(self, identifier: str) -> None:
        self._database.write("DELETE FROM result WHERE id = ?", (identifier,))

    def _where(self, condition: str, values: Sequence[object]) -> Entry | None:
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM result WHERE {condition}", values)  # noqa: S608 - parts are ours
        return _entry(rows[0]) if rows else None

    def _of_path(self, text: str) -> Entry | None:
        place = Path(os.path.realpath(text))
        known = self._where("site = ? AND folder = ?", (site(), _stored_path(place)))
        is_known = known is not None and holds(place, known.id)
        return read_folder(place).entry if not is_known and is_result(place) else known

    def _of_prefix(self, text: str) -> Entry | None:
        query = f"SELECT {_COLUMNS} FROM result WHERE id BETWEEN ? AND ? ORDER BY id"  # noqa: S608 - parts are ours
        bounds = tuple(text.ljust(ID_DIGITS, digit) for digit in "0f")
        rows = self._database.rows(query, bounds)
        if len(rows) > 1:
            shown = ", ".join(f"`{row[0]}`" for row in rows[:_SHOWN_CANDIDATES])
            more = f" and {len(rows) - _SHOWN_CANDIDATES} more" if len(rows) > _SHOWN_CANDIDATES else ""
            message = f"cannot tell which result `{text}` is: {shown}{more} begin with it"
            raise DataError(message, hint="give more digits", code="data.result")
        return _entry(rows[0]) if rows else None


def _conditions(wanted: Filter) -> tuple[str, list[object]]:
    """Give the condition of a query and its values."""
    parts: list[tuple[str, object]] = []
    if wanted.study is not None:
        parts.append(("study = ?", wanted.study))
    if wanted.host is not None:
        parts.append(("lower(host) LIKE ? ESCAPE '!'", f"{_literal(wanted.host.lower())}%"))
    if wanted.commit is not None:
        parts.append(("commit_id LIKE ? ESCAPE '!'", f"{_literal(wanted.commit.lower())}%"))
    if wanted.since is not None:
        parts.append(("started >= ?", _written(wanted.since)))
    if wanted.until is not None:
        parts.append(("started < ?", _written(wanted.until)))
    if wanted.tag is not None:
        parts.append(("id IN (SELECT result FROM tag WHERE tag = ?)", wanted.tag))
    if wanted.verdict is not None:
        parts.append(("id IN (SELECT result FROM verdict WHERE verdict = ?)", wanted.verdict))
    words = (wanted.text or "").casefold().split()
    parts.extend(("search LIKE ? ESCAPE '!'", f"%{_literal(word)}%") for word in words)
    where = f"WHERE {' AND '.join(condition for condition, _ in parts)}" if parts else ""
    return where, [_stored(value) for _, value in parts]


def _literal(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _written(instant: datetime) -> str:
    """Write a time so that texts have the order of times."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def _stored(value: object) -> object:
    """Give a value that every database takes: no zero byte, and bytes that are not text made visible."""
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\\0")
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _stored_path(path: Path) -> str:
    """Give a path as text that leads back to it: names may be any bytes."""
    try:
        text = str(path)
        text.encode("utf-8")
    except UnicodeEncodeError:
        return f"{_AS_BYTES}{os.fsencode(path).hex()}"
    return text


def _path(stored: str) -> Path:
    is_bytes = stored.startswith(_AS_BYTES)
    return Path(os.fsdecode(bytes.fromhex(stored.removeprefix(_AS_BYTES))) if is_bytes else stored)


def _row(entry: Entry) -> tuple[object, ...]:
    return (
        entry.id,
        _stored_path(entry.folder),
        entry.host,
        entry.study,
        entry.title,
        _written(entry.started),
        None if entry.ended is None else _written(entry.ended),
        entry.state,
        entry.commit,
        entry.version,
        entry.cells,
        entry.runs,
        entry.verdict,
        entry.verdict_kind,
        " ".join(entry.tags),
        entry.note,
        entry.problem,
        entry.site,
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    identifier, folder, host, study, title, started, ended, *rest = row
    state, commit, version, cells, runs, verdict, kind, tags, note, problem, place = rest
    return Entry(
        identifier,
        _path(folder),
        host,
        study,
        title,
        datetime.fromisoformat(started),
        None if ended is None else datetime.fromisoformat(ended),
        state,
        commit,
        version,
        cells,
        runs,
        verdict,
        kind,
        tuple(tags.split()),
        note,
        problem,
        place,
    )


def require_here(entry: Entry, purpose: str) -> Entry:
    """Give an entry whose folder this machine has.

    Parameters
    ----------
    entry : Entry
        With the state that it has now.
    purpose : str
        What is to be done with it, as in ``open``.

    Raises
    ------
    UsageError
        If its folder is on another machine.
    DataError
        If its folder is gone.
    """
    if entry.site not in {"", site()}:
        message = f"cannot {purpose} `{entry.id}` here: its folder `{entry.folder}` is on `{entry.site}`"
        raise UsageError(message, hint="repeat the command there", code="usage.other-host")
    if entry.state == "missing":
        message = f"cannot {purpose} `{entry.id}`: {entry.problem}"
        hint = "`steelyard results scan DIR` finds it where it was moved to"
        raise DataError(message, hint=hint, code="data.absent")
    return entry


def _stands(entry: Entry) -> bool:
    """Whether the folder of an entry still holds it; of another machine's it is believed."""
    return entry.site != site() or (is_result(entry.folder) and holds(entry.folder, entry.id))


def _is_gone(entry: Entry) -> bool:
    return entry.site == site() and not is_result(entry.folder)


def _as_gone(entry: Entry) -> Entry:
    return replace(entry, state="missing", problem=f"`{entry.folder}` is gone")


def _is_stale(entry: Entry) -> bool:
    """Whether the folder of an entry is there and says something else: it has come back, or was killed."""
    if entry.site != site() or not is_result(entry.folder):
        return False
    return entry.state == "missing" or (entry.state == "running" and not is_held(entry.folder))


def _kept(before: Entry, reading: Reading) -> Reading:
    """Give what was known of a folder that cannot be read any more, with the reason."""
    entry = replace(before, state="damaged", problem=reading.entry.problem)
    return replace(reading, entry=entry)
