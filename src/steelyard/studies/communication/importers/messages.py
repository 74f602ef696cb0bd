"""Recordings of messages with named columns: sizes and times, of one end or of both.

Without columns of its own names it also takes what SkaMPI and message traces of two ranks look like.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from steelyard.errors import UsageError
from steelyard.model.plain_file import read_plain_file
from steelyard.record.importers.delimited import (
    column_place,
    contradicted,
    delimiter_of,
    number_of,
    only_column,
    rows,
    split_heading,
    table_rows,
)
from steelyard.record.importers.foreign import DECIMAL_EXPONENTS, ForeignFile, Source, unreadable
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.studies.communication.importers import skampi, zoo
from steelyard.studies.communication.importers.message_columns import (
    BOTH_ENDS,
    MessageColumns,
    stated_operation,
)
from steelyard.studies.communication.importers.recording import Column
from steelyard.studies.communication.importers.recording_result import write_recordings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray

    from steelyard.record.importers.reading import ReadOptions

    Whole = NDArray[np.int64]

EXPECTED: Final = (
    "a table (comma, semicolon, tab or blanks) whose heading names the size and the times: `op,size,time`, "
    "`size,start,end` or `seq,op,size,start0,end0,start1,end1`, units as in `time_us` or by `--unit`; other "
    "names by `--column size=NAME --column time=NAME`"
)
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "size": ("size", "bytes", "count", "nbytes", "length", "message", "messagesize", "msgsize", "sizebytes"),
    "time": ("time", "duration", "latency", "elapsed", "t", "tavg", "avglatency", "meantime", "seconds"),
    "op": ("op", "operation", "call", "type"),
    "seq": ("seq", "sequence", "order", "index", "number"),
    "repetitions": ("repetitions", "reps"),
    "start": ("start", "begin"),
    "end": ("end", "stop", "finish"),
    "start0": ("start0", "begin0"),
    "end0": ("end0", "stop0"),
    "start1": ("start1", "begin1"),
    "end1": ("end1", "stop1"),
}
"""What each column may be called; capitals, blanks, lines and units do not count."""

TIMES: Final = ("time", "start", "end", *BOTH_ENDS)
PROBE_COLUMNS: Final = ("send0", "time1", "recv0")
WAITING_COLUMNS: Final = ("seq", "t0", "run_delay0", "t1", "run_delay1")
PROBES_SUFFIX: Final = ".sync"
WAITING_SUFFIX: Final = ".sched"
NAME: Final = "messages"

_SKAMPI: Final = re.compile(r"[A-Za-z_]\w*=\s*\d")
_ZOO_FIELDS: Final = 7


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong, or the columns there are.
    UsageError
        If the unit of the times is not known, or an option would have no effect.
    """
    other = None if options.columns else _other_form(source)
    if other is not None:
        _refuse_ignored(
            source, options, "is SkaMPI output" if other is skampi else "contains stamps of two ranks"
        )
        found: ForeignFile = other.read(replace(source, expected=other.EXPECTED), options)
        return found
    table = _table(source, options)
    problems = ProblemList(source.path, EXPECTED)
    columns = table.columns(problems)
    units, said = _units(source, table, columns, options)
    messages = MessageColumns(columns, units, problems, stated_operation(options.operation))
    recording = messages.recording(options.transport or NAME)
    problems.raise_if_any()
    facts = {"tool": "recording"}
    notes = [f"columns: {', '.join(f'{role} `{column.name}`' for role, column in columns.items())}; {said}"]
    if ignored := [name for place, name in enumerate(table.heading) if place not in table.places.values()]:
        notes.append(f"columns that were not taken: {', '.join(f'`{name[:40]}`' for name in ignored[:20])}")
    if "op" not in columns and not options.operation:
        notes.append(
            "the file does not say what its times are of: each is taken for that of one message; "
            "`--operation pingpong` takes it for a round trip"
        )
    notes += messages.notes
    if source.path in options.probes and not recording.has_second:
        _without_effect("--probes", source, "contains stamps of one end")
    recording = replace(recording, is_one_clock=options.is_one_clock)
    if recording.has_second:
        unit = units["start0"]
        companions: tuple[tuple[str, Sequence[str]], ...] = (
            (PROBES_SUFFIX, PROBE_COLUMNS),
            (WAITING_SUFFIX, WAITING_COLUMNS),
        )
        for suffix, names in companions:
            path = _beside(source.path, suffix, options)
            if path is None:
                continue
            numbers, digest = _numbers(path, names, unit)
            facts |= {f"file{suffix}": path.name, f"sha256{suffix}": digest}
            if suffix == PROBES_SUFFIX:
                recording = replace(recording, probes=numbers)
                notes.append(f"{len(numbers)} clock probes from `{path.name}`")
            else:
                numbers[:, 0] = np.searchsorted(messages.seq, numbers[:, 0])
                recording = replace(recording, waiting=numbers)
                notes.append(f"{len(numbers)} marks of waiting for a CPU from `{path.name}`")
    return ForeignFile("table of messages", facts=facts, notes=notes, recordings=[recording])


