"""A result folder read into an entry of the catalogue."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.catalogue.entry import Entry
from steelyard.errors import DataError, SteelyardError
from steelyard.model.plan import PLAN_NAME, PLAN_SCHEMA
from steelyard.record.folder_lock import is_held
from steelyard.record.labels import LABELS_NAME, Labels, read_labels
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Page

ID_DIGITS: Final = 10
_HOST_DIGITS: Final = 12
_HOSTS_NAMED: Final = 4
_LONGEST_TITLE: Final = 160
_SHOWN_LEVELS: Final = 4
_PHASE: Final = "phase"
"""Factor that separates warm-up runs from those that count."""
_FINDINGS: Final = "findings.json"
_NO_CLAIM: Final = "descriptive"
"""Verdict of a finding that describes and decides nothing."""
_BESIDE_PLAN: Final = ("provenance.json", "ledger.sqlite", "runs.parquet")
_TAIL_BYTES: Final = 4096
MOST_FINDINGS_BYTES: Final = 32 * 1024**2
"""Larger findings are not read for a list: those of 100 000 cells take minutes."""
MOST_FILES: Final = 100_000
"""In a result folder; a look at each takes a second. A study leaves tens, and a few thousand traces."""
OF_RUNS: Final = frozenset({"logs", "placed", "traces"})
"""Folders of a result that hold files of each run: tables and findings are read without them."""
_STAMPED: Final = (PLAN_NAME, "provenance.json", _FINDINGS, "runs.parquet", LABELS_NAME)
"""Files that an entry follows from."""
_READ: Final = (*_STAMPED, "attempts.parquet")
_NOT_OF_STATE: Final = ("ledger.sqlite-", "ledger.sqlite.lock")
"""What readers of a ledger may write beside it."""


FAULTS: Final = (SteelyardError, OSError, ArithmeticError, LookupError, TypeError, ValueError)
"""What a damaged or a stranger's folder makes of the analysis, which is no fault of the catalogue."""


