"""Load generators that sum a run up: the text of wrk and wrk2, the JSON of autocannon."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json_documents
from steelyard.record.importers.tools.hdr_histogram import HEADING, add_distribution
from steelyard.record.importers.tools.summary import (
    OF_A_RUN,
    Summary,
    count_at,
    levels,
    note,
    number_at,
    numbered_lines,
    percentile,
    quantity,
    require_line,
)

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

WRK_EXPECTED: Final = (
    "what `wrk --latency URL` or `wrk2` prints: `Running 10s test @ URL`, `Thread Stats`, `Requests/sec:`"
)
AUTOCANNON_EXPECTED: Final = (
    "what `autocannon --json URL` prints: an object with `url`, `connections`, `latency`, `requests` and "
    "`throughput`"
)
UNANSWERED: Final = "no request was answered: there are no latencies"
_RUNNING: Final = re.compile(r"Running (\S+) test @ (\S+)")
_SIZE: Final = re.compile(r"\s*(\d+) threads and (\d+) connections", re.ASCII)
_THREAD: Final = re.compile(r"\s+(Latency|Req/Sec)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)%")
_PERCENTILE: Final = re.compile(r"\s*([\d.]+)%\s+(\S+)", re.ASCII)
_TOTAL: Final = re.compile(r"\s*(\d+) requests in (\S+), (\S+) read", re.ASCII)
_OF_EVERY_RUN: Final = re.compile(
    r"\s*\d+ requests in |Requests/sec:|Transfer/sec:|\s*Socket errors:", re.ASCII
)
"""Lines that are true although no request was answered."""
_RATE: Final = re.compile(r"(Requests|Transfer)/sec:\s+(\S+)")
_ERRORS: Final = re.compile(r"\s*(?:Socket errors: (.*)|Non-2xx or 3xx responses: (\d+))", re.ASCII)
_OTHER: Final = re.compile(
    r"\s*(\d+ threads and|Thread (Stats|calibration)|Latency Distribution|Initialised|Detailed Perc|-{20})"
)
_FROM_THREADS: Final = {"Latency": "latency", "Req/Sec": "requests_per_s_of_a_thread"}
_RATES: Final = {"Requests": ("requests_per_s", "1/s"), "Transfer": ("transferred_per_s", "bytes/s")}
_SPREAD: Final = ("mean", "stddev", "max")


def read_wrk(source: Source, options: ReadOptions) -> ForeignFile:
    """Read what one or several launches of wrk printed; each is a run.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("text", facts={"tool": "wrk"})
    lines = numbered_lines(source)
    require_line(source, lines, _RUNNING)
    starts = [place for place, (_, line) in enumerate(lines) if _RUNNING.match(line)]
    for begin, end in pairwise([*starts, len(lines)]):
        _launch(source, lines[begin:end], found)
    return found


def _launch(source: Source, lines: list[tuple[int, str]], found: ForeignFile) -> None:
    first = lines[0][0]
    running, size = require_line(source, lines, _RUNNING), require_line(source, lines, _SIZE)
    lines = _without_empty(lines, found)
    run = Summary(found, levels(running[2], threads=size[1], connections=size[2]))
    spectrum = [place for place, (_, line) in enumerate(lines) if HEADING.fullmatch(line)]
    if spectrum:  # of wrk2; its first percentiles say the same with fewer digits
        found.facts["tool"] = "wrk2"
        end = next((place for place, (_, line) in enumerate(lines) if line.startswith("-----")), len(lines))
        add_distribution(source, lines[spectrum[0] : end], run, "latency", "ms")
        lines = [*lines[: spectrum[0]], *lines[end:]]
    stated = {each.statistic for each in found.published if each.levels is run.levels}
    for number, line in lines[1:]:
        if (at := _PERCENTILE.fullmatch(line)) is not None:
            name = percentile(number_at(source, number, at[1]))
            if f"{name} at most" not in stated:
                _statistic(source, number, run, "latency", name, at[2])
        elif (thread := _THREAD.match(line)) is not None:
            _spread(source, number, run, thread, is_known="mean" in stated)
        elif not _OTHER.match(line):
            _total(source, number, run, line)
    if not any(each.metric == "requests_per_s" for each in run.sections):
        source.refuse(f"line {first}", "the run that begins here has no line `Requests/sec:`; it was cut off")
    run.end()


def _without_empty(lines: list[tuple[int, str]], found: ForeignFile) -> list[tuple[int, str]]:
    """Leave out what a script printed behind the results, and latencies of 0 where nothing answered."""
    end = next((at for at, (_, line) in enumerate(lines) if line.startswith("Transfer/sec:")), len(lines)) + 1
    kept = lines[:end] + [each for each in lines[end:] if _ERRORS.match(each[1])]
    if len(kept) < len(lines):
        note(found, "what a script of wrk printed behind the results is not taken")
    if any(total[1] == "0" for _, line in kept if (total := _TOTAL.match(line))):
        note(found, UNANSWERED)
        return [kept[0], *(each for each in kept if _OF_EVERY_RUN.match(each[1]))]
    return kept