def _refuse_ignored(source: Source, options: ReadOptions, what: str) -> None:
    """Refuse options of tables, and of two ends, that another form has no use for."""
    given = {
        "--unit": options.unit,
        "--decimal": options.decimal != ".",
        "--probes": source.path in options.probes,
        "--one-clock": options.is_one_clock and "ranks" not in what,
    }
    for option in (name for name, value in given.items() if value):
        _without_effect(option, source, what)


def _without_effect(option: str, source: Source, what: str) -> NoReturn:
    message = f"cannot use `{option}`: `{source.path}` {what}, where it would have no effect"
    raise UsageError(message, hint=f"leave out `{option}`")


def _other_form(source: Source) -> ModuleType | None:
    """Give the reader of a form whose lines are no table, by the first line that is no comment."""
    lines = (line for line in source.text().splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    if _SKAMPI.match(first.lstrip()):
        return skampi
    row = first.split()
    types = [at for at, field in enumerate(row) if number_of(field) is None]
    is_zoo = len(row) == _ZOO_FIELDS and (types == [1, 4] or tuple(row) == zoo.COLUMNS)
    return zoo if is_zoo else None


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with the position of the column of each role, and the units that headings state or not."""

    heading: list[str]
    units: list[str]
    body: list[tuple[int, list[str]]]
    places: dict[str, int]

    def columns(self, problems: ProblemList) -> dict[str, Column]:
        """Give the columns of the roles; rows that are too short are raised."""
        width = 1 + max(self.places.values())
        for line, row in self.body:
            if len(row) < width:
                problems.add(line, f"{len(row)} fields; expected at least {width}")
            elif any(row[len(self.heading) :]):
                problems.add(line, f"{len(row)} fields; expected {len(self.heading)}, as the heading has")
        problems.raise_if_any()
        lines = [line for line, _ in self.body]
        return {
            role: Column(self.heading[place], [row[place] for _, row in self.body], lines)
            for role, place in self.places.items()
        }


def _table(source: Source, options: ReadOptions) -> _Table:
    heading, body = _headed(source, options)
    split = [split_heading(name) for name in heading]
    plain = [name for name, _ in split]
    companions = {"clock probes": PROBE_COLUMNS, "marks of waiting": WAITING_COLUMNS}
    for what, needed in companions.items():
        if {split_heading(name)[0] for name in needed} <= set(plain):
            text = f"contains {what}, which are read with the recording that they lie beside: leave it out"
            source.refuse("line 1", text)
    there = ", ".join(f"`{name[:40]}`" for name in heading[:30])
    places: dict[str, int] = {}
    named: dict[str, list[int]] = {}
    for role, name in options.columns.items():
        if role not in ROLES:
            message = (
                f"`--column {role}={name}`: `{role}` is not a column of messages; allowed: {', '.join(ROLES)}"
            )
            raise UsageError(
                message, hint="e.g. --column size=bytes --column time=latency", code="usage.column"
            )
        place = column_place(source, name, heading)
        if place is None:
            source.refuse("line 1", f"no column `{name[:40]}`; columns are: {there}")
        if place in places.values():
            source.refuse(
                "line 1", f"cannot take column `{heading[place][:40]}` for two roles, one is `{role}`"
            )
        places[role] = place
    is_stated = any(role in TIMES for role in places)
    for role, names in ROLES.items():
        if role in places or (is_stated and role in TIMES):
            continue
        named[role] = [at for at, name in enumerate(plain) if name in names and at not in places.values()]
    chosen = _chosen(source, {**places, **{role: at[0] for role, at in named.items() if at}}, there)
    for role in chosen.keys() & named.keys():
        _require_one(source, role, [heading[at] for at in named[role]])
    return _Table(heading, [unit for _, unit in split], body, chosen)


def _require_one(source: Source, role: str, names: Sequence[str]) -> None:
    """Refuse several columns that may each be the one of a role."""
    if len(names) > 1:
        listed = ", ".join(f"`{name[:40]}`" for name in names)
        source.refuse(
            "line 1",
            f"cannot choose the column of `{role}` among {listed}: name it by `--column {role}=NAME`",
        )


def _chosen(source: Source, places: dict[str, int], there: str) -> dict[str, int]:
    """Keep the columns of one way to tell times: of both ends, of one, or how long they lasted."""
    known = next(
        (
            roles
            for roles in (BOTH_ENDS, BOTH_ENDS[:2], ("start", "time"), ("time",), ("start", "end"))
            if set(roles) <= set(places)
        ),
        None,
    )
    if "size" not in places or known is None:
        lacking = (
            "the size" if "size" not in places else "times (`time`, `start` and `end`, or `start0`, `end0`)"
        )
        source.refuse("line 1", f"no column of {lacking}; columns are: {there}")
    return {
        role: place for role, place in places.items() if role in {"size", "op", "seq", "repetitions", *known}
    }


def _headed(source: Source, options: ReadOptions) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Give the heading, which may stand in a comment, or numbers of columns; and the rows below it."""
    text = source.text()
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if not line.lstrip().startswith("#")), "")
    is_comma = options.decimal == ","
    found = table_rows(source, delimiter_of(first.replace(",", "") if is_comma else first), "#")
    if is_comma:
        found = [(line, [_pointed(source, line, field) for field in row]) for line, row in found]
    row = found[0][1]
    if any(number_of(field) is None for field in row[:1]) or not any(
        number_of(field) is not None for field in row
    ):
        return row, found[1:]
    for comment in (line for line in reversed(lines) if line.lstrip().startswith("#")):
        for heading in (re.split(r"\s{2,}|\t|;|,", comment.strip("# \t")), comment.replace("#", " ").split()):
            if len(heading) == len(row) and any(split_heading(name)[0] in ROLES["size"] for name in heading):
                return heading, found
    if len(row) == 2 and not options.columns:  # noqa: PLR2004 - a size and a time
        return ["size", "time"], found
    return [str(place) for place in range(1, len(row) + 1)], found


