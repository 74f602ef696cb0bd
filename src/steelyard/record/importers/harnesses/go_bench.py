"""Go's benchmark format: a process of ``go test -bench`` is a run, each line of a benchmark an iteration.

The format is described by the Go project (golang.org/design/14313-benchmark-format). A line gives means over
as many operations as fit into `-benchtime`, so that only `-count` gives values to compare.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from steelyard.errors import DataError
from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    in_line,
    is_plausible,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    ABSENT,
    FAILED,
    remark,
    section,
    with_parameters,
)
from steelyard.record.importers.json_node import read_json_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `go test -bench . -count 10` prints, also with `-json`: lines as in "
    "`BenchmarkSort-8  1468  7125 ns/op`"
)
PROCESSORS: Final = "gomaxprocs"
_METRICS: Final = {
    "ns/op": ("time", "ns"),
    "sec/op": ("time", "s"),
    "B/op": ("allocated", "bytes"),
    "allocs/op": ("allocations", "count"),
}
_INTERRUPTED: Final = "results broken in two by what the program printed, left out"
_UNBUILT: Final = " [build failed]"
_SETTING: Final = re.compile(r"([a-z][^\s:]*):\s*(.*)")
_OF_PROCESS: Final = frozenset({"goos", "goarch", "pkg", "cpu"})
"""Settings that each process prints before its benchmarks."""
_BENCHMARK: Final = re.compile(r"Benchmark[^a-z\s]\S*\s+\S")
_PROCESSORS: Final = re.compile(r"(.+)-(\d+)")


class _Row(NamedTuple):
    """A line of a benchmark: its process, the settings in force, its name, and values with their units."""

    process: int
    settings: dict[str, str]
    name: str
    values: list[tuple[str, Decimal]]


@dataclass(slots=True)
class _Reader:
    """What has been read so far."""

    source: Source
    rows: list[_Row] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    process: int = 0
    is_printing: bool = False
    failed: int = 0
    unbuilt: list[str] = field(default_factory=list)
    failed_packages: int = 0
    interrupted: int = 0

    def read(self, number: int, line: str) -> None:
        """Read a line."""
        if _BENCHMARK.match(line):
            self.is_printing = True
            words = line.split()
            if not words[1].isdecimal() and "/op" not in line:
                self.interrupted += 1
                return
            values = _values(self.source, number, words)
            self.rows.append(_Row(self.process, dict(self.settings), words[0], values))
        elif (setting := _SETTING.fullmatch(line.rstrip())) is not None:
            if setting[1] in _OF_PROCESS:
                self.end_process()
            self.settings[setting[1]] = setting[2]
        elif line.startswith(("PASS", "FAIL", "ok ")):
            self.failed_packages += line.startswith("FAIL\t")
            if line.endswith(_UNBUILT):
                self.unbuilt.append(line.split()[1])
            self.end_process()
        elif line.startswith("--- FAIL"):
            self.failed += 1

    def end_process(self) -> None:
        """Count the benchmarks that follow as those of another process."""
        if self.is_printing:
            self.is_printing = False
            self.process += 1
            self.settings.pop("pkg", None)


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
    reader = _Reader(source)
    printed = [*(_printed(source, text) if is_json else enumerate(text.splitlines(), start=1))]
    for number, line in printed:
        reader.read(number, line)
    if reader.unbuilt and not reader.rows:
        _refuse_unbuilt(source, reader.unbuilt[0], [line for _, line in printed])
    found = ForeignFile("json" if is_json else "text", facts={"tool": "go test -bench"})
    found.facts |= {name: value for row in reader.rows for name, value in row.settings.items()}
    found.runs = _runs(reader.rows)
    remark(found, FAILED, reader.failed)
    remark(found, "packages that failed, whose benchmarks may be incomplete", reader.failed_packages)
    remark(found, _INTERRUPTED, reader.interrupted)
    remark(found, ABSENT, sum(not is_plausible(value) for row in reader.rows for _, value in row.values))
    return found


def _refuse_unbuilt(source: Source, package: str, lines: list[str]) -> NoReturn:
    """Say why nothing was measured, as the compiler does behind a line with the package's name."""
    begin = next((place for place, line in enumerate(lines) if line.startswith(f"# {package}")), len(lines))
    said = next((line.strip() for line in lines[begin + 1 :] if line.strip()), "")
    reason = f": {said}" if said and not said.startswith(("#", "FAIL")) else ""
    message = in_line(f"`{source.path}`: the build of `{package}` failed, so that no benchmark ran{reason}")
    raise DataError(message, hint="repair the program, and run its benchmarks again", code="data.import")


