"""Rust's libtest (``cargo bench``), as text or JSON: a process is a run with one median of each benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    FAILED,
    MEDIANS,
    SKIPPED,
    published,
    remark,
    section,
)
from steelyard.record.importers.json_node import Node, read_json_line

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Section, Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `cargo bench` prints of `#[bench]` functions: lines as in "
    "`test sort ... bench:   1,042.15 ns/iter (+/- 12.50)`, or JSON of "
    "`cargo bench -- -Z unstable-options --format json`"
)
MEDIAN: Final = "median_time"
_NUMBER: Final = r"\d[\d,]*(?:\.\d+)?"
_SIGN: Final = " ... "
"""Between the name of a test and what came of it."""
_RESULT: Final = re.compile(rf"bench:\s+({_NUMBER}) ns/iter \(\+/- ({_NUMBER})\)(?: = ({_NUMBER}) MB/s)?\s*")
_MARKS: Final = re.compile(r"[.iF]+(?=test \S)")
_BEGIN: Final = re.compile(r"running \d+ tests?")
_BINARY: Final = re.compile(r"\s*Running .*\((?:\S*[/\\])?([^/\\]+?)-[0-9a-f]{16}(?:\.exe)?\)")
"""Cargo names the program on standard error; the file has it where both streams were kept."""
_LONGEST_PATH: Final = 4096


@dataclass(slots=True)
class _Reader:
    """What has been read so far."""

    source: Source
    found: ForeignFile
    process: int = 0
    binary: str = ""
    failed: int = 0
    skipped: int = 0
    seen: dict[tuple[int, str], list[Section]] = field(default_factory=dict)

    def line(self, number: int, line: str) -> None:
        """Read a line of text; with `--quiet` there are marks of tests that were not run before some."""
        marks = _MARKS.match(line)
        if marks is not None:
            self.skipped += marks[0].count("i")
            line = line[marks.end() :]
        self.failed += line.rstrip().endswith(" --- FAILED")
        test, sign, said = line.rpartition(_SIGN)
        name = test.removeprefix("test ").strip()
        if sign and line.startswith("test ") and name:
            if (result := _RESULT.fullmatch(said)) is not None:
                median, deviation, rate = result.groups()
                rated = _number(rate) if rate else None
                self.result(name, _number(median), _number(deviation), rated, "MB/s")
            elif said.startswith("bench:"):
                self.source.refuse(f"line {number}", f"`{line.strip()}` is not a result of a benchmark")
            else:
                self.outcome(said.partition(",")[0].strip())
        elif _BEGIN.fullmatch(line.strip()):
            self.process += 1
        elif len(line) < _LONGEST_PATH and (binary := _BINARY.fullmatch(line)) is not None:
            self.binary = binary[1]

    def event(self, event: Node) -> None:
        """Read a line of JSON."""
        kind = event.member("type").text()
        if kind == "bench":
            rate = event.optional("mib_per_second")
            median, deviation = (event.member(name).duration() for name in ("median", "deviation"))
            name = event.member("name").text()
            self.result(name, median, deviation, None if rate is None else rate.duration(), "MiB/s")
            return
        what = event.member("event").text()
        if kind == "suite":
            self.process += what == "started"
        elif kind == "test":
            self.outcome({"failed": "FAILED"}.get(what, what))

    def outcome(self, outcome: str) -> None:
        """Count what has no value."""
        self.failed += outcome == "FAILED"
        self.skipped += outcome == "ignored"

    def result(self, name: str, median: Decimal, deviation: Decimal, rate: Decimal | None, unit: str) -> None:
        """Take the result of a benchmark."""
        levels = {WORKLOAD: name} | ({"binary": self.binary} if self.binary else {})
        key = self.process, "\0".join(levels.values())
        if key not in self.seen:
            self.seen[key] = []
            self.found.runs.append(ForeignRun(levels, self.seen[key]))
        sections = self.seen[key]
        iteration = 1 + (sections[-1].iteration if sections else 0)
        sections.append(section(MEDIAN, "ns", median, iteration))
        if rate is not None:
            sections.append(section("throughput", unit, rate, iteration))
        self.found.published.append(published(levels, "time", "maximum - minimum", "ns", deviation))


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    text = source.text()
    is_json = text.lstrip()[:1] == "{"
    found = ForeignFile("json" if is_json else "text", facts={"tool": "libtest"})
    reader = _Reader(source, found)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("{"):
            reader.event(read_json_line(source, number, line))
        else:
            reader.line(number, line)
    remark(found, MEDIANS, len(found.published))
    remark(found, FAILED, reader.failed)
    remark(found, SKIPPED, reader.skipped)
    return found


def _number(printed: str) -> Decimal:
    return Decimal(printed.replace(",", ""))


IMPORTER: Final = ForeignImporter(
    "libtest",
    "what `cargo bench` prints: a process is a run, with a median of each benchmark",
    EXPECTED,
    read,
    sign=re.compile(r"^running \d+ tests?$|bench: +[\d,.]+ ns/iter", re.MULTILINE | re.ASCII),
)
