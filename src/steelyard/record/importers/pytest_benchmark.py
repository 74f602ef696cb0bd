"""pytest-benchmark's JSON: the process is the run, rounds are iterations."""

from __future__ import annotations

import re
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
    "pytest-benchmark's JSON with raw data (`--benchmark-json=FILE`, or `--benchmark-autosave "
    "--benchmark-save-data`): an object with `benchmarks`, each with `fullname` and `stats.data`"
)
_PUBLISHED: Final = ("mean", "stddev", "median", "iqr", "min", "max")
_MACHINE: Final = ("node", "machine", "release", "python_version")


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    found = ForeignFile("json", facts=_facts(document))
    for benchmark in document.member("benchmarks").elements():
        levels = _levels(benchmark)
        stats = benchmark.member("stats")
        sections = []
        for iteration, value in enumerate(stats.member("data").elements(), start=1):
            seconds = value.duration()
            sections.append(
                Section("time", "ns", to_nanoseconds(seconds, "s"), iteration, printed=str(seconds))
            )
        found.runs.append(ForeignRun(levels, sections))
        for statistic in _PUBLISHED:
            if (node := stats.optional(statistic)) is not None:
                number = node.number()
                value_ns = to_nanoseconds(number, "s")
                found.published.append(Published(levels, "time", statistic, "ns", value_ns, f"{number} s"))
    return found


def _levels(benchmark: Node) -> dict[str, str]:
    """Give the name without its parameters, and the parameters as factors."""
    name = benchmark.member("fullname").text()
    levels = {WORKLOAD: name}
    parameters, label = benchmark.optional("params"), benchmark.optional("param")
    if parameters is not None:
        levels = with_parameters(levels, ((key, value.shown()) for key, value in parameters.members()))
    if label is not None and parameters is not None and len(levels) > 1:
        levels[WORKLOAD] = name.removesuffix(f"[{label.shown()}]") or name
    return levels


def _facts(document: Node) -> dict[str, str]:
    facts = {"tool": "pytest-benchmark"}
    if (version := document.optional("version")) is not None:
        facts["version"] = version.shown()
    if (date := document.optional("datetime")) is not None:
        facts["date"] = date.shown()
    if (machine := document.optional("machine_info")) is not None:
        for name in _MACHINE:
            if (fact := machine.optional(name)) is not None:
                facts[name] = fact.shown()
    if (commit := document.optional("commit_info")) is not None and (
        node := commit.optional("id")
    ) is not None:
        facts["commit"] = node.shown()
    return facts


IMPORTER: Final = ForeignImporter(
    "pytest-benchmark",
    "pytest-benchmark's JSON: the process is the run",
    EXPECTED,
    read,
    sign=re.compile(r"^Name \(time in ", re.MULTILINE),
)