def _printed(source: Source, text: str) -> Iterator[tuple[int, str]]:
    """Give the lines that `go test -json` packs into events, package by package, with a line of the file."""
    parts: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        event = read_json_line(source, number, line)
        if event.member("Action").text() in ("output", "build-output"):
            package = event.optional("Package")
            output = event.member("Output")
            if not isinstance(output.value, str):
                output.refuse("a text")
            parts["" if package is None else package.text()].append((number, output.value))
    for outputs in parts.values():
        begun, first = "", 0
        for number, printed in outputs:
            first = first if begun else number
            *whole, begun = (begun + printed).split("\n")
            yield from ((first, line) for line in whole)
        yield first, begun


def _runs(rows: list[_Row]) -> list[ForeignRun]:
    """Give the runs; a setting that differs between the benchmarks of the file is a factor."""
    names = dict.fromkeys(name for row in rows for name in row.settings if name not in _OF_PROCESS)
    varied = [name for name in names if len({row.settings.get(name) for row in rows}) > 1]
    found: dict[tuple[int, tuple[tuple[str, str], ...]], ForeignRun] = {}
    sections: defaultdict[int, list[Section]] = defaultdict(list)
    for row in rows:
        settings = [(name, row.settings[name]) for name in varied if name in row.settings]
        levels = with_parameters(_levels(row.settings.get("pkg", ""), row.name), settings)
        run = found.setdefault((row.process, tuple(levels.items())), ForeignRun(levels, []))
        values = sections[id(run)]
        iteration = 1 + (values[-1].iteration if values else 0)
        values += [
            section(*_METRICS.get(unit, (unit, unit)), value, iteration)
            for unit, value in row.values
            if is_plausible(value)
        ]
    return [ForeignRun(run.levels, sections[id(run)]) for run in found.values()]


def _levels(package: str, name: str) -> dict[str, str]:
    """Split ``Join/size=16/how=plus-2``: parts with a sign are factors, the last number is GOMAXPROCS."""
    name = name.removeprefix("Benchmark")
    ending = _PROCESSORS.fullmatch(name)
    name, processors = (ending[1], ending[2]) if ending else (name, "1")
    plain, factors = [], {PROCESSORS: processors}
    for part in name.split("/"):
        key, sign, level = part.partition("=")
        if sign and key and key not in {WORKLOAD, *factors}:
            factors[key] = level
        else:
            plain.append(part)
    joined = "/".join(plain)
    return {WORKLOAD: f"{package}.{joined}" if package else joined, **factors}


def _values(source: Source, number: int, words: list[str]) -> list[tuple[str, Decimal]]:
    """Give unit and value of each pair behind the number of operations."""
    pairs = list(zip(words[3::2], words[2::2], strict=False))
    if not words[1].isdecimal() or not pairs or len(words) % 2:
        source.refuse(f"line {number}", f"`{' '.join(words)}` is not a result of a benchmark")
    try:
        found = [(unit, Decimal(value)) for unit, value in pairs]
    except InvalidOperation:
        source.refuse(f"line {number}", f"`{' '.join(words[2::2])}` should be numbers")
    if any(unit in ("ns/op", "sec/op") and value < 0 for unit, value in found if not value.is_nan()):
        source.refuse(f"line {number}", "a time is negative")
    return found


IMPORTER: Final = ForeignImporter(
    "go-bench",
    "what `go test -bench` prints: a process is a run, each line an iteration",
    EXPECTED,
    read,
    sign=re.compile(
        r'^goos: |^\{"(?:Time|ImportPath)":"[^"]*","Action":"|^FAIL\t.* \[build failed\]$',
        re.MULTILINE | re.ASCII,
    ),
)
