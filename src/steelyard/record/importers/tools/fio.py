"""fio: its JSON (`--output-format=json`, `json+`) and its logs; a job is a worker of the run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import number_of, rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json_documents
from steelyard.record.importers.tools.summary import (
    Bin,
    Summary,
    count_at,
    levels,
    note,
    note_counts,
    percentile,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "fio's JSON (`fio --output-format=json --output FILE`): an object with `fio version` and `jobs`; or a "
    "log of fio (`time, value, direction, block size, offset`) whose name ends as in `NAME_clat.1.log`"
)
_BEGIN: Final = re.compile(r'^\{\s*"fio version"', re.MULTILINE)
"""fio prints remarks, and with `--output-format=normal,json` all it has to say, to the same place."""
_ENDED: Final = re.compile(r"^fio: terminating on signal (\d+)", re.MULTILINE | re.ASCII)
_DIRECTIONS: Final = ("read", "write", "trim")
_ALL: Final = "mixed"
"""With `--unified_rw_reporting=mixed` fio tells no directions apart; with `both` it sums them up too."""
_FACTORS: Final = ("rw", "bs", "iodepth", "ioengine", "direct", "size")
_TOTALS: Final = (
    ("iops", "iops", "1/s"),
    ("bw_bytes", "bandwidth", "bytes/s"),
    ("total_ios", "operations", "count"),
    ("io_bytes", "transferred", "bytes"),
    ("runtime", "duration", "ms"),
)
_STATISTICS: Final = {"mean": "mean", "stddev": "stddev", "min": "min", "max": "max"}
_LOG: Final = re.compile(r"(?P<job>.+)_(?P<kind>clat|slat|lat|bw|iops)(?:\.(?P<worker>\d+))?", re.ASCII)
_LOGGED: Final = {"bw": ("bandwidth", "KiB/s"), "iops": ("iops", "1/s")}
_FIELDS: Final = range(4, 8)
_GROUP_BITS: Final = 6
"""SOURCE: FIO_IO_U_PLAT_BITS in fio's `stat.h`: 64 bins between two powers of two, named by their middle."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line or the JSON path of what is wrong.
    """
    del options
    if not source.content.lstrip().startswith(b"{") and not _BEGIN.search(source.text()):
        return _log(source)
    documents = read_json_documents(source, _BEGIN)
    document = documents[-1]
    found = ForeignFile("json", facts={"tool": "fio", "version": document.member("fio version").text()})
    if (ended := _ENDED.search(source.text())) is not None:
        note(found, f"fio was ended by signal {ended[1]}: its numbers are of the time until then")
    if earlier := len(documents) - 1:
        note_counts(found, {"reports of `--status-interval`, which the last one includes": earlier})
    if (date := document.optional("time")) is not None:
        found.facts["date"] = date.shown()
    shared = document.optional("global options")
    workers: Counter[str] = Counter()
    for job in document.member("jobs").elements():
        name = job.member("jobname").text()
        workers[name] += 1
        _job(job, shared, found, f"job {workers[name]}")
    return found


def _job(job: Node, shared: Node | None, found: ForeignFile, worker: str) -> None:
    factors = {}
    for options in (shared, job.optional("job options")):
        for name in _FACTORS:
            if options is not None and (option := options.optional(name)) is not None:
                factors[name] = option.shown()
    error = job.optional("error")
    parts = {name: part for name in (*_DIRECTIONS, _ALL) if (part := job.optional(name)) is not None}
    if len(parts) > 1:
        parts.pop(_ALL, None)
    for direction, part in parts.items():
        if not part.member("total_ios").count(2**63):
            continue
        cell = levels(job.member("jobname").text(), direction=direction, **factors)
        run = Summary(found, cell, worker)
        for member, metric, unit in _TOTALS:
            run.value(metric, part.member(member).duration(), unit)
        for name in ("slat", "clat", "lat"):
            if (latency := part.optional(f"{name}_ns")) is not None and _holds(latency):
                _latency(run, name, latency)
        run.end(0 if error is None else error.count(2**31))
    note(found, "shares of CPU time, depths of queues and use of disks are not taken")


def _holds(latency: Node) -> bool:
    number = latency.optional("N")
    return latency.member("max").duration() > 0 if number is None else number.count(2**63) > 0


def _latency(run: Summary, metric: str, latency: Node) -> None:
    run.statistics(metric, latency, _STATISTICS, "ns")
    percentiles = latency.optional("percentile")
    for name, node in () if percentiles is None else percentiles.members():
        if (number := number_of(name)) is None:
            node.refuse("the value of a percentile")
        run.statistic(metric, percentile(number), node.number(), "ns")
    if (bins := latency.optional("bins")) is not None:
        counted = sorted(_bins(bins), key=lambda each: each.low)
        run.histogram(metric, counted, "ns")


def _bins(bins: Node) -> Iterator[Bin]:
    for name, node in bins.members():
        if not (name.isascii() and name.isdecimal()) or len(name) > 18:  # noqa: PLR2004 - fits into 64 bits
            node.refuse("the count of a bin of whole nanoseconds")
        middle = int(name)
        width = 1 << max(0, middle.bit_length() - 1 - _GROUP_BITS)
        low = middle - middle % width
        yield Bin(Decimal(low), Decimal(low + width - 1), node.count(2**63))


def _log(source: Source) -> ForeignFile:
    name = _LOG.fullmatch(source.path.stem)
    if name is None:
        kinds = "`_clat`, `_slat`, `_lat`, `_bw`, `_iops`"
        source.refuse("", f"neither fio's JSON, nor a log whose name tells its kind ({kinds})")
    metric, unit = _LOGGED.get(name["kind"], (name["kind"], "ns"))
    found = ForeignFile("log", facts={"tool": "fio"})
    runs: dict[int, Summary] = {}
    is_averaged = True
    for line, row in rows(source, ","):
        if len(row) not in _FIELDS:
            source.refuse(f"line {line}", f"{len(row)} fields; expected 4 to 7")
        _, value, direction = (count_at(source, line, field) for field in row[:3])
        is_averaged = is_averaged and count_at(source, line, row[3]) == 0
        if direction >= len(_DIRECTIONS):
            source.refuse(
                f"line {line}", f"direction is `{direction}`; allowed: 0 (read), 1 (write), 2 (trim)"
            )
        cell = levels(name["job"], direction=_DIRECTIONS[direction])
        run = runs.setdefault(direction, Summary(found, cell, f"job {name['worker'] or 1}"))
        run.value(metric, Decimal(value), unit, len(run.sections) + 1)
    for run in runs.values():
        if is_averaged and unit == "ns":
            run.sections[:] = [replace(each, metric=f"{metric}_mean_of_interval") for each in run.sections]
            note(found, f"each value of `{metric}` is a mean over an interval (`log_avg_msec`), named so")
        run.end()
    return found


IMPORTER: Final = ForeignImporter(
    "fio",
    "fio's JSON or logs: a job is a worker, a logged operation an iteration",
    EXPECTED,
    read,
    sign=re.compile(r'"fio version"|: \(g=0\): rw=|^3;fio-', re.MULTILINE | re.ASCII),
)
