"""BenchmarkDotNet's full JSON: each launch of a process is a run, with its warm-ups and iterations."""

from __future__ import annotations

import re
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import MEASURE, WARM_UP, WORKLOAD, ForeignFile, ForeignRun, Section
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    FAILED,
    PUBLISHED,
    facts_of,
    is_number,
    remark,
    section,
    statistics_of,
    with_parameters,
)
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "BenchmarkDotNet's full JSON (`[JsonExporterAttribute.Full]` or `--exporters fulljson`): an object with "
    "`HostEnvironmentInfo` and `Benchmarks`, each with `FullName`, `Parameters` and `Measurements`"
)
RESULT: Final = "time_less_overhead"
_METRICS: Final = {
    ("Workload", "Jitting"): ("time", WARM_UP),
    ("Workload", "Pilot"): ("time", WARM_UP),
    ("Workload", "Warmup"): ("time", WARM_UP),
    ("Workload", "Actual"): ("time", MEASURE),
    ("Workload", "Result"): (RESULT, MEASURE),
    ("Overhead", "Jitting"): ("overhead", WARM_UP),
    ("Overhead", "Warmup"): ("overhead", WARM_UP),
    ("Overhead", "Actual"): ("overhead", MEASURE),
}
"""Metric and phase of the measurements of each mode and stage."""
_ORDER: Final = ("time", RESULT, "overhead")
"""What a benchmark is about stands first; the file begins with the overhead."""
_STATISTICS: Final = {
    "Mean": "mean",
    "Median": "median",
    "StandardDeviation": "stddev",
    "StandardError": "standard error",
    "Min": "min",
    "Max": "max",
    "Q1": "p25",
    "Q3": "p75",
}
_FACTS: Final = {
    "BenchmarkDotNetVersion": "tool_version",
    "RuntimeVersion": "runtime",
    "DotNetCliVersion": "dotnet_sdk",
    "OsVersion": "system",
    "ProcessorName": "cpu",
    "Architecture": "architecture",
    "Configuration": "configuration",
}


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    facts = facts_of(document.member("HostEnvironmentInfo"), _FACTS)
    found = ForeignFile("json", facts={"tool": "BenchmarkDotNet", **facts})
    failed, others = 0, 0
    for benchmark in document.member("Benchmarks").elements():
        levels = _levels(benchmark)
        if "Measurements" not in benchmark.value:
            source.refuse(f"at `{benchmark.path}`", "has statistics only; export with `JsonExporter.Full`")
        launches, left_out = _launches(benchmark)
        others += left_out
        failed += not launches
        for sections in launches.values():
            sections.sort(key=lambda each: _ORDER.index(each.metric))
        next(iter(launches.values()), []).extend(_diagnosed(benchmark))
        found.runs += [ForeignRun(dict(levels), values) for values in launches.values()]
        if (statistics := benchmark.optional("Statistics")) is not None:
            found.published += statistics_of(statistics, levels, RESULT, "ns", _STATISTICS)
    remark(found, FAILED, failed)
    remark(found, "measurements of a stage that is neither warm-up nor workload, left out", others)
    remark(found, PUBLISHED, len(found.published))
    if any(each.metric == RESULT for run in found.runs for each in run.sections):
        found.notes.append(f"`{RESULT}` is what the tool left of `time`: less its overhead, without outliers")
    return found


def _levels(benchmark: Node) -> dict[str, str]:
    space = benchmark.optional("Namespace")
    parts = [] if space is None or not space.shown() else [space.text()]
    name = ".".join((*parts, benchmark.member("Type").text(), benchmark.member("Method").text()))
    parameters = benchmark.member("Parameters").shown()
    pairs = [pair.partition("=") for pair in parameters.split("&") if pair]
    levels = with_parameters({WORKLOAD: name}, [(key, level) for key, _, level in pairs])
    _, sign, job = (
        benchmark.member("DisplayInfo").text().partition(f"{benchmark.member('MethodTitle').text()}: ")
    )
    job = job.partition(" [")[0] if parameters else job
    return with_parameters(levels, [("job", job.strip())] if sign and job.strip() else [])


def _launches(benchmark: Node) -> tuple[dict[int, list[Section]], int]:
    """Give the values of each launch, and how many are of no known stage."""
    launches: defaultdict[int, list[Section]] = defaultdict(list)
    counts: defaultdict[tuple[int, str], int] = defaultdict(int)
    left_out = 0
    for each in benchmark.member("Measurements").elements():
        stage = each.member("IterationMode").text(), each.member("IterationStage").text()
        launch = each.member("LaunchIndex").count()
        operations = each.member("Operations").count(2**63)
        nanoseconds = each.member("Nanoseconds").duration()
        if operations == 0:
            each.member("Operations").refuse("a number of operations from 1")
        if stage not in _METRICS:
            left_out += 1
            continue
        metric, phase = _METRICS[stage]
        counts[launch, metric] += 1
        quotient = float(Fraction(nanoseconds) / operations)
        printed = f"{nanoseconds}/{operations}"
        launches[launch].append(Section(metric, "ns", quotient, counts[launch, metric], phase, printed))
    return launches, left_out


def _diagnosed(benchmark: Node) -> list[Section]:
    """Give what diagnosers counted for each operation, in a launch of their own."""
    found = []
    metrics = benchmark.optional("Metrics")
    for metric in [] if metrics is None else metrics.elements():
        descriptor = metric.member("Descriptor")
        value, unit = metric.member("Value"), descriptor.optional("Unit")
        if is_number(value):
            shown = "" if unit is None else unit.shown()
            unit_of = {"": "count", "Count": "count", "B": "bytes"}.get(shown, shown)
            found.append(section(descriptor.member("Id").text(), unit_of, value.number()))
    return found


IMPORTER: Final = ForeignImporter(
    "benchmark-dotnet",
    "BenchmarkDotNet's full JSON: each launch is a run",
    EXPECTED,
    read,
    sign=re.compile(r"^BenchmarkDotNet v|^// \* Summary \*", re.MULTILINE | re.ASCII),
)
