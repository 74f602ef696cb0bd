"""Latencies of a scheduler: schbench, cyclictest (JSON, histogram, last lines), histograms of rtla."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json
from steelyard.record.importers.tools.summary import (
    Bin,
    Summary,
    count_at,
    levels,
    note,
    note_counts,
    number_at,
    numbered_lines,
    percentile,
    require_line,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

SCHBENCH_EXPECTED: Final = (
    "what schbench prints: blocks as `Wakeup Latencies percentiles (usec) runtime 30 (s)`, lines as "
    "`50.0th: 15`"
)
CYCLICTEST_EXPECTED: Final = (
    "cyclictest's JSON (`--json=FILE`), its histogram (`-q -h 400`: `# Histogram` and a line for each "
    "microsecond), or its last lines (`T: 0 ... Min: Act: Avg: Max:`)"
)
RTLA_EXPECTED: Final = (
    "what `rtla timerlat hist` or `rtla osnoise hist` prints: `# RTLA timerlat histogram`, a time unit, a "
    "heading `Index IRQ-000 Thr-000` and a line for each bucket"
)
_BLOCK: Final = re.compile(
    r"(Wakeup Latencies|Request Latencies|RPS) percentiles \((usec|requests)\) runtime (\d+)"
)
_QUANTILE: Final = re.compile(r"\s+\*? *([\d.]+)th: (\d+)", re.ASCII)
_EXTREMES: Final = re.compile(r"\s+min=(\d+), max=(\d+)", re.ASCII)
_RATE: Final = re.compile(r"(current|average|final) rps: ([\d.]+)", re.ASCII)
_OTHER: Final = re.compile(
    r"sched delay|setting worker|warmup|calibrat|message|rps goal|auto-rps|avg worker|transfer"
)
_METRICS: Final = {
    "Wakeup Latencies": ("wakeup_latency", "us"),
    "Request Latencies": ("request_latency", "us"),
    "RPS": ("requests_per_s_sampled", "1/s"),
}


def read_schbench(source: Source, options: ReadOptions) -> ForeignFile:
    """Read what a run printed; its statistics are those of the last report, which includes the earlier ones.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("text", facts={"tool": "schbench"})
    lines = numbered_lines(source)
    require_line(source, lines, _BLOCK)
    run = Summary(found, levels("schbench"))
    blocks: dict[str, dict[str, Decimal]] = {}
    name, intervals, seconds = "", 0, Decimal(0)
    for number, line in lines:
        if (block := _BLOCK.match(line)) is not None:
            name, seconds = block[1], Decimal(block[3])
            blocks[name] = {}
        elif (quantile := _QUANTILE.match(line)) is not None and name:
            blocks[name][percentile(number_at(source, number, quantile[1]))] = Decimal(quantile[2])
        elif (extremes := _EXTREMES.match(line)) is not None and name:
            blocks[name] |= {"min": Decimal(extremes[1]), "max": Decimal(extremes[2])}
        elif (rate := _RATE.match(line)) is not None:
            intervals += rate[1] == "current"
            metric = "requests_per_s" if rate[1] == "average" else f"requests_per_s_{rate[1]}"
            run.value(
                metric,
                number_at(source, number, rate[2]),
                "1/s",
                max(1, intervals) if rate[1] == "current" else 1,
            )
        elif not _OTHER.match(line):
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a line of schbench")
    run.value("duration", seconds, "s")
    for name, statistics in blocks.items():
        for statistic, value in statistics.items():
            run.statistic(_METRICS[name][0], statistic, value, _METRICS[name][1])
    run.end()
    return found


_ROW: Final = re.compile(r"\d+[ \t]+\d[\d \t]*", re.ASCII)
_TOTALS: Final = re.compile(
    r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):([\d \t]*)", re.ASCII
)
_THREAD: Final = re.compile(
    r"T: *(\d+) \( *\d+\) P: *(\d+) I: *(\d+) C: *(\d+) Min: *(\d+) Act: *(-?\d+) Avg: *(\d+) Max: *(\d+)",
    re.ASCII,
)
_ONE_US: Final = Decimal(1)


