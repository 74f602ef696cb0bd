"""Stress tests of a system: stress-ng (`--yaml`) and the text of sysbench."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Context, Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.tools.summary import (
    Bin,
    Summary,
    count_at,
    levels,
    note_counts,
    number_at,
    numbered_lines,
    percentile,
    quantity,
    require_line,
)

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

STRESS_EXPECTED: Final = (
    "stress-ng's YAML with metrics (`stress-ng ... --metrics --yaml FILE`): `system-info:`, and `metrics:` "
    "with a list of `- stressor: NAME`"
)
SYSBENCH_EXPECTED: Final = (
    "what `sysbench TEST run` prints, also with `--histogram` and `--report-interval`: `sysbench 1.0.20 "
    "...`, `General statistics:`, `Latency (ms):`"
)
_MEMBER: Final = re.compile(r"(?P<indent> *)(?P<item>- )?(?P<name>[^\s:][^:]*): *(?P<value>.*)")
_SECTION: Final = "metrics"
_METRICS: Final = {
    "bogo-ops": ("operations", "count"),
    "bogo-ops-per-second-real-time": ("operations_per_s", "1/s"),
    "bogo-ops-per-second-usr-sys-time": ("operations_per_cpu_s", "1/s"),
    "wall-clock-time": ("wall", "s"),
    "user-time": ("cpu_user", "s"),
    "system-time": ("cpu_system", "s"),
    "cpu-usage-per-instance": ("cpu_of_an_instance", "percent"),
    "max-rss": ("peak_memory", "KiB"),
}
_FACTS: Final = {
    "stress-ng-version": "version",
    "date-yyyy-mm-dd": "date",
    "release": "release",
    "cpus": "cpus",
}


def read_stress_ng(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file; each stressor is a cell, its numbers are totals of all its instances.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("yaml", facts={"tool": "stress-ng"})
    lines = numbered_lines(source)
    require_line(source, lines, re.compile(r"system-info:$"))
    section, run, depth = "", None, 0
    left: Counter[str] = Counter()
    for number, line in lines:
        if line.startswith(("---", "...", "#")):
            continue
        member = _MEMBER.fullmatch(line)
        if member is None:
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a line of stress-ng's YAML")
        name, value = member["name"], member["value"].strip("'\" ")
        if not member["indent"] and not member["item"]:
            section = name
        elif section == "system-info" and name in _FACTS:
            found.facts[_FACTS[name]] = value.replace(":", "-") if name.startswith("date") else value
        elif section == _SECTION and name == "stressor":
            run, depth = Summary(found, levels(value)), len(member["indent"]) + len(member["item"] or "")
            run.end()  # its sections follow
        elif section == _SECTION and name == "instance":
            left["numbers of single instances, which the totals include"] += 1
        elif section == _SECTION and run is not None and len(member["indent"]) == depth and value:
            metric, unit = _METRICS.get(name, (name, "1/s" if "per-second" in name else "as recorded"))
            run.value(metric, number_at(source, number, value), unit)
    note_counts(found, left)
    if not found.runs:
        source.refuse(f"line {lines[-1][0]}", "no metrics of a stressor; run stress-ng with `--metrics`")
    return found


_VERSION: Final = re.compile(r"sysbench (\d[\w.-]*)", re.ASCII)
_THREADS: Final = re.compile(r"Number of threads: (\d+)", re.ASCII)
_INTERVAL: Final = re.compile(r"\[ *(\d+)s *\](?: \[[^\]]*\])? (.+)", re.ASCII)
_CHECKPOINT: Final = re.compile(r"\[ *\d+s *\] Checkpoint report", re.ASCII)
_PART: Final = re.compile(
    r"([A-Za-z][\w/ ]*?)(?: *\((?:ms,)?(?:r/w/o|ms)?,?([\d.]+)?%?\))?: ([\d.]+(?:/[\d.]+)*)( [KMGT]iB/s)?",
    re.ASCII,
)
_BUCKET: Final = re.compile(r"\s+([\d.]+) \|\**\s+(\d+)", re.ASCII)
_LINE: Final = re.compile(r"\s+([A-Za-z\d][^:]*?):\s+([-\d.]+)(s?)(?:\s+\(([\d.]+) per sec\.\))?", re.ASCII)
_OPERATIONS: Final = re.compile(r"Total operations: (\d+) \(\s*([\d.]+) per second\)", re.ASCII)
_MOVED: Final = re.compile(r"([\d.]+) ([KMG]iB) transferred \(([\d.]+) [KMG]iB/sec\)", re.ASCII)
_TESTS: Final = {
    "Prime numbers limit": "cpu",
    "Running memory speed test": "memory",
    "SQL statistics": "oltp",
    "File operations": "fileio",
    "Doing thread subsystem": "threads",
    "Doing mutex": "mutex",
}
_INTERVAL_METRICS: Final = {
    "eps": "events_per_s",
    "tps": "transactions_per_s",
    "qps": "queries_per_s",
    "err/s": "errors_per_s",
    "reconn/s": "reconnects_per_s",
}
_UNITS_OF_INTERVAL: Final = {"err/s": "errors/s", "reconn/s": "reconnects/s"}
"""Of both, more is worse."""
_QUERIES: Final = ("reads_per_s", "writes_per_s", "other_queries_per_s")
_SHOWN: Final = {
    "events/s (eps)": ("events_per_s_total", "1/s"),
    "time elapsed": ("duration", "s"),
    "events per second": ("events_per_s_total", "1/s"),
    "total time": ("duration", "s"),
    "total number of events": ("events", "count"),
    "transactions": ("transactions", "count"),
    "queries": ("queries", "count"),
    "ignored errors": ("ignored_errors", "count"),
    "reconnects": ("reconnects", "count"),
}
_LATENCY: Final = {"min": "min", "avg": "mean", "max": "max"}
_STEP: Final = Decimal("100000000").ln() / 1023
"""SOURCE: sysbench's `sb_timer.h`, `sb_histogram.c`: 1024 buckets of equal logarithm, 0.001 to 100000 ms."""
_LAST_DIGIT: Final = Decimal("0.0005")
_ROUNDING: Final = Context(prec=7)


