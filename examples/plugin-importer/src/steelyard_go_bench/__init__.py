"""What ``go test -bench`` prints: a process is a run, each line of a benchmark is an iteration.

The format is described by the Go project (golang.org/design/14313-benchmark-format). A line gives means over
as many operations as fit into `-benchtime`, so that only `-count` gives values to compare.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    is_plausible,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `go test -bench . -count 10` prints: lines as in `BenchmarkSort-8  1468  7125 ns/op`, not those of "
    "`-json`"
)
PROCESSORS: Final = "gomaxprocs"
_METRICS: Final = {
    "ns/op": ("time", "ns"),
    "B/op": ("allocated", "bytes"),
    "allocs/op": ("allocations", "count"),
    "MB/s": ("throughput", "MB/s"),
}
_FACT: Final = re.compile(r"([a-z][^\s:]*):\s*(.*)")
_PROCESSORS: Final = re.compile(r"(.+)-(\d+)")
_Levels = tuple[tuple[str, str], ...]


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("text", facts={"tool": "go test -bench"})
    package, process, failed, absent = "", 0, 0, 0
    runs: dict[tuple[int, _Levels], ForeignRun] = {}
    for number, line in enumerate(source.text().splitlines(), start=1):
        words = line.split()
        if line.startswith("Benchmark") and len(words) > 1:
            levels = _levels(package, words[0].removeprefix("Benchmark"))
            run = runs.setdefault((process, tuple(levels.items())), ForeignRun(levels, []))
            values = _values(source, number, words)
            iteration = 1 + (run.sections[-1].iteration if run.sections else 0)
            run.sections.extend(
                _section(unit, value, iteration) for unit, value in values if is_plausible(value)
            )
            absent += sum(not is_plausible(value) for _, value in values)
        elif (fact := _FACT.fullmatch(line)) is not None:
            found.facts[fact[1]] = fact[2]
            if fact[1] == "pkg":  # each process names its package once, before its benchmarks
                package, process = fact[2], process + 1
        elif line.startswith("--- FAIL"):
            failed += 1
        elif line.startswith("{"):
            source.refuse(f"line {number}", "is JSON of `go test -json`")
    found.runs.extend(runs.values())
    for count, text in ((failed, "benchmarks that failed"), (absent, "values that are not finite")):
        if count:
            found.notes.append(f"{text}, left out: {count}")
    return found


def _levels(package: str, name: str) -> dict[str, str]:
    """Split ``Join/size=16/how=plus-2``: parts with a sign are factors, the last number is GOMAXPROCS."""
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
    if any(unit == "ns/op" and value < 0 for unit, value in found if not value.is_nan()):
        source.refuse(f"line {number}", "a time is negative")
    return found


def _section(unit: str, value: Decimal, iteration: int) -> Section:
    metric, shown = _METRICS.get(unit, (unit, unit))
    exact = to_nanoseconds(value, "ns") if shown == "ns" else float(value)
    return Section(metric, shown, exact, iteration, printed=str(value))


IMPORTER: Final = ForeignImporter(
    "go-bench", "what `go test -bench` prints: a process is a run, each line an iteration", EXPECTED, read
)
