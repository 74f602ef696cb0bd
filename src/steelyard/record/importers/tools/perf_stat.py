"""`perf stat` in its forms for programs (`-x SEPARATOR`, `-j`): an interval is an iteration."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import Node, read_json_line
from steelyard.record.importers.tools.summary import Summary, levels, note, note_counts, number_at

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `perf stat -x, -o FILE` or `perf stat -j -o FILE` writes: a line for each event with value, "
    "unit, name, time and share of time that it was counted"
)
_STARTED: Final = "# started on "
_ABSENT: Final = ("<not counted>", "<not supported>")
_STAMP: Final = re.compile(r"\s*\d+\.\d{9}", re.ASCII)
_VALUE: Final = re.compile(r"\s*\d[\d.]*|<not (?:counted|supported)>", re.ASCII)
_COMMA: Final = re.compile(r"(?<=\d),(?=\d)", re.ASCII)
_EVENT: Final = re.compile(r"[A-Za-z_]")
_WHOLE: Final = re.compile(r"\d+", re.ASCII)
_NUMBER: Final = re.compile(r"[\d.]", re.ASCII)
_SEPARATORS: Final = (",", ";", "\t", "|", ":", "^", "@")
_SCOPES: Final = ("cpu", "core", "cluster", "cache", "die", "socket", "node", "thread", "cgroup")
_UNITS: Final = {"msec": "ms", "": "count", "ns": "ns"}
_FEWEST: Final = 5
"""Fields of the shortest line: value, unit, event, time and share of time."""
_MOST_BEHIND: Final = 6
"""Fields behind the noise of the longest: time, share of time, and a derived metric or two."""


@dataclass(frozen=True, slots=True)
class _Count:
    """One event as a line tells it.

    Parameters
    ----------
    event, unit, text : str
        Name, unit as perf writes it, digits or `<not counted>`.
    share : str
        Percent of the time that it was counted.
    interval, scope : str
        Stamp of the interval, and the CPU or group it is about; empty where there is none.
    noise : str
        Standard error over the launches of `-r` in percent; empty for one launch.
    """

    event: str
    unit: str
    text: str
    share: str
    interval: str = ""
    scope: str = ""
    noise: str = ""


@dataclass(slots=True)
class _Launches:
    """Which launch a line belongs to: with `--append`, or where a shell appends, a file has several."""

    number: int = 0
    has_headings: bool = False
    stamps: dict[str, int] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)

    def begin(self) -> None:
        """Begin another launch, which a heading tells."""
        self.has_headings = True
        self._next()

    def place(self, count: _Count) -> tuple[int, int]:
        """Give the launch of a count, and its interval from 1; without headings an event ends its launch."""
        key = count.event, count.scope, count.interval
        if key in self.seen and not self.has_headings:
            self._next()
        self.seen.add(key)
        return self.number, self.stamps.setdefault(count.interval, len(self.stamps) + 1)

    def _next(self) -> None:
        self.number += 1
        self.stamps.clear()
        self.seen.clear()


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("csv", facts={"tool": "perf stat"})
    launches = _Launches()
    runs: dict[tuple[int, str], Summary] = {}
    left: Counter[str] = Counter()
    separator = ""
    for line, text in enumerate(source.text().splitlines(), start=1):
        if not text.strip() or text.startswith("#"):
            if text.startswith(_STARTED):
                found.facts.setdefault("date", text.removeprefix(_STARTED).strip())
                launches.begin()
            continue
        if text.lstrip().startswith("{"):
            found.form = "json"
            count = _of_json(read_json_line(source, line, text), left)
        else:
            separator = separator or _separator(source, line, text)
            # Some languages write decimals behind a comma.
            plain = text if separator == "," else _COMMA.sub(".", text)
            count = _of_fields(source, line, plain.split(separator), left)
        if count is None:
            continue
        launch, iteration = launches.place(count)
        run = runs.setdefault((launch, count.scope), Summary(found, levels("perf stat", scope=count.scope)))
        if count.text in _ABSENT:
            left[f"`{count.event}` is {count.text.strip('<>')}"] += 1
        else:
            _add(source, line, count, run, iteration)
    for run in runs.values():
        run.end()
    note_counts(found, left)
    return found


def _add(source: Source, line: int, count: _Count, run: Summary, iteration: int) -> None:
    """Add an event to the run of its scope."""
    number = number_at(source, line, count.text.strip())
    unit = _UNITS.get(count.unit, count.unit)
    if number_at(source, line, count.share or "100") < 100:  # noqa: PLR2004 - percent
        note(run.found, f"`{count.event}` was counted part of the time; perf scaled its value")
    if count.noise:
        run.statistic(count.event, "mean", number, unit)
        noise = number_at(source, line, count.noise)
        run.statistic(count.event, "relative standard error", noise, "percent")
    else:
        run.value(count.event, number, unit, iteration)


def _of_json(node: Node, left: Counter[str]) -> _Count | None:
    if (event := node.optional("event")) is None:
        node.member("metric-value")
        left["lines that have a derived metric alone"] += 1
        return None
    scope = next((f"{name} {part.shown()}" for name in _SCOPES if (part := node.optional(name))), "")
    optional = {name: node.optional(key) for name, key in (("interval", "interval"), ("noise", "variance"))}
    return _Count(
        event.text(),
        str(node.member("unit").shown()).strip(),
        node.member("counter-value").shown(),
        node.member("pcnt-running").shown(),
        scope=scope,
        **{name: part.shown() for name, part in optional.items() if part is not None},
    )


def _separator(source: Source, line: int, text: str) -> str:
    for sign in _SEPARATORS:
        fields = (text if sign == "," else _COMMA.sub(".", text)).split(sign)
        if len(fields) >= _FEWEST and any(map(_VALUE.fullmatch, fields[:4])):
            return sign
    return source.refuse(
        f"line {line}", f"`{text[:40]}` is not an event with its value, unit, time and share"
    )


def _of_fields(source: Source, line: int, fields: list[str], left: Counter[str]) -> _Count | None:
    """Find out which fields are there: interval, scope, number of CPUs come first, noise behind the event."""
    rest = list(fields)
    interval = rest.pop(0).strip() if _STAMP.fullmatch(rest[0]) and len(rest) > _FEWEST else ""
    scope = ""
    if rest[0] and not _VALUE.fullmatch(rest[0]):
        scope = rest.pop(0).strip()
        if len(rest) > _FEWEST and _VALUE.fullmatch(rest[1]):
            rest.pop(0)  # how many CPUs are in a socket
    if len(rest) >= _FEWEST and not any(each.strip() for each in rest[:3]):
        left["lines that have a derived metric alone"] += 1
        return None
    if len(rest) < _FEWEST or not _VALUE.fullmatch(rest[0]) or not _EVENT.match(rest[2].strip()):
        source.refuse(
            f"line {line}", f"{len(fields)} fields do not begin with value, unit and name of an event"
        )
    text, unit, event, *behind = (each.strip() for each in rest)
    if len(behind) > 2 and _WHOLE.fullmatch(behind[1]) and not _NUMBER.match(behind[0]):  # noqa: PLR2004
        scope = behind.pop(0)  # of `--for-each-cgroup`
    noise = behind.pop(0).removesuffix("%") if behind[0].endswith("%") else ""
    is_timed = len(behind) >= 2 and _WHOLE.fullmatch(behind[0]) and _VALUE.fullmatch(behind[1])  # noqa: PLR2004
    if not is_timed or len(behind) > _MOST_BEHIND:
        source.refuse(f"line {line}", f"`{event[:40]}` has no time and share of time")
    return _Count(event, unit, text, behind[1], interval, scope, noise)


IMPORTER: Final = ForeignImporter(
    "perf-stat",
    "`perf stat -x` or `-j`: the invocation is the run, an interval an iteration",
    EXPECTED,
    read,
    sign=re.compile(r"^# started on |Performance counter stats for|,task-clock,", re.MULTILINE | re.ASCII),
)