def _pointed(source: Source, line: int, field: str) -> str:
    """Write a number with a decimal comma as one with a point, which is none of its own."""
    if "." in field and number_of(field) is not None:
        source.refuse(f"line {line}", f"cannot read `{field[:40]}` with `--decimal ,`: it has a point")
    pointed = field.replace(",", ".")
    return pointed if number_of(pointed) is not None else field


def _units(
    source: Source, table: _Table, columns: Mapping[str, Column], options: ReadOptions
) -> tuple[dict[str, str], str]:
    """Give the unit of each column of times, from heading or option, and say where it comes from."""
    found = {}
    guessed = False
    for role in [role for role in columns if role in TIMES]:
        stated = table.units[table.places[role]]
        unit = options.unit or stated
        if unit in DECIMAL_EXPONENTS and stated not in ("", unit):
            source.refuse("line 1", contradicted(columns[role].name, stated, unit))
        is_stamp = role != "time" and not any(_has_decimals(text) for text in columns[role].texts)
        if not unit and is_stamp:
            unit, guessed = "ns", True
        if unit not in DECIMAL_EXPONENTS:
            allowed = ", ".join(f"`{each}`" for each in DECIMAL_EXPONENTS)
            what = f"is `{unit}`" if unit else f"of `{columns[role].name}` is not in the file"
            message = f"the unit of the times {what}; allowed: {allowed}"
            raise UsageError(message, hint="add e.g. `--unit us`", code="usage.unit")
        found[role] = unit
    said = ", ".join(dict.fromkeys(found.values()))
    reason = " (taken, since stamps are whole numbers; `--unit` states another)" if guessed else ""
    return found, f"unit {said}{reason}"