def read_cyclictest(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file; each thread is a worker of the run.

    Raises
    ------
    DataError
        Naming the line or the JSON path of what is wrong.
    """
    found = ForeignFile("json", facts={"tool": "cyclictest"})
    if source.content.lstrip().startswith(b"{"):
        document = read_json(source)
        found.facts["version"] = document.member("rt_test_version:").shown()
        found.facts["date"] = document.member("start_time").shown()
        unit = "ns" if document.member("resolution_in_ns").count(1) else "us"
        code = document.member("return_code").count(2**31)
        for name, thread in document.member("thread").members():
            _json_thread(found, f"thread {name}", thread, unit, code)
        return found
    found.form = "text"
    lines = numbered_lines(source)
    require_line(source, lines, re.compile(r"# Histogram$|T: *\d+ \("))
    _cyclictest_text(source, lines, found, options.unit or "us")
    if not options.unit:
        note(found, "the text does not state its unit, taken as us; `--unit ns` for what `-N` prints")
    return found


def _json_thread(found: ForeignFile, worker: str, thread: Node, unit: str, code: int) -> None:
    run = Summary(found, levels("cyclictest"), worker)
    run.value("cycles", Decimal(thread.member("cycles").count(2**63)), "count")
    run.statistics("latency", thread, {"min": "min", "avg": "mean", "max": "max"}, unit)
    # Without `-h` the histogram is there, and empty.
    if (histogram := thread.optional("histogram")) is not None and histogram.value:
        bins = []
        for name, node in histogram.members():
            if not (name.isascii() and name.isdecimal()) or len(name) > 9:  # noqa: PLR2004 - below a second
                node.refuse("a count that is named by its latency")
            bins.append((int(name), node.count(2**63)))
        overflow = thread.member("cycles").count(2**63) - sum(count for _, count in bins)
        _add_bins(run, sorted(bins), overflow, thread.member("max").duration(), unit)
    run.end(code)


def _add_bins(
    run: Summary, bins: Sequence[tuple[int, int]], overflow: int, largest: Decimal, unit: str, width: int = 1
) -> None:
    """Add bins of whole units, and what lies beyond the last of them, up to the largest value."""
    held = [Bin(Decimal(low), Decimal(low + width), count) for low, count in bins]
    if overflow > 0:
        low = held[-1].high if held else Decimal(0)
        held.append(Bin(low, max(low, largest), overflow, is_open=True))
    run.histogram("latency", held, unit)


def _cyclictest_text(source: Source, lines: Sequence[tuple[int, str]], found: ForeignFile, unit: str) -> None:
    counts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    totals: dict[str, list[Decimal]] = {}
    last: dict[str, tuple[int, re.Match[str]]] = {}
    for number, line in lines:
        if (total := _TOTALS.match(line)) is not None:
            totals[total[1]] = [Decimal(each) for each in total[2].split()]
        elif (thread := _THREAD.match(line)) is not None:
            last[thread[1]] = number, thread
        elif _ROW.fullmatch(line):
            low, *row = (count_at(source, number, each) for each in line.split())
            for place, count in enumerate(row):
                counts[place].append((low, count))
        elif not line.startswith(("#", "policy:", "WARN", "Thread ", "\x1b", "\t")):
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a line of cyclictest")
    for name, (_, thread) in last.items():
        run = Summary(
            found, levels("cyclictest", priority=thread[2], interval_us=thread[3]), f"thread {name}"
        )
        run.value("cycles", Decimal(thread[4]), "count")
        for statistic, value in (("min", thread[5]), ("mean", thread[7]), ("max", thread[8])):
            run.statistic("latency", statistic, Decimal(value), unit)
        run.end()
    _cyclictest_histogram(source, lines[-1][0], (counts, totals), found, unit)


def _cyclictest_histogram(
    source: Source,
    last_line: int,
    table: tuple[dict[int, list[tuple[int, int]]], dict[str, list[Decimal]]],
    found: ForeignFile,
    unit: str,
) -> None:
    counts, totals = table
    needed = ("Total", "Min Latencies", "Avg Latencies", "Max Latencies")
    # With `-H` a column of all threads together stands behind them.
    threads = len(totals.get("Avg Latencies", ()))
    if counts and (not threads or any(len(totals.get(name, ())) < threads for name in needed)):
        source.refuse(
            f"line {last_line}",
            "the lines `# Total`, `# Min`, `# Avg` and `# Max Latencies` are missing; the file was cut off",
        )
    for place in range(threads if counts else 0):
        run = Summary(found, levels("cyclictest"), f"thread {place}")
        overflows = totals.get("Histogram Overflows", [])
        overflow = int(overflows[place]) if place < len(overflows) else 0
        run.value("cycles", totals["Total"][place] + overflow, "count")
        for name, statistic in zip(needed[1:], ("min", "mean", "max"), strict=True):
            run.statistic("latency", statistic, totals[name][place], unit)
        _add_bins(run, counts[place], overflow, totals["Max Latencies"][place], unit)
        run.end()


_RTLA: Final = re.compile(r"# RTLA (timerlat|osnoise) histogram")
_TIME_UNIT: Final = re.compile(r"# Time unit is \w+ \((us|ns)\)")
_DURATION: Final = re.compile(r"# Duration: *(\d+) (\d+):(\d+):(\d+)", re.ASCII)
_COLUMN: Final = re.compile(r"(?:([A-Za-z]+)-)?(?:CPU-)?(\d+)", re.ASCII)
_NO_DATA: Final = "-"
_RTLA_STATISTICS: Final = {"min:": "min", "avg:": "mean", "max:": "max"}


def read_rtla(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a histogram; a CPU is a worker of the run, what was interrupted is a factor.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    lines = numbered_lines(source)
    tracer, unit = require_line(source, lines, _RTLA)[1], require_line(source, lines, _TIME_UNIT)[1]
    found = ForeignFile("text", facts={"tool": f"rtla {tracer}"})
    if (duration := next(filter(None, (_DURATION.match(line) for _, line in lines)), None)) is not None:
        found.facts["duration"] = f"{duration[1]} d {duration[2]}:{duration[3]}:{duration[4]}"
    columns, bins, sums = _rtla_table(source, lines)
    width = (
        math.gcd(*(after[0] - before[0] for before, after in pairwise(bins)), *(low for low, _ in bins)) or 1
    )
    empty: Counter[str] = Counter()
    for place, column in enumerate(columns):
        _rtla_column(source, (tracer, column, unit), (place, width, bins, sums), found, empty)
    note_counts(found, empty)
    return found


def _rtla_table(
    source: Source, lines: Sequence[tuple[int, str]]
) -> tuple[list[str], list[tuple[int, list[int]]], dict[str, list[str]]]:
    """Give the headings, the counts of each bucket, and the lines of sums by their name."""
    columns: list[str] = []
    bins: list[tuple[int, list[int]]] = []
    sums: dict[str, list[str]] = {}
    for number, line in ((number, line) for number, line in lines if not line.startswith("#")):
        words = line.split()
        if words[0] == "Index" and not columns:
            columns = words[1:] or source.refuse(f"line {number}", "no CPU has a value")
        elif words[0] == "ALL:" or line.startswith(("rtla ", "timerlat ", "  ")):
            break  # sums over all CPUs, or what a latency was stopped by
        elif not columns:
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` stands before the heading")
        elif len(words) != len(columns) + 1:
            source.refuse(f"line {number}", f"{len(words)} fields; expected {len(columns) + 1}")
        elif words[0].endswith(":"):
            sums[words[0]] = words[1:]
        else:
            low, *row = (count_at(source, number, "0" if each == _NO_DATA else each) for each in words)
            bins.append((low, row))
    if not columns or not {"over:", "count:", *_RTLA_STATISTICS} <= sums.keys():
        missing = "the heading or the lines `over`, `count`, `min`, `avg` and `max` are missing"
        source.refuse(f"line {lines[-1][0]}", f"{missing}; it was cut off")
    return columns, bins, sums


def _rtla_column(
    source: Source,
    what: tuple[str, str, str],
    table: tuple[int, int, list[tuple[int, list[int]]], dict[str, list[str]]],
    found: ForeignFile,
    empty: Counter[str],
) -> None:
    (tracer, column, unit), (place, width, bins, sums) = what, table
    name = _COLUMN.fullmatch(column)
    if name is None:
        source.refuse("", f"column `{column[:40]}` is not one of rtla")
    count = sums["count:"][place]
    if count in ("0", _NO_DATA):
        empty["CPUs without a value"] += 1
        return
    context = "" if name[1] in (None, "CPU") else name[1]
    run = Summary(found, levels(f"rtla {tracer}", context=context), f"CPU {name[2]}")
    run.value("count", number_at(source, 1, count), "count")
    for row, statistic in _RTLA_STATISTICS.items():
        run.statistic("latency", statistic, number_at(source, 1, sums[row][place]), unit)
    over = sums["over:"][place]
    overflow = 0 if over == _NO_DATA else count_at(source, 1, over)
    largest = number_at(source, 1, sums["max:"][place])
    _add_bins(run, [(low, row[place]) for low, row in bins], overflow, largest, unit, width)
    run.end()


SCHBENCH: Final = ForeignImporter(
    "schbench",
    "text of schbench: a run, its reports are intervals",
    SCHBENCH_EXPECTED,
    read_schbench,
    sign=re.compile(r"Latencies percentiles \(usec\)", re.MULTILINE | re.ASCII),
)
CYCLICTEST: Final = ForeignImporter(
    "cyclictest",
    "cyclictest's JSON or histogram: a thread is a worker",
    CYCLICTEST_EXPECTED,
    read_cyclictest,
    sign=re.compile(r"/dev/cpu_dma_latency|^T: ?\d+ \( *\d+\) P:", re.MULTILINE | re.ASCII),
)
RTLA: Final = ForeignImporter(
    "rtla",
    "histograms of rtla: a CPU is a worker",
    RTLA_EXPECTED,
    read_rtla,
    sign=re.compile(r"^# RTLA |Timer Latency", re.MULTILINE | re.ASCII),
)
