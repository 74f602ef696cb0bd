"""MPI benchmarks that print a table over sizes: OSU micro-benchmarks, Intel MPI Benchmarks, NetPIPE.

A launch is a run, a size a cell. Every number is the mean over a loop that was timed as a whole, or over the
processes: published, and a metric of the run. Its single messages are not in the file.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.tools.summary import (
    Summary,
    count_at,
    levels,
    note,
    number_at,
    numbered_lines,
    percentile,
    require_line,
)

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

OSU_EXPECTED: Final = (
    "what an OSU micro-benchmark prints: `# OSU MPI Latency Test v7.4`, a heading as `# Size  Avg "
    "Latency(us)`, a line for each size"
)
IMB_EXPECTED: Final = (
    "what IMB-MPI1 and its like print: `Intel(R) MPI Benchmarks`, `# Benchmarking PingPong`, `# #processes "
    "= 2`, a heading as `#bytes #repetitions t[usec]`, a line for each size"
)
NETPIPE_EXPECTED: Final = (
    "a file of NetPIPE (`-o np.out`: bytes, Mbit/s, seconds) or what it prints (`0: 1 bytes 7 times --> "
    "0.57 Mbps in 13.28 usec`)"
)
SIZE: Final = "size_bytes"
MEAN_NOTE: Final = (
    "each number is the tool's mean over a timed loop or over processes; single messages are not in the file"
)
_SIZES: Final = ("Size", "#bytes")
_COUNTS: Final = ("Iterations", "#repetitions")
_STATISTIC: Final = re.compile(r"(?:(Avg|Min|Max)\.?\s+)?(?:P([\d.]+)\s+)?(.+?)", re.ASCII)
_UNIT: Final = re.compile(r"(.+?)\s*[\[(]([^\])]+)[\])]")
_UNITS: Final = {"us": "us", "usec": "us", "s": "s", "%": "percent", "MB/s": "MB/s"}
_RATES: Final = {"MB/s": ("bandwidth", "MB/s"), "Mbytes/sec": ("bandwidth", "MB/s")} | dict.fromkeys(
    ("Messages/s", "Msg/sec"), ("message_rate", "1/s")
)
_STATISTICS: Final = {"Avg": "mean", "Min": "min", "Max": "max", "avg": "mean", "min": "min", "max": "max"}


def _column(text: str) -> tuple[str, str, str]:
    """Give metric, statistic and unit of a heading.

    Examples
    --------
    >>> _column("Avg Latency(us)"), _column("P99 Tail Lat(us)"), _column("t_min[usec]")
    (('latency', 'mean', 'us'), ('latency', 'p99', 'us'), ('latency', 'min', 'us'))
    """
    if text in _RATES:
        metric, unit = _RATES[text]
        return metric, "mean", unit
    with_unit = _UNIT.fullmatch(text)
    name, unit = (with_unit[1], _UNITS.get(with_unit[2], with_unit[2])) if with_unit else (text, "")
    stem, _, ending = name.rpartition("_")
    if stem == "t" and ending in _STATISTICS:
        return "latency", _STATISTICS[ending], unit
    matched = _STATISTIC.fullmatch(name)
    word, quantile, plain = matched.groups() if matched else (None, None, name)
    metric = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")
    metric = "latency" if metric in ("t", "tail_lat", "lat") else metric
    statistic = percentile(Decimal(quantile)) if quantile else _STATISTICS.get(word or "Avg", "mean")
    return metric or "value", statistic, unit


def _row(
    source: Source,
    line: int,
    words: list[str],
    columns: list[str],
    found: ForeignFile,
    cell: dict[str, str],
) -> None:
    """Add the run of a row of a table."""
    if len(words) != len(columns):
        source.refuse(f"line {line}", f"{len(words)} fields; expected {len(columns)}, one for each heading")
    cell = dict(cell)
    for name, word in zip(columns, words, strict=True):
        if name in _SIZES:
            cell[SIZE] = str(count_at(source, line, word))
    run = Summary(found, cell)
    for name, word in zip(columns, words, strict=True):
        if name in _COUNTS:
            run.value("repetitions", Decimal(count_at(source, line, word)), "count")
        elif name not in _SIZES:
            metric, statistic, unit = _column(name)
            run.statistic(metric, statistic, number_at(source, line, word), unit)
    run.end()


_OSU: Final = re.compile(r"# OSU (.+?)(?: v([\d.]+))?$", re.ASCII)
_PAIRS: Final = re.compile(r"# \[ pairs: (\d+) \] \[ window size: (\d+) \]", re.ASCII)
_OTHER: Final = re.compile(
    r"# (Datatype|Overall|Send Buffer|Window|Using|Set Block)|Validation|Warning|\[|-{5,}"
)


def read_osu(source: Source, options: ReadOptions) -> ForeignFile:
    """Read what one or several OSU benchmarks printed.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    lines = numbered_lines(source)
    require_line(source, lines, _OSU)
    found = ForeignFile("text", facts={"tool": "OSU micro-benchmarks"})
    cell: dict[str, str] = {}
    columns: list[str] = []
    for number, line in lines:
        if (test := _OSU.match(line)) is not None:
            cell, columns = levels(test[1].removesuffix(" Test")), []
            found.facts["version"] = test[2] or ""
        elif (pairs := _PAIRS.match(line)) is not None:
            cell |= {"pairs": pairs[1], "window_messages": pairs[2]}
        elif line.startswith("# Datatype: "):
            cell["datatype"] = line.removeprefix("# Datatype: ").removesuffix(".")
        elif line.startswith("#") and cell and not _OTHER.match(line):
            columns = re.split(r"\s{2,}|(?<=\))\s+", line.removeprefix("#").strip())
        elif columns and line.split()[0].replace(".", "").isdecimal():
            _row(source, number, line.split(), columns, found, cell)
        elif cell and not _OTHER.match(line):
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a line of an OSU benchmark")
    note(found, MEAN_NOTE)
    return found