def _has_decimals(text: str) -> bool:
    return not text.removeprefix("-").isdecimal() and number_of(text) is not None


def _beside(path: Path, suffix: str, options: ReadOptions) -> Path | None:
    """Give the file that goes with a recording: the one that was named, or the one beside it."""
    if suffix == PROBES_SUFFIX and path in options.probes:
        return options.probes[path]
    beside = path.with_name(f"{path.stem}{suffix}{path.suffix}")
    return beside if beside.is_file() else None


def _numbers(path: Path, names: Sequence[str], unit: str) -> tuple[Whole, str]:
    """Give columns of times [ns] and numbers of operations, shape (n, columns), and the file's hash."""
    expected = f"a table with the columns {', '.join(f'`{name}`' for name in names)}, as their recording"
    try:
        content = read_plain_file(path)
    except OSError as error:
        raise unreadable(path, error, expected) from error
    source = Source(path, content, expected)
    found = list(rows(source, ",", "#"))
    split = [split_heading(name) for name in found[0][1]] if found else []
    plain = [name for name, _ in split]
    wanted = [split_heading(name)[0] for name in names]
    if absent := [name for name, want in zip(names, wanted, strict=True) if want not in plain]:
        source.refuse("line 1", f"no column {', '.join(f'`{name}`' for name in absent)}")
    problems = ProblemList(path, expected)
    places = [
        only_column(source, name, [at for at, each in enumerate(plain) if each == want])
        for name, want in zip(names, wanted, strict=True)
    ]
    lines = [line for line, _ in found[1:]]
    for line, row in found[1:]:
        if len(row) <= max(places):
            problems.add(line, f"{len(row)} fields; expected at least {max(places) + 1}")
    problems.raise_if_any()
    if not lines:
        source.refuse("line 1", "no row below the heading")
    columns = [
        Column(name, [row[place] for _, row in found[1:]], lines)
        for name, place in zip(names, places, strict=True)
    ]
    numbers = np.stack(
        [
            column.whole(problems)
            if column.name == "seq"
            else column.nanoseconds(split[place][1] or unit, problems)
            for column, place in zip(columns, places, strict=True)
        ],
        axis=1,
    )
    if tuple(names) == PROBE_COLUMNS:
        for at in np.flatnonzero(numbers[:, 2] < numbers[:, 0]).tolist():
            problems.add(lines[at], "recv0 is before send0; expected a probe that comes back later")
    problems.raise_if_any()
    return numbers, hashlib.sha256(content).hexdigest()


IMPORTER: Final = ForeignImporter(
    NAME,
    "recordings of messages: a table of sizes and times, of one end or of both",
    EXPECTED,
    read,
    Alternatives.NONE,
    write=write_recordings,
)