def _spread(source: Source, number: int, run: Summary, thread: re.Match[str], *, is_known: bool) -> None:
    """Add what wrk says about its threads, unless the spectrum of wrk2 has it with more digits."""
    if "nan" in thread[2]:
        note(run.found, f"`{thread[1]}` of a thread was not measured, left out")
    elif not (is_known and thread[1] == "Latency"):
        for statistic, text in zip(_SPREAD, thread.groups()[1:], strict=False):
            _statistic(source, number, run, _FROM_THREADS[thread[1]], statistic, text)


def _total(source: Source, number: int, run: Summary, line: str) -> None:
    """Add what happened in the whole run."""
    if (total := _TOTAL.match(line)) is not None:
        run.value("requests", Decimal(total[1]), "count")
        for metric, text in (("duration", total[2]), ("transferred", total[3])):
            run.value(metric, *quantity(source, number, text), printed=text)
    elif (rate := _RATE.match(line)) is not None:
        metric, unit = _RATES[rate[1]]
        run.value(metric, quantity(source, number, rate[2])[0], unit, printed=rate[2])
    elif (errors := _ERRORS.match(line)) is not None:
        _errors(source, number, run, errors)
    else:
        source.refuse(f"line {number}", f"`{line.strip()[:60]}` is not a line of wrk")


def _statistic(source: Source, line: int, run: Summary, metric: str, statistic: str, text: str) -> None:
    number, unit = quantity(source, line, text)
    compared = OF_A_RUN if metric == "latency" else ()
    run.statistic(metric, statistic, number, unit or "1/s", text, compared)


def _errors(source: Source, line: int, run: Summary, errors: re.Match[str]) -> None:
    if errors[2]:
        run.value("errors_status", Decimal(errors[2]), "count")
        return
    for each in errors[1].split(","):
        kind, _, count = each.strip().partition(" ")
        run.value(f"errors_{kind}", Decimal(count_at(source, line, count)), "count")


_AUTOCANNON_STATISTICS: Final = {
    "mean": "mean",
    "stddev": "stddev",
    "min": "min",
    "max": "max",
    **{
        f"p{name}": f"p{name}".replace("_", ".")
        for name in ("1", "2_5", "10", "25", "50", "75", "90", "97_5")
    },
    **{f"p{name}": f"p{name}".replace("_", ".") for name in ("99", "99_9", "99_99", "99_999")},
}


def read_autocannon(source: Source, options: ReadOptions) -> ForeignFile:
    """Read the JSON of launches; with `--warmup`, autocannon prints that of the warm-up before it.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    found = ForeignFile("json", facts={"tool": "autocannon"})
    documents = read_json_documents(source)
    for at, document in enumerate(documents):
        if any(each.optional("warmup") is not None for each in documents[at + 1 : at + 2]):
            note(found, "the warm-up is not taken")
        else:
            _autocannon_launch(document, found)
    return found


def _autocannon_launch(document: Node, found: ForeignFile) -> None:
    if (date := document.optional("start")) is not None:
        found.facts["date"] = date.text()
    factors = {name: document.member(name).shown() for name in ("connections", "pipelining")}
    if (workers := document.optional("workers")) is not None and workers.value:
        factors["workers"] = workers.shown()
    if (title := document.optional("title")) is not None:
        factors["title"] = title.shown()
    run = Summary(found, levels(document.member("url").shown(), **factors))
    latency, requests, bytes_read = (document.member(each) for each in ("latency", "requests", "throughput"))
    run.value("requests", requests.member("total").duration(), "count")
    run.value("transferred", bytes_read.member("total").duration(), "bytes")
    seconds = document.member("duration").duration()
    run.value("duration", seconds, "s")
    for name in ("errors", "timeouts", "non2xx", "resets", "mismatches"):
        if (count := document.optional(name)) is not None:
            run.value(name, count.duration(), "count")
    if requests.member("total").duration() > 0:
        run.statistics("latency", latency, _AUTOCANNON_STATISTICS, "ms")
    else:
        note(found, UNANSWERED)
    run.statistics("requests_per_s", requests, _AUTOCANNON_STATISTICS, "1/s", ("mean",))
    run.statistics("transferred_per_s", bytes_read, _AUTOCANNON_STATISTICS, "bytes/s", ("mean",))
    _require_seconds(document, seconds)
    run.end()


def _require_seconds(document: Node, seconds: Decimal) -> None:
    if seconds == 0:
        document.member("duration").refuse("a duration above 0")


WRK: Final = ForeignImporter(
    "wrk",
    "text of wrk and wrk2: a launch is a run",
    WRK_EXPECTED,
    read_wrk,
    sign=re.compile(r"^Running \S+ test @ .*\n +\d+ threads and", re.MULTILINE | re.ASCII),
)
AUTOCANNON: Final = ForeignImporter(
    "autocannon",
    "autocannon's JSON: a launch is a run",
    AUTOCANNON_EXPECTED,
    read_autocannon,
    sign=re.compile(r"^Running \S+ test @ .*\n\d+ connections", re.MULTILINE | re.ASCII),
)
