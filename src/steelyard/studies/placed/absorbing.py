"""From the journals of hosts into the one ledger of the result, as far as they are written."""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.placed.hosts import BYSTANDERS, CLOCK, STARTS
from steelyard.record.placed.journal import JOURNAL_NAME, JournalReader, PlacedAttempt
from steelyard.record.provenance import Provenance, read_provenance
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.run.hosts.clocks import (
    CLOCK_NAME,
    checked,
    compare_clock,
    keep_readings,
    now_ns,
    read_readings,
)
from steelyard.studies.placed.parts import PLACED_NAME, read_part, starts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.model import RunStatus
    from steelyard.record.ledger import Ledger
    from steelyard.run.hosts.clocks import ClockReading

LATE_S: Final = 0.1
"""Between reading the time and writing the line that has it, on a file system of this host."""
_OF_HOST: Final = frozenset({"data.journal", "data.absent", "data.corrupt", "data.schema"})
"""What is wrong with what a host wrote, not with the result."""


@dataclass(slots=True)
class Absorber:
    """Takes what hosts recorded into the ledger; each attempt once, however often it is called.

    Parameters
    ----------
    result : Path
        Result folder.
    ledger : Ledger
        Its ledger.
    note : callable
        Told which journals are damaged: what they say from there on is not used, and placed again.
    late_s : float
        So long after it was written a line of a journal may become visible here [s].
    remarks : list of str
        What of this the reader of the result must know.
    """

    result: Path
    ledger: Ledger
    note: Callable[[str], None]
    late_s: float = LATE_S
    remarks: list[str] = field(default_factory=list)
    statuses: Counter[RunStatus] = field(default_factory=Counter)
    _readers: dict[Path, JournalReader] = field(default_factory=dict)
    _hosts: dict[Path, str] = field(default_factory=dict)
    _batches: dict[Path, frozenset[int]] = field(default_factory=dict)
    _refused: set[Path] = field(default_factory=set)
    _damaged: set[Path] = field(default_factory=set)
    _placed_ns: dict[str, int] = field(default_factory=dict)
    _looked_ns: dict[str, int] = field(default_factory=dict)

    def placing(self, parts: Iterable[str]) -> None:
        """Be told of parts that are placed now: their hosts begin them later than this."""
        self._placed_ns |= dict.fromkeys(parts, now_ns())

    def absorb(self, parts: Iterable[str], *, are_over: bool = False) -> list[int]:
        """Take what is new; give the batches that were completed.

        Parameters
        ----------
        parts : iterable of str
            Parts that may have recorded something since the last time.
        are_over : bool
            Whether their processes are gone: what they left in the middle is taken, too.
        """
        complete: list[PlacedAttempt] = []
        try:
            with self.ledger.together():
                for part in sorted(parts):
                    look_ns = now_ns()
                    for start in starts_of(self.result / PLACED_NAME / part):
                        complete += self._absorb_start(part, start, are_over=are_over)
                    self._looked_ns[part] = look_ns
        except BaseException:
            # None of it was taken: whoever goes on, as after Ctrl-C, reads the journals from their begin.
            self._readers.clear()
            raise
        self.statuses.update(outcome.status for each in complete for _, outcome in each.runs)
        return [each.batch for each in complete]

    def _absorb_start(self, part: str, start: Path, *, are_over: bool) -> list[PlacedAttempt]:
        """Take what is new of a start; give the attempts that completed their batches."""
        if start in self._refused:
            return []
        attempts: list[PlacedAttempt] = []
        try:
            attempts.extend(self._attempts(start, are_over=are_over))
        except DataError as error:
            self._refuse(start, error)
        self._read_clock(part, start, attempts)
        try:
            return self._take(start, attempts)
        except DataError as error:
            self._refuse(start, error)
            return []

    def _read_clock(self, part: str, start: Path, attempts: Sequence[PlacedAttempt]) -> None:
        """Keep what new lines say of the host's clock: they were written after the look without them.

        Where the engine asks hosts for their time, this says less, and what it copies is seen later.
        """
        placed_ns = self._placed_ns.get(part, 0)
        begun_ns = max(placed_ns, self._looked_ns.get(part, 0) - round(self.late_s * 1e9))
        if begun_ns <= 0 or not attempts or (start.parents[1] / CLOCK_NAME).exists():
            return
        seen_ns = now_ns()
        stamps = [(begun_ns, each.ended_utc) for each in attempts]
        if placed_ns:
            stamps.append((placed_ns, attempts[0].begun_utc))
        found = (_reading(before_ns, utc, seen_ns) for before_ns, utc in stamps)
        keep_readings(start, (each for each in found if each is not None))

    def _refuse(self, start: Path, error: DataError) -> None:
        if error.code not in _OF_HOST:
            raise error
        self._refused.add(start)
        self.note(f"{error.message}; what is not taken yet is placed again")

    def _attempts(self, start: Path, *, are_over: bool) -> Iterator[PlacedAttempt]:
        """Give the attempts of a journal that are new, each of a batch of its part."""
        reader = self._readers.setdefault(start, JournalReader(start / JOURNAL_NAME))
        for each in reader.completed():
            yield self._of_part(start, each)
        if are_over and (rest := reader.rest()) is not None:
            yield self._of_part(start, rest)
        if are_over:
            self._note_damage(start, *reader.unreadable())

    def _note_damage(self, start: Path, place: int, lines: int) -> None:
        if not lines or start in self._damaged:
            return
        self._damaged.add(start)
        journal = (start / JOURNAL_NAME).relative_to(self.result)
        remark = (
            f"`{journal}` is damaged: the line at byte {place} has a wrong checksum; {lines} lines from there"
        )
        self.remarks.append(f"{remark} were not used, and what they held was placed again")
        self.note(f"{remark} are not used; what is not taken yet is placed again")

    def _of_part(self, start: Path, attempt: PlacedAttempt) -> PlacedAttempt:
        if attempt.batch not in self._batches_of(start.parents[1]):
            message = f"`{start / JOURNAL_NAME}` has batch {attempt.batch}, which its part has not"
            raise DataError(message, code="data.journal")
        return attempt

    def _batches_of(self, part: Path) -> frozenset[int]:
        if part not in self._batches:
            self._batches[part] = frozenset(read_part(part).batches)
        return self._batches[part]

    def _take(self, start: Path, attempts: Iterable[PlacedAttempt]) -> list[PlacedAttempt]:
        found = {(each.batch, each.number): each for each in attempts}
        if not found:
            return []
        if start not in self._hosts:
            self._hosts[start] = read_provenance(start).host_id
        journal = start.relative_to(self.result / PLACED_NAME).as_posix()

        def keep_files(attempt: PlacedAttempt, number: int) -> None:
            source = start / TRACES_NAME / files_name(attempt.batch, attempt.number)
            if source.is_dir():
                target = self.result / TRACES_NAME / files_name(attempt.batch, number)
                shutil.rmtree(target, ignore_errors=True)  # of an absorber that was killed at this place
                shutil.copytree(source, target, copy_function=_link_or_copy)

        completed = self.ledger.absorb(
            found.values(), keep_files, journal=journal, host_id=self._hosts[start]
        )
        return [found[key] for key in completed]


