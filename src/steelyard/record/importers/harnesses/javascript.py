"""JavaScript's harnesses tinybench, vitest and Benchmark.js: the process is the run, a call or cycle a value.

tinybench, and vitest, which runs on it, sort the samples before they write them. Their order in time is lost,
and all of a task are in one iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    FAILED,
    MEANS,
    PUBLISHED,
    SKIPPED,
    facts_of,
    remark,
    section,
    statistics_of,
)
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Section, Source
    from steelyard.record.importers.reading import ReadOptions

TINYBENCH: Final = (
    "tinybench's results as JSON (`JSON.stringify(bench.tasks.map(({ name, result }) => ({ name, result })))`"
    "; samples by `retainSamples: true`): tasks with `name` and `result.latency`"
)
VITEST: Final = (
    "vitest's JSON (`vitest bench --reporter=json --outputFile=FILE`, before version 5 `--outputJson FILE`; "
    "samples by `benchmark.retainSamples` or `includeSamples`): `testResults` with `benchmarks`, or `files` "
    "with `groups`"
)
BENCHMARK_JS: Final = (
    "a suite of Benchmark.js as JSON (`JSON.stringify(suite)`): benchmarks with `name`, `hz` and "
    "`stats.sample`"
)
MEAN: Final = "mean_time"
_SORTED: Final = "samples are sorted in the file: their order in time is lost"
_STATISTICS: Final = {
    "mean": "mean",
    "median": "median",
    "p50": "median",
    "sd": "stddev",
    "min": "min",
    "max": "max",
    "p75": "p75",
    "p99": "p99",
    "p995": "p99.5",
    "p999": "p99.9",
    "sem": "standard error",
    "moe": "margin of error",
}
_RUNTIME: Final = {
    "runtime": "runtime",
    "runtimeVersion": "runtime_version",
    "timestampProviderName": "timer",
}


@dataclass(slots=True)
class _Tasks:
    """The tasks of a file, in order; two of one name are two iterations."""

    found: ForeignFile
    sections: dict[str, list[Section]] = field(default_factory=dict)
    failed: int = 0
    skipped: int = 0
    means: int = 0
    has_samples: bool = False

    def of(self, name: str) -> tuple[dict[str, str], list[Section]]:
        """Give the levels of a benchmark and its values so far."""
        levels = {WORKLOAD: name}
        if name not in self.sections:
            self.sections[name] = []
            self.found.runs.append(ForeignRun(levels, self.sections[name]))
        return levels, self.sections[name]

    def add(self, name: str, result: Node) -> None:
        """Take the result of a task: statistics of `latency` in ms, or, before tinybench 3, of its own."""
        latency = result.optional("latency")
        times = result if latency is None else latency
        if times.optional("mean") is None:
            self.failed += 1
            return
        levels, values = self.of(name)
        iteration = 1 + (values[-1].iteration if values else 0)
        kept = times.optional("samples")
        samples = [] if kept is None else kept.elements()
        self.has_samples |= bool(samples)
        values += [section("time", "ms", each.duration(), iteration) for each in samples]
        if not samples:
            self.means += 1
            values.append(section(MEAN, "ms", times.member("mean").duration(), iteration))
        self.found.published += statistics_of(times, levels, "time", "ms", _STATISTICS)
        rates = result.optional("throughput")
        if rates is not None:
            self.found.published += statistics_of(rates, levels, "throughput", "ops/s", _STATISTICS)
        else:
            self.found.published += statistics_of(times, levels, "throughput", "ops/s", {"hz": "mean"})
        self.found.facts |= facts_of(result, _RUNTIME)

    def end(self) -> ForeignFile:
        """Give the file with its remarks."""
        found = self.found
        if self.has_samples:
            found.notes.append(_SORTED)
        for text, count in (
            (MEANS, self.means),
            (FAILED, self.failed),
            (SKIPPED, self.skipped),
            (PUBLISHED, len(found.published)),
        ):
            remark(found, text, count)
        return found


def read_tinybench(source: Source, options: ReadOptions) -> ForeignFile:
    """Read the tasks of a bench: a list, an object with `tasks`, or one task.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    if isinstance(document.value, dict) and isinstance(document.value.get("tasks"), list):
        document = document.member("tasks")
    tasks = _Tasks(ForeignFile("json", facts={"tool": "tinybench"}))
    for task in document.elements() if isinstance(document.value, list) else [document]:
        nested = task.optional("result")
        result = task if nested is None else nested
        is_stored = isinstance(task.value, dict) and {"latency", "period"} <= task.value.keys()
        if document is task and is_stored and "name" not in task.value:  # from `writeResult` of vitest
            name = source.path.stem
        else:
            name = task.member("name").text()
        if all(result.optional(each) is None for each in ("latency", "state", "error")):
            result.member("hz")  # tinybench 2 has it beside the samples
            result.member("samples")
        tasks.add(name, result)
    return tasks.end()