_IMB: Final = re.compile(r"#\s+Intel\(R\) MPI Benchmarks (.+?), (.+?)(?: part)?$")
_BENCHMARK: Final = re.compile(r"# Benchmarking (.+)")
_PROCESSES: Final = re.compile(r"# #processes = (\d+)|# \( (\d+) groups", re.ASCII)
_HEADING: Final = re.compile(r"\s*(#bytes\s|#repetitions\s)")
_FACT: Final = re.compile(r"# (Date|Machine|Release|MPI Version) +: (.+)")


def read_imb(source: Source, options: ReadOptions) -> ForeignFile:
    """Read what the Intel MPI Benchmarks printed.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    lines = numbered_lines(source)
    suite = require_line(source, lines, _IMB)
    found = ForeignFile("text", facts={"tool": f"Intel MPI Benchmarks, {suite[2]}", "version": suite[1]})
    cell: dict[str, str] = {}
    columns: list[str] = []
    for number, line in lines:
        if (benchmark := _BENCHMARK.match(line)) is not None:
            cell, columns = levels(benchmark[1].strip()), []
        elif (processes := _PROCESSES.match(line)) is not None and cell:
            cell["processes" if processes[1] else "groups"] = processes[1] or processes[2]
        elif _HEADING.match(line):
            columns = line.split()
        elif (fact := _FACT.match(line)) is not None:
            found.facts[fact[1].lower()] = fact[2].strip()
        elif columns and cell and line.split()[0].isdecimal():
            _row(source, number, line.split(), columns, found, cell)
        elif not line.lstrip().startswith("#") and "out-of-mem" not in line and cell:
            source.refuse(
                f"line {number}", f"`{line.strip()[:60]}` is not a line of the Intel MPI Benchmarks"
            )
    note(found, MEAN_NOTE)
    return found


_PRINTED: Final = re.compile(
    r"\s*\d+: +(\d+) bytes +(\d+) times --> +([\d.]+) [MG]bps in +([\d.]+) usec", re.ASCII
)
_PREAMBLE: Final = re.compile(
    r"\s*\d+: \S+$|Send and receive|Sending output|Now starting|\s*(Clock|Using|Doing|Testing)"
)
_BITS: Final = 8
_SCALES: Final = {"Mibit/s": Decimal(2**20), "Mbit/s": Decimal(10**6), "Gbit/s": Decimal(10**9)}
"""What NetPIPE divides bits by: up to version 3 binary megabits, later decimal ones."""
_TOLERANCE: Final = Decimal("0.02")
_LAST_OF_TIME: Final = Decimal("5e-9")
_LAST_OF_RATE: Final = Decimal("5e-3")
"""Halves of the last digits that are printed [s, Mbit/s]."""
_FIELDS: Final = 3


def read_netpipe(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file; its time is the shortest of several trials, each a mean over many messages.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("text", facts={"tool": "NetPIPE"})
    lines = numbered_lines(source)
    begin = next((at for at, (_, line) in enumerate(lines) if line.startswith("Now starting")), 0)
    for number, line in lines[begin:]:
        if (printed := _PRINTED.match(line)) is not None:
            fields = printed[1], printed[3], str(number_at(source, number, printed[4]).scaleb(-6))
        elif _PREAMBLE.match(line):
            continue
        elif len(words := line.split()) == _FIELDS:
            count_at(source, number, words[0])
            fields = words[0], words[1], words[2]
        else:
            source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a result of NetPIPE")
        _netpipe_size(source, number, fields, found)
    note(found, "each time is NetPIPE's shortest of several trials, each a mean over many messages")
    return found


def _netpipe_size(source: Source, line: int, fields: tuple[str, str, str], found: ForeignFile) -> None:
    size, rate, seconds = (number_at(source, line, each) for each in fields)
    if seconds <= 0 or size <= 0:
        source.refuse(f"line {line}", "size and time should be above 0")
    # The three columns belong together: by that a table of three numbers is recognised as NetPIPE's.
    bits_per_s = size * _BITS / seconds
    off_by = _TOLERANCE + _LAST_OF_TIME / seconds + (_LAST_OF_RATE / rate if rate > 0 else 1)
    units = (each for each, scale in _SCALES.items() if abs(rate * scale / bits_per_s - 1) < off_by)
    if (unit := next(units, None)) is None:
        source.refuse(f"line {line}", f"{fields[0]} bytes in {seconds} s are not {rate} Mbit/s")
    run = Summary(found, levels("NetPIPE", **{SIZE: fields[0]}))
    run.statistic("latency", "min", seconds, "s")
    run.value("latency_shortest_mean", seconds, "s")
    run.statistic("bandwidth", "max", rate, unit)
    run.end()


_SIZES_ARE: Final = Alternatives.NONE
OSU: Final = ForeignImporter(
    "osu",
    "tables of the OSU micro-benchmarks: a launch is a run, a size a cell",
    OSU_EXPECTED,
    read_osu,
    _SIZES_ARE,
    sign=re.compile(r"^# OSU ", re.MULTILINE | re.ASCII),
)
IMB: Final = ForeignImporter(
    "imb",
    "tables of the Intel MPI Benchmarks: a launch is a run, a size a cell",
    IMB_EXPECTED,
    read_imb,
    _SIZES_ARE,
    sign=re.compile(r"Intel\(R\) MPI Benchmarks", re.MULTILINE | re.ASCII),
)
NETPIPE: Final = ForeignImporter(
    "netpipe",
    "results of NetPIPE: a launch is a run, a size a cell",
    NETPIPE_EXPECTED,
    read_netpipe,
    _SIZES_ARE,
    sign=re.compile(r" times --> ", re.MULTILINE | re.ASCII),
)