def reason_of(error: Exception) -> str:
    """Say one of `FAULTS` in a message."""
    if isinstance(error, UnicodeEncodeError):
        return "its path contains bytes that are not UTF-8, where tables cannot be read: rename it"
    return error.message if isinstance(error, SteelyardError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Reading:
    """An entry with what the catalogue keeps beside it.

    Parameters
    ----------
    entry : Entry
        The entry.
    verdicts : tuple of str
        Verdicts that its findings have.
    stamp : str
        Sizes and times of the files that it was read from.
    """

    entry: Entry
    verdicts: tuple[str, ...]
    stamp: str


def is_result(folder: Path) -> bool:
    """Whether a folder holds a result, its beginning, or what is left of one."""
    # A plan of some other tool may have the same name.
    return (
        (folder / PLAN_NAME).is_file()
        and (any((folder / name).exists() for name in _BESIDE_PLAN) or _names_schema(folder / PLAN_NAME))
    ) or all((folder / name).exists() for name in ("provenance.json", "runs.parquet"))


def _names_schema(path: Path) -> bool:
    """Whether the end of a plan, where its schema stands, says that it is one of ours."""
    try:
        with path.open("rb") as file:
            file.seek(-min(_TAIL_BYTES, path.stat().st_size), os.SEEK_END)
            return PLAN_SCHEMA.rpartition("/")[0].encode() in file.read()
    except OSError:
        return False


def site() -> str:
    """Give the name of this machine."""
    return socket.gethostname()


def stamp_of(folder: Path) -> str:
    """Give sizes and times of the files that an entry follows from; equal if nothing was changed."""
    found = []
    for name in _STAMPED:
        try:
            status = (folder / name).stat()
        except OSError:
            found.append("-")
        else:
            found.append(f"{status.st_size}.{status.st_mtime_ns}")
    return " ".join(found)


def files_in(folder: Path, without: Collection[str] = ()) -> Iterator[os.DirEntry[str]]:
    """Give what is in a folder at any depth but the folders themselves, links to folders included.

    What stands above comes first, so that one folder of a million files hides nothing beside it.

    Parameters
    ----------
    folder : Path
        Where to look.
    without : collection of str
        Folders directly in it that are not looked into.

    Raises
    ------
    DataError
        After `MOST_FILES`.
    """
    waiting, seen = deque([os.fspath(folder)]), 0
    left_out = {os.path.join(folder, name) for name in without}  # noqa: PTH118 - as `scandir` writes it
    while waiting:
        with suppress(OSError), os.scandir(waiting.popleft()) as found:  # what was removed meanwhile
            for each in found:
                seen += 1
                if seen > MOST_FILES:
                    message = f"`{folder}` has more than {MOST_FILES} files"
                    raise DataError(message, hint="move those away that are no part of it", code="data.large")
                if not each.is_dir(follow_symlinks=False):
                    yield each
                elif each.path not in left_out:
                    waiting.append(each.path)


def folder_state(folder: Path) -> str:
    """Give a digest of names, sizes and times of all files but labels; equal if nothing was written.

    A file that was written and given its earlier time of change has another time of its status.

    Raises
    ------
    DataError
        If there are more than `MOST_FILES`.
    """
    facts, above = [], len(os.path.join(folder, ""))  # noqa: PTH118 - as `files_in` writes it
    for each in files_in(folder):
        name = each.path[above:]
        if name == LABELS_NAME or name.startswith(_NOT_OF_STATE):
            continue
        with suppress(OSError):  # removed meanwhile: it does not count
            status = each.stat(follow_symlinks=False)
            times = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            facts.append(os.fsencode(name) + f"\0{times}\n".encode())
    return hashlib.sha256(b"".join(sorted(facts))).hexdigest()


def read_folder(folder: Path, page: Page | None = None, *, says_verdict: bool = True) -> Reading:
    """Read a result folder.

    Parameters
    ----------
    folder : Path
        Absolute path.
    page : Page or None
        Its report, where somebody has built it.
    says_verdict : bool
        Whether the report is built for its first sentence.

    Returns
    -------
    Reading
        Of a folder that cannot be read, state ``damaged`` and the reason.
    """
    stamp, is_running = stamp_of(folder), is_held(folder)
    try:
        for name in _READ:
            _require_plain_file(folder / name)
        entry, findings = _read(folder, is_running=is_running)
        if findings is None:
            return Reading(entry, (), stamp)
        if says_verdict:
            entry = _with_verdict(entry, findings, page)
    except FAULTS as error:
        return Reading(_damaged(folder, reason_of(error)), (), stamp)
    return Reading(entry, tuple(sorted({each.verdict for each in findings.own()})), stamp)


def holds(folder: Path, identifier: str) -> bool:
    """Whether a folder still holds the result of an id, as far as it can be read."""
    from steelyard.record.provenance import read_provenance  # noqa: PLC0415 - start-up time

    try:
        provenance = read_provenance(folder)
        started, _ = _span(folder, provenance)
    except FAULTS:
        return True  # what it was before it was damaged nobody can tell from it
    own = _identity(provenance, started)
    return identifier in {own, _digits(own, site(), str(folder)), _digits(site(), str(folder))}


def _identity(provenance: Provenance, started: datetime) -> str:
    return _digits(provenance.plan_id, provenance.host_id, started.isoformat())


def _require_plain_file(path: os.DirEntry[str] | Path) -> None:
    """Refuse a file whose reading would never end, as that of a named pipe.

    A link that leads nowhere is no such file: programs may leave some among what they wrote.
    """
    if not path.is_file() and not path.is_dir() and Path(path).exists():
        message = f"`{os.fspath(path)}` is not a regular file"
        raise DataError(message, code="data.corrupt")


def begun_reading(folder: Path, provenance: Provenance) -> Reading:
    """Give the entry of a study that has just begun, as quickly as can be: somebody measures soon."""
    plan = json.loads((folder / PLAN_NAME).read_bytes())
    entry = _described(folder, provenance, plan["factors"])
    return Reading(replace(entry, state="running", ended=None, cells=len(plan["cells"])), (), "")


def _read(folder: Path, *, is_running: bool) -> tuple[Entry, FindingSet | None]:
    from steelyard.model.plan import read_plan  # noqa: PLC0415 - start-up time
    from steelyard.record.provenance import PROVENANCE_NAME, Provenance, read_provenance  # noqa: PLC0415
    from steelyard.record.seal import is_cut_import  # noqa: PLC0415

    plan = read_plan(folder / PLAN_NAME)
    # Before its first run a study has a plan and no provenance yet.
    provenance = (
        read_provenance(folder)
        if (folder / PROVENANCE_NAME).exists()
        else Provenance(plan.study, plan.id, plan.seed)
    )
    entry = replace(_described(folder, provenance, plan.factors), cells=len(plan.cells), runs=_runs(folder))
    if is_running:
        return replace(entry, state="running", ended=None), None
    path = folder / _FINDINGS
    is_complete = path.exists() and not is_cut_import(plan, provenance) and not _lacking(folder, plan)
    entry = replace(entry, state="complete" if is_complete else "incomplete")
    size = path.stat().st_size if path.exists() else 0
    if size > MOST_FINDINGS_BYTES:
        problem = f"its findings are not read for this list: `{path.name}` has {format_bytes(size)}"
        return replace(entry, problem=entry.problem or problem), None
    return entry, _findings(folder)


def _described(folder: Path, provenance: Provenance, factors: Mapping[str, Sequence[str]]) -> Entry:
    """Give what the provenance says, without size and state."""
    started, ended = _span(folder, provenance)
    labels, problem = _labels(folder)
    return Entry(
        id=_identity(provenance, started),
        folder=folder,
        host=_host(provenance),
        study=provenance.study,
        title=_title(factors, provenance),
        started=started,
        ended=ended,
        state="incomplete",
        commit=None if provenance.git is None else provenance.git.commit,
        version=provenance.versions.get("steelyard", ""),
        tags=labels.tags,
        note=labels.note,
        problem=problem,
        site=site(),
    )


def with_own_id(reading: Reading) -> Reading:
    """Give a copy of a result, beside which the original still exists, an id that follows from its path."""
    entry = reading.entry
    return replace(reading, entry=replace(entry, id=_digits(entry.id, entry.site, str(entry.folder))))


def _digits(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:ID_DIGITS]


def _damaged(folder: Path, reason: str) -> Entry:
    try:
        seconds = (folder / PLAN_NAME).stat().st_mtime
    except OSError:
        seconds = 0.0
    labels, _ = _labels(folder)
    return Entry(
        id=_digits(site(), str(folder)),
        folder=folder,
        host="",
        study="",
        title=folder.name,
        started=datetime.fromtimestamp(seconds, UTC),
        ended=None,
        state="damaged",
        tags=labels.tags,
        note=labels.note,
        problem=reason,
        site=site(),
    )


def _labels(folder: Path) -> tuple[Labels, str]:
    try:
        return read_labels(folder), ""
    except DataError as error:
        return Labels(), error.message


def _findings(folder: Path) -> FindingSet | None:
    from steelyard.model.finding import read_findings  # noqa: PLC0415 - start-up time

    return read_findings(folder / _FINDINGS) if (folder / _FINDINGS).exists() else None


def _runs(folder: Path) -> int:
    from pyarrow import ArrowException  # noqa: PLC0415 - start-up time
    from pyarrow.parquet import read_metadata  # noqa: PLC0415 - start-up time

    path = folder / "runs.parquet"
    try:
        return int(read_metadata(path).num_rows) if path.exists() else 0
    except (ArrowException, OSError) as error:
        message = f"cannot read `{path}`: {error}"
        raise DataError(message, code="data.corrupt") from error


def _lacking(folder: Path, plan: Plan) -> int:
    from steelyard.record.tables import count_lacking_batches  # noqa: PLC0415 - start-up time

    return count_lacking_batches(folder, plan) if (folder / "runs.parquet").exists() else 0


def _span(folder: Path, provenance: Provenance) -> tuple[datetime, datetime | None]:
    """Give when the first session began and the last one ended; those of hosts lie within it."""
    sessions = provenance.own_sessions
    started = _instant(sessions[0].begun_utc) if sessions else None
    if started is None:
        started = datetime.fromtimestamp(int((folder / PLAN_NAME).stat().st_mtime), UTC)
    return started, _instant(sessions[-1].ended_utc) if sessions else None


def _instant(text: str | None) -> datetime | None:
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def _host(provenance: Provenance) -> str:
    """Name the host that measured: not the one where it was asked for, if the runs were placed on others."""
    from steelyard.record.placed.hosts import host_names  # noqa: PLC0415 - start-up time

    if set(provenance.hosts) - {provenance.host_id}:
        names = sorted(host_names(provenance, provenance.hosts).values())
        more = len(names) - _HOSTS_NAMED
        return ", ".join(names[:_HOSTS_NAMED]) + (f" and {more} more" if more > 0 else "")
    if not provenance.host_id:
        return ""
    return site() if provenance.host_id == _own_host_id() else provenance.host_id[:_HOST_DIGITS]


@cache
def _own_host_id() -> str:
    from steelyard.run.machine.host import read_fingerprint  # noqa: PLC0415 - start-up time

    return read_fingerprint().host_id


def _title(factors: Mapping[str, Sequence[str]], provenance: Provenance) -> str:
    """Say what was measured: the imported files, or the levels of the factors that vary."""
    if provenance.origin is not None:
        names = [each.file_name for each in provenance.origins or (provenance.origin,)]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return _in_line(f"{provenance.origin.importer}: {names[0]}{more}")
    own = {name: levels for name, levels in factors.items() if name != _PHASE}
    varied = {name: levels for name, levels in own.items() if len(levels) > 1} or own
    if len(varied) == 1:
        return _in_line(_levels(*varied.values()))
    return _in_line("; ".join(f"{name}: {_levels(levels)}" for name, levels in varied.items()))


def _levels(levels: Sequence[str]) -> str:
    more = f" and {len(levels) - _SHOWN_LEVELS} more" if len(levels) > _SHOWN_LEVELS else ""
    return ", ".join(levels[:_SHOWN_LEVELS]) + more


def _in_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 4].rstrip() + " ..."


def _with_verdict(entry: Entry, findings: FindingSet, page: Page | None) -> Entry:
    """Add the first sentence of the report, and the verdict of the finding behind it."""
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    if page is None:
        try:
            for each in files_in(entry.folder):
                _require_plain_file(each)
        except DataError as error:
            if error.code != "data.large":
                raise
            problem = entry.problem or f"its report is not read for this list: {error.message}"
            return replace(_with_counts(entry, findings), problem=problem)
    page = page or study_of(findings.study, entry.folder).page(entry.folder)
    if not page.answer:
        return entry
    first = page.answer[0]
    named = (page.findings[part.finding] for part in first.parts if part.finding in page.findings)
    kind = next((each.verdict for each in named), "")
    return replace(entry, verdict=" ".join(first.text.split()), verdict_kind=kind)


def _with_counts(entry: Entry, findings: FindingSet) -> Entry:
    """Say how often each verdict was found, where nobody has read the sentence about them."""
    counts = Counter(each.verdict for each in findings.own() if each.verdict != _NO_CLAIM).most_common()
    said = ", ".join(f"{verdict}: {count}" for verdict, count in counts)
    return replace(entry, verdict=said, verdict_kind=counts[0][0] if len(counts) == 1 else "")