def read_vitest(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a report of vitest.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    tasks = _Tasks(ForeignFile("json", facts={"tool": "vitest"}))
    if document.optional("files") is None:
        for file in document.member("testResults").elements():
            name = PurePath(file.member("name").text().replace("\\", "/")).name
            for test in file.member("assertionResults").elements():
                _test(test, name, tasks)
        return tasks.end()
    for file in document.member("files").elements():
        for group in file.member("groups").elements():
            name = group.member("fullName").text()
            for task in group.member("benchmarks").elements():
                task.member("samples")
                tasks.add(f"{name} > {task.member('name').text()}", task)
    return tasks.end()


def _test(test: Node, file: str, tasks: _Tasks) -> None:
    tasks.failed += test.member("status").text() == "failed"
    for benchmark in test.member("benchmarks").elements():
        for task in benchmark.member("tasks").elements():
            stored = task.optional("fromStore")
            if stored is not None and stored.value is True:
                tasks.skipped += 1  # a result of an earlier process, shown beside those of this one
                continue
            name = " > ".join((file, benchmark.member("name").text(), task.member("name").text()))
            tasks.add(name, task)


def read_benchmark_js(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a suite, a list of benchmarks, or one benchmark.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    tasks = _Tasks(ForeignFile("json", facts={"tool": "Benchmark.js"}))
    if isinstance(document.value, list):
        benchmarks = document.elements()
    elif document.optional("stats") is not None:
        benchmarks = [document]
    else:
        benchmarks = [document.member(str(place)) for place in range(document.member("length").count(10**6))]
    for benchmark in benchmarks:
        statistics = benchmark.member("stats")
        samples = statistics.member("sample").elements()
        name = benchmark.member("name").text()
        if benchmark.optional("error") is not None or not samples:
            tasks.failed += 1
            continue
        levels, values = tasks.of(name)
        first = 1 + (values[-1].iteration if values else 0)
        values += [
            section("time", "s", each.duration(), iteration)
            for iteration, each in enumerate(samples, start=first)
        ]
        names = {"mean": "mean", "deviation": "stddev", "sem": "standard error", "moe": "margin of error"}
        tasks.found.published += statistics_of(statistics, levels, "time", "s", names)
        tasks.found.published += statistics_of(benchmark, levels, "throughput", "ops/s", {"hz": "mean"})
    return tasks.end()


TINYBENCH_IMPORTER: Final = ForeignImporter(
    "tinybench",
    "tinybench's results: the process is the run, samples have no order",
    TINYBENCH,
    read_tinybench,
)
VITEST_IMPORTER: Final = ForeignImporter(
    "vitest", "vitest's benchmarks: the process is the run, samples have no order", VITEST, read_vitest
)
BENCHMARK_JS_IMPORTER: Final = ForeignImporter(
    "benchmark-js",
    "Benchmark.js's suites: the process is the run, each cycle an iteration",
    BENCHMARK_JS,
    read_benchmark_js,
)
