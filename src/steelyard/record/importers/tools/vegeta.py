"""vegeta: the requests of an attack (`vegeta encode`, JSON or CSV), or its report as JSON."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json, read_json_line
from steelyard.record.importers.tools.summary import (
    OF_A_RUN,
    Bin,
    Summary,
    count_at,
    levels,
    note,
    note_counts,
    numbered_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `vegeta encode -to json` or `-to csv` prints, a request a line, or `vegeta report -type=json`, "
    "an object with `latencies` and `requests`; the binary form is turned into one by `vegeta encode`"
)
_COLUMNS: Final = 12
_STATISTICS: Final = {"mean": "mean", "50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99"} | {
    name: name for name in ("min", "max")
}
_Request = tuple[str, int, int, int, int]
"""Target, status, latency [ns], bytes out and bytes in."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file: of requests each attack is a run, with its requests as iterations.

    Raises
    ------
    DataError
        Naming the line or the JSON path of what is wrong.
    """
    del options
    if not source.content.lstrip().startswith(b"{"):
        return _requests(_csv(source), "csv")
    lines = numbered_lines(source)
    if len(lines) == 1 or not lines[0][1].endswith("}"):
        document = read_json(source)
        if "latencies" in document.value or "code" not in document.value:
            return _report(document)
    return _requests((_of_json(read_json_line(source, line, text)) for line, text in lines), "json")


def _requests(requests: Iterator[_Request], form: str) -> ForeignFile:
    found = ForeignFile(form, facts={"tool": "vegeta"})
    runs: dict[str, Summary] = {}
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for target, status, latency_ns, sent, received in requests:
        run = runs.setdefault(target, Summary(found, levels(target)))
        counts[target] += 1
        if not _is_success(status):
            failures[target] += 1
            failed[f"requests that failed with status {status}"] += 1
            continue
        numbers = (
            ("latency", latency_ns, "ns"),
            ("bytes_out", sent, "bytes"),
            ("bytes_in", received, "bytes"),
        )
        for metric, number, unit in numbers:
            run.value(metric, Decimal(number), unit, counts[target])
    for target, run in runs.items():
        run.value("failures", Decimal(failures[target]), "count")
        run.end()
    note_counts(found, failed)
    return found


def _is_success(status: int) -> bool:
    """Tell what vegeta calls a success; a request without an answer has status 0."""
    return 200 <= status < 400  # noqa: PLR2004 - codes of HTTP


def _of_json(request: Node) -> _Request:
    target = f"{request.member('method').text()} {request.member('url').text()}"
    attack = request.optional("attack")
    return (
        target if attack is None or not attack.value else f"{attack.text()}: {target}",
        request.member("code").count(2**63),
        request.member("latency").count(2**63),
        request.member("bytes_out").count(2**63),
        request.member("bytes_in").count(2**63),
    )


def _csv(source: Source) -> Iterator[_Request]:
    for line, row in rows(source, ","):
        if len(row) != _COLUMNS:
            source.refuse(f"line {line}", f"{len(row)} fields; expected {_COLUMNS}")
        count_at(source, line, row[0])
        count_at(source, line, row[8])
        status, latency, sent, received = (count_at(source, line, field) for field in row[1:5])
        target = f"{row[9]} {row[10]}"
        yield f"{row[7]}: {target}" if row[7] else target, status, latency, sent, received


def _report(document: Node) -> ForeignFile:
    found = ForeignFile("report", facts={"tool": "vegeta"})
    run = Summary(found, levels("vegeta"))
    latencies = document.member("latencies")
    run.value("requests", Decimal(document.member("requests").count()), "count")
    for member, metric, unit in (
        ("duration", "duration", "ns"),
        ("rate", "requests_per_s", "1/s"),
        ("throughput", "successes_per_s", "1/s"),
        ("success", "success", "ratio"),
    ):
        run.value(metric, document.member(member).duration(), unit)
    for member in ("bytes_in", "bytes_out"):
        run.value(f"{member}_total", document.member(member).member("total").duration(), "bytes")
    failures = sum(
        node.count()
        for status, node in document.member("status_codes").members()
        if not (status.isdecimal() and _is_success(int(status)))
    )
    run.value("failures", Decimal(failures), "count")
    if failures:
        note(found, f"latencies of the report include those of {failures} requests that failed")
    answered = failures < document.member("requests").count()
    run.statistics("latency", latencies, _STATISTICS, "ns", OF_A_RUN if answered else ())
    if (buckets := document.optional("buckets")) is not None:
        run.histogram("latency", _bins(buckets, latencies), "ns")
    if (date := document.optional("earliest")) is not None:
        found.facts["date"] = date.text()
    run.end()
    return found


def _bins(buckets: Node, latencies: Node) -> Iterator[Bin]:
    """Give the buckets, each from the bound that names it to the next one."""
    counts = [
        (Decimal(name) if name.isdecimal() else node.refuse("a bucket"), node.count())
        for name, node in buckets.members()
    ]
    bounds = [low for low, _ in counts[1:]] + [latencies.member("max").duration()]
    for (low, count), high in zip(counts, bounds, strict=True):
        yield Bin(low, max(low, high), count, is_open=low == counts[-1][0])


IMPORTER: Final = ForeignImporter(
    "vegeta",
    "requests of vegeta, or its report: an attack is a run, a request an iteration",
    EXPECTED,
    read,
    sign=re.compile(r"^Requests +\[total, rate", re.MULTILINE | re.ASCII),
)
