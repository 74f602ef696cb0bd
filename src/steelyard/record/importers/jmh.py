"""JMH's JSON (`-rf json`): forks are runs, measured iterations are iterations."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Published,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import with_parameters
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "JMH's JSON (`java -jar benchmarks.jar -rf json`): a list of objects with `benchmark`, `mode` and "
    "`primaryMetric` with `scoreUnit` and `rawData` (or `rawDataHistogram`), forks times iterations"
)
PRIMARY: Final = {"thrpt": "throughput"}
_MOST_VALUES: Final = 20_000_000
_FACTS: Final = ("jmhVersion", "jdkVersion", "vmName", "vmVersion", "jvm", "warmupIterations", "warmupTime")


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    found = ForeignFile("json")
    facts: dict[str, dict[str, None]] = {}
    skipped: Counter[str] = Counter()
    for entry in read_json(source).elements():
        _entry(entry, found, skipped)
        for name in _FACTS:
            if (fact := entry.optional(name)) is not None:
                facts.setdefault(name, {})[fact.shown()] = None
    found.facts = {"tool": "JMH", **{name: ", ".join(values) for name, values in facts.items()}}
    found.notes += [
        f"{count} values of `{name}` are not numbers and were not taken" for name, count in skipped.items()
    ]
    return found


def _entry(entry: Node, found: ForeignFile, skipped: Counter[str]) -> None:
    mode = entry.member("mode").text()
    levels = {WORKLOAD: entry.member("benchmark").text(), "mode": mode}
    threads = entry.optional("threads")
    levels["threads"] = "1" if threads is None else str(threads.count())
    if (parameters := entry.optional("params")) is not None:
        levels = with_parameters(levels, ((name, value.shown()) for name, value in parameters.members()))
    name = PRIMARY.get(mode, "time")
    primary = entry.member("primaryMetric")
    forks = _sections(name, primary, skipped)
    found.published += _scores(levels, name, primary)
    if (others := entry.optional("secondaryMetrics")) is not None:
        for label, metric in others.members():
            for place, sections in enumerate(_sections(label.lstrip("\u00b7") or label, metric, skipped)):
                while place >= len(forks):
                    forks.append([])
                forks[place] += sections
    found.runs += [ForeignRun(dict(levels), sections) for sections in forks if sections]


def _sections(name: str, metric: Node, skipped: Counter[str]) -> list[list[Section]]:
    """Give the values of each fork of a metric."""
    unit = metric.member("scoreUnit").text()
    histogram = metric.optional("rawDataHistogram")
    forks: list[list[Section]] = []
    for fork in (histogram or metric.member("rawData")).elements():
        sections: list[Section] = []
        for iteration, content in enumerate(fork.elements(), start=1):
            for value in _values(content, is_histogram=histogram is not None):
                if value is None:
                    skipped[name] += 1
                    continue
                sections.append(section := _section(name, unit, value, iteration))
                if section.unit == "ns" and value < 0:
                    content.refuse("a time from 0")
        forks.append(sections)
    return forks


def _values(content: Node, *, is_histogram: bool) -> list[Decimal | None]:
    if not is_histogram:
        return [_number(content)]
    values: list[Decimal | None] = []
    for pair in content.elements():
        parts = pair.elements()
        if len(parts) != 2:  # noqa: PLR2004 - a pair
            pair.refuse("a pair of value and count")
        count = parts[1].count(_MOST_VALUES - len(values))
        values += [parts[0].number()] * count
    return values


def _number(node: Node) -> Decimal | None:
    """Give a number; JMH writes those that do not exist as texts such as `NaN`."""
    if node.value in ("NaN", "Infinity", "-Infinity", "+Infinity"):
        return None
    if isinstance(node.value, Decimal) and not node.value.is_finite():
        return None
    return node.number()


def _section(name: str, unit: str, value: Decimal, iteration: int) -> Section:
    time = unit.removesuffix("/op") if unit.endswith("/op") else ""
    if time in ("ns", "us", "ms", "s"):
        return Section(name, "ns", to_nanoseconds(value, time), iteration, printed=str(value))
    return Section(name, unit, float(value), iteration, printed=str(value))


def _scores(levels: dict[str, str], name: str, metric: Node) -> list[Published]:
    unit = metric.member("scoreUnit").text()
    found = []
    for statistic in ("score", "scoreError"):
        node = metric.optional(statistic)
        value = None if node is None else _number(node)
        if value is not None:
            section = _section(name, unit, value, 1)
            found.append(
                Published(dict(levels), name, statistic, section.unit, section.value, f"{value} {unit}")
            )
    return found


IMPORTER: Final = ForeignImporter(
    "jmh",
    "JMH's JSON: forks are runs",
    EXPECTED,
    read,
    sign=re.compile(
        r'^# JMH version|^Benchmark +.*Mode +Cnt +Score|^"Benchmark","Mode"', re.MULTILINE | re.ASCII
    ),
)