def _reading(before_ns: int, utc: str | None, after_ns: int) -> ClockReading | None:
    """Give a reading of a time in milliseconds that were cut, not rounded."""
    with suppress(ValueError, OverflowError):
        there_ns = round(datetime.fromisoformat(utc or "").timestamp() * 1e3) * 10**6
        return checked(before_ns - 10**6, there_ns, after_ns)
    return None


def _link_or_copy(source: str, target: str) -> None:
    """Give a file a second name, where the file system can: nobody changes what a run left."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def with_hosts(provenance: Provenance, result: Path, remarks: Iterable[str] = ()) -> Provenance:
    """Give the provenance of a placed study with what its hosts say of themselves, and remarks on them."""
    of_host: defaultdict[str, list[Provenance]] = defaultdict(list)
    readings: defaultdict[str, list[ClockReading]] = defaultdict(list)
    said: list[str] = []
    for part in sorted((result / PLACED_NAME).glob("part-*")):
        for start in sorted(part.glob("starts/*")):
            with suppress(DataError):  # of a host that was refused
                found = read_provenance(start)
                said += found.notes
                if not (start / JOURNAL_NAME).exists():
                    continue
                of_host[found.host_id].append(found)
                readings[found.host_id] += [*read_readings(part), *read_readings(start)]
    starts = [each for those in of_host.values() for each in those]
    hosts = {host_id: _described(those, readings[host_id]) for host_id, those in of_host.items()}
    own = tuple(session for session in provenance.sessions if not session.host_id)
    sessions = tuple(replace(session, host_id=each.host_id) for each in starts for session in each.sessions)
    notes = tuple(dict.fromkeys([*provenance.notes, *said, *remarks]))
    return replace(provenance, hosts=hosts, sessions=(*own, *sessions), notes=notes)


def _described(starts: Sequence[Provenance], readings: Iterable[ClockReading]) -> JsonValue:
    """Give what a host says of itself: the newest of its starts, what others did in all, and its clock."""
    newest = starts[-1]
    clock = compare_clock(readings)
    return {
        "host": {name: said for name, said in newest.host.items() if name != BYSTANDERS},
        "versions": {**newest.versions},
        "technologies": newest.technologies,
        "calibration": newest.calibration,
        CLOCK: None if clock is None else asdict(clock),
        STARTS: len(starts),
        BYSTANDERS: [each.host[BYSTANDERS] for each in starts if BYSTANDERS in each.host],
    }