def read_sysbench(source: Source, options: ReadOptions) -> ForeignFile:
    """Read what launches printed; each is a run, and its reports are intervals.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    lines = numbered_lines(source)
    version = require_line(source, lines, _VERSION)[1]
    require_line(source, lines, _THREADS)
    found = ForeignFile("text", facts={"tool": "sysbench", "version": version})
    starts = [place for place, (_, line) in enumerate(lines) if _VERSION.match(line)]
    for begin, end in pairwise([*starts, len(lines)]):
        launch = lines[begin:end]
        # `prepare` and `cleanup` measure nothing.
        if any(_THREADS.match(line) for _, line in launch):
            _sysbench_launch(source, launch, found)
    return found


def _sysbench_launch(source: Source, lines: list[tuple[int, str]], found: ForeignFile) -> None:
    threads = require_line(source, lines, _THREADS)[1]
    test = next((name for text, name in _TESTS.items() if any(text in line for _, line in lines)), "")
    run = Summary(found, levels(f"sysbench {test}".strip(), threads=threads))
    bins: list[Bin] = []
    section, intervals, is_whole = "", 0, False
    for number, line in lines:
        if _CHECKPOINT.match(line):
            # Behind it counters begin anew, but not the clock.
            source.refuse(f"line {number}", "a report of `--report-checkpoints`; run sysbench without")
        elif (interval := _INTERVAL.match(line)) is not None:
            intervals += 1
            _interval(source, number, run, interval[2], intervals)
        elif (bucket := _BUCKET.fullmatch(line)) is not None:
            bins.append(_bucket(number_at(source, number, bucket[1]), count_at(source, number, bucket[2])))
        elif (operations := _OPERATIONS.match(line)) is not None:
            run.value("operations", Decimal(operations[1]), "count")
            run.value("operations_per_s", number_at(source, number, operations[2]), "1/s")
        elif (moved := _MOVED.match(line)) is not None:
            _moved(source, number, run, moved)
        elif (shown := _LINE.match(line)) is not None:
            is_whole = is_whole or section == "Latency (ms)"
            _total(source, number, run, section, shown)
        elif line.endswith(":"):
            section = line.strip().removesuffix(":")
    if not is_whole:
        source.refuse(
            f"line {lines[-1][0]}", "the lines below `Latency (ms):` are missing; the run was cut off"
        )
    run.histogram("latency", bins, "ms")
    run.end()


def _moved(source: Source, line: int, run: Summary, moved: re.Match[str]) -> None:
    for metric, text, unit in (
        ("transferred", moved[1], "bytes"),
        ("transferred_per_s", moved[3], "bytes/s"),
    ):
        amount = f"{text}{moved[2]}"
        run.value(metric, quantity(source, line, amount)[0], unit, printed=amount)


def _interval(source: Source, line: int, run: Summary, text: str, iteration: int) -> None:
    for name, quantile, value, size in _PART.findall(text):
        if name == "thds":
            continue
        if name == "r/w/o":
            for metric, part in zip(_QUERIES, value.split("/"), strict=False):
                run.value(metric, number_at(source, line, part), "1/s", iteration)
            continue
        number = number_at(source, line, value)
        if quantile:
            run.value(
                f"latency_{percentile(number_at(source, line, quantile))}_of_interval",
                number,
                "ms",
                iteration,
            )
        else:
            run.value(
                _INTERVAL_METRICS.get(name, name.replace("/s", "_per_s")),
                number,
                size.strip() or _UNITS_OF_INTERVAL.get(name, "1/s"),
                iteration,
            )


def _total(source: Source, line: int, run: Summary, section: str, shown: re.Match[str]) -> None:
    name, number = shown[1], number_at(source, line, shown[2])
    if section == "Latency (ms)":
        if name.endswith("th percentile"):
            quantile = number_at(source, line, name.removesuffix("th percentile"))
            if quantile > 0:
                run.statistic("latency", percentile(quantile), number, "ms")
        elif name in _LATENCY:
            run.statistic("latency", _LATENCY[name], number, "ms")
        elif name == "sum":
            run.value("latency_sum", number, "ms")
    elif name in _SHOWN:
        run.value(_SHOWN[name][0], number, _SHOWN[name][1])
        if shown[4]:
            run.value(f"{_SHOWN[name][0]}_per_s_total", number_at(source, line, shown[4]), "1/s")
    elif section in {"File operations", "Throughput"}:
        metric, _, unit = name.rpartition(", ")
        run.value(
            re.sub(r"\W+", "_", metric or name.replace("/s", "_per_s")), number, {"": "1/s"}.get(metric, unit)
        )


def _bucket(middle: Decimal, count: int) -> Bin:
    """Give the values that a bucket counts, which prints its middle with three decimals."""
    half = (_STEP / 2).exp()
    low, high = max(Decimal(0), middle - _LAST_DIGIT) / half, (middle + _LAST_DIGIT) * half
    return Bin(_ROUNDING.plus(low), _ROUNDING.plus(high), count)


STRESS_NG: Final = ForeignImporter(
    "stress-ng",
    "stress-ng's YAML: a stressor is a cell",
    STRESS_EXPECTED,
    read_stress_ng,
    sign=re.compile(r"stress-ng", re.MULTILINE | re.ASCII),
)
SYSBENCH: Final = ForeignImporter(
    "sysbench",
    "text of sysbench: a launch is a run, a report an iteration",
    SYSBENCH_EXPECTED,
    read_sysbench,
    sign=re.compile(r"^sysbench \d", re.MULTILINE | re.ASCII),
)
